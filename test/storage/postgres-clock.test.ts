import t from 'tap'
import type { Taken } from '../../src/storage/cluster.js'
import { until } from '../fixtures/build.js'
import { clusterWorld } from './cluster-world.js'
import { hasPostgres, postgres } from './postgres-world.js'

if (hasPostgres()) {
  const server = await postgres()

  t.test("nobody is declared dead because the server's clock was put forward, and who is dead is", async (t) => {
    await server.query(`CREATE ROLE stepped SUPERUSER LOGIN PASSWORD 'stepped'; CREATE SCHEMA steps; CREATE TABLE steps.taken (step interval);
      INSERT INTO steps.taken VALUES ('0');
      CREATE FUNCTION steps.clock_timestamp() RETURNS timestamptz VOLATILE
        RETURN pg_catalog.clock_timestamp() + (SELECT step FROM steps.taken);
      ALTER ROLE stepped SET search_path = steps, pg_catalog`)
    const world = await clusterWorld(t, { login: { user: 'stepped', password: 'stepped' } })
    // they beat at different times
    const nodes = [await world.node('a'), await world.node('b', 3_100), await world.node('c', 2_700)]
    const [a, b, c] = nodes.map(({ storage }) => storage.cluster)
    const told: string[] = []
    for (const cluster of [a!, b!, c!])
      for (const event of ['lost', 'taken'] as const) cluster.on(event, () => told.push(`${event} ${cluster.n}`))
    const beats = async (count: number) => {
      for (let beat = 0; beat < count; beat++) await new Promise((resolve) => a!.on('beat', resolve))
    }
    await until(() => a!.nodes().length === 3, 'all nodes')
    // who has just come takes nobody for dead
    await beats(8)
    await server.query("UPDATE steps.taken SET step = '1 hour'")
    await beats(4)
    t.same(told, [])
    const taken = new Promise<Taken>((resolve) => a!.on('taken', resolve))
    nodes[1]!.cut()
    c!.on('taken', () => {})
    t.match(await Promise.race([taken, new Promise<Taken>((resolve) => c!.on('taken', resolve))]), {
      from: { name: 'b' },
    })
  })
}
