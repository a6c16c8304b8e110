import t, { type Test } from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf, sessionOn } from '../fixtures/cluster.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

const LEASE = { leaseMs: 4_000 }

if (hasPostgres()) {
  t.test('a session that is being removed is asked for: it is gone, and its end is told once', async (t: Test) => {
    const told: string[] = []
    const { nodes } = await clusterOf(t, ['a', 'b'], {
      ...LEASE,
      notifications: { onNotification: ({ type }) => void told.push(type) },
    })
    const [a, b] = nodes
    const id = (await a.call('POST', '/sessions', { cwd: SOME_CWD })).json.id
    // decided, and not carried out yet
    const journal = a.storage.journal!
    const { remove } = journal
    let goOn = () => {}
    const held = new Promise<void>((resolve) => {
      goOn = resolve
    })
    let removals = 0
    journal.remove = async (...args) => {
      removals++
      await held
      return remove.apply(journal, args)
    }
    t.equal((await a.call('DELETE', `/sessions/${id}`)).status, 200)
    await until(() => removals === 1, 'the removal')
    for (const node of [a, b]) t.equal((await node.call('GET', `/sessions/${id}`)).status, 404, `at ${node.name}`)
    for (const node of [a, b]) t.same((await node.call('GET', '/sessions')).json, [], `listed at ${node.name}`)
    const { registry } = a.worker
    t.equal(await registry.get(id), undefined, 'to a host')
    t.equal(await registry.shared!.leave(id), false, 'nor does another node remove it')
    goOn()
    await until(async () => !(await journal.get(id)), 'the end of it')
    t.equal((await a.call('GET', `/sessions/${id}`)).status, 404)
    await a.stop()
    t.same(told, ['session_closed'])
    t.equal(removals, 1)
  })

  t.test('what a node has just removed is gone, also when it is itself right after that', async (t: Test) => {
    const { nodes, schema } = await clusterOf(t, ['a', 'b'], { leaseMs: 3_000 })
    const b = nodes[1]
    const server = await postgres()
    const id = await sessionOn(b)
    b.cutOff()
    const removed = `DELETE FROM ${schema}.sessions WHERE id = $1 RETURNING key`
    await server.query(`WITH it AS (${removed}) INSERT INTO ${schema}.removed_sessions SELECT key FROM it`, [id])
    await until(async () => (await server.query(`SELECT FROM ${schema}.events`)).length === 0, 'the end of its events')
  })
}
