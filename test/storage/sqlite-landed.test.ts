import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { buildGateway, until } from '../fixtures/build.js'
import { eventsOf } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import { sqliteAt } from './sqlite-world.js'

const LANDED = fileURLToPath(new URL('../fixtures/landed-sessions.sql', import.meta.url))
const Driver = await loadDriver()

t.test('sessions that the version before left parked, woken and idle go on', async (t) => {
  const path = join(t.testdir(), 'gateway.db')
  const before = new Driver(path)
  before.exec(readFileSync(LANDED, 'utf8'))
  before.close()
  const storage = sqliteAt(t, path)
  const world = await buildGateway(t, { storage, script: native })
  const { registry, engine, gateway } = world
  t.same(
    (await registry.list()).map(({ id, status }) => [id, status]),
    [
      ['idle', 'idle'],
      ['woken', 'parked'],
      ['asleep', 'parked'],
    ],
  )
  t.match(registry.here('asleep'), { parked: { executions: [{ executionId: 'asleep-e' }] } })
  // killed in the rest of its turn: it goes on from its park, with the result that it was handed
  await until(() => engine.runners[0]?.settled.length === 1, 'the wake')
  t.match(engine.runners[0]?.context.restore, { state: ['go'] })
  t.same(engine.runners[0]?.settled, [{ executionId: 'woken-e', result: ok }])
  const told = (await eventsOf(world, 'woken')).filter(({ type }) => type === 'execution_result')
  t.equal(told.length, 1, 'which is told once')

  const log = await eventsOf(world, 'asleep')
  t.match(
    log.map(({ type }) => type),
    ['user_message', 'system_init', 'status_changed', 'execution_dispatched', 'status_changed'],
  )
  t.same(await gateway.executions.submit('asleep-e', ok), { applied: true, sessionId: 'asleep' })
  t.match(engine.last.settled, [{ executionId: 'asleep-e' }])
  let after = log
  await until(async () => {
    after = await eventsOf(world, 'asleep')
    return after.some(({ type }) => type === 'execution_result')
  })
  t.same(after.slice(0, log.length), log, 'in the same log')
  await gateway.close()

  const db = new Driver(path, { readOnly: true })
  t.equal(db.prepare('SELECT count(*) AS n FROM parked').get().n, 0, 'it stands in one place')
  db.close()
})

t.test(
  'one that had ended stays where it is in the lists when somebody looks at it, though nothing says where that is',
  async (t) => {
    const path = join(t.testdir(), 'gateway.db')
    const before = new Driver(path)
    before.exec(readFileSync(LANDED, 'utf8'))
    before.exec("UPDATE sessions SET state = json_remove(state, '$.order')")
    before.exec("UPDATE sessions SET state = json_set(state, '$.info.status', 'closed') WHERE id = 'woken'")
    before.close()
    const { registry } = await buildGateway(t, { storage: sqliteAt(t, path), script: native })
    const listed = async () => (await registry.list()).map(({ id }) => id)
    t.same(await listed(), ['idle', 'woken', 'asleep'])
    t.match(await registry.get('woken'), { status: 'closed' })
    t.same(await listed(), ['idle', 'woken', 'asleep'])
  },
)
