import { join } from 'node:path'
import t from 'tap'
import type { SessionJournal } from '../../src/sessions/kept/journal.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'
import { buildGateway, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { native, ok } from '../fixtures/parked.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { workerFile } from '../storage/sqlite-world.js'

const Driver = await loadDriver()
/** Nobody has looked at what has ended for so long: it is in the journal alone then. */
const LEFT_ALONE_MS = 11_000
/** A storage that takes longer is not waited for. */
const TOO_LONG_MS = 9_000

const idsOf = (sessions: readonly { id: string }[]) => sessions.map(({ id }) => id)

t.test('one whose creation was refused is in no list while it cannot be removed from the journal', async (t) => {
  const clock = new VirtualClock()
  const storage = createMemoryStorage({ now: () => clock.now() })
  const { registry } = await buildGateway(t, { storage, clock })
  const { id } = await registry.create({ cwd: SOME_CWD })
  await registry.end(id)
  await clock.advance(LEFT_ALONE_MS)
  const { write, remove } = storage.journal
  let go = () => {}
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  let asked = 0
  const late: SessionJournal['write'] = async (what) => {
    asked++
    await gate
    await write(what)
  }
  const broken = () => Promise.reject(new Error('disk I/O error'))
  Object.assign(storage.journal, { write: late, remove: broken })
  const refused = t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await until(() => asked === 1, 'the first write')
  await clock.advance(TOO_LONG_MS)
  await refused
  go()
  await until(
    async () => (await storage.journal.atRest!({ limit: 10 })).sessions.length === 2,
    'its end in the journal',
  )
  t.same(idsOf(await registry.list()), [id])
  Object.assign(storage.journal, { write, remove })
})

t.test('what is to go at once and cannot is tried again every now and then, not without a pause', async (t) => {
  const clock = new VirtualClock()
  const storage = createMemoryStorage({ now: () => clock.now() })
  const { registry } = await buildGateway(t, { storage, clock, sessionRetentionMs: 0 })
  const { id } = await registry.create({ cwd: SOME_CWD })
  const { remove, write } = storage.journal
  let asked = 0
  const broken = () => {
    // or nothing would end this
    if (++asked === 1_000) Object.assign(storage.journal, { write, remove })
    return Promise.reject(new Error('disk I/O error'))
  }
  await registry.durable(id)
  Object.assign(storage.journal, { remove: broken })
  void registry.end(id).catch(() => {})
  await until(async () => asked > 0 || void (await clock.advance(0)), 'the first try')
  const before = asked
  await clock.advance(60_000)
  t.ok(asked > before, 'it is tried again')
  t.ok(asked < 200, `tried ${asked} times`)
  Object.assign(storage.journal, { remove })
  await until(
    async () => (await registry.get(id)) === undefined || void (await clock.advance(1_000)),
    'that it is gone',
  )
})

t.test('one that cannot be read is not found, and keeps none of the others from being removed', async (t) => {
  const path = join(t.testdir(), 'gateway.db')
  const clock = new VirtualClock()
  const storage = () => createSqliteStorage({ path }, { worker: workerFile() })
  const { registry: first, gateway } = await buildGateway(t, { storage: storage(), clock })
  const ids: string[] = []
  for (let count = 0; count < 3; count++) {
    await clock.advance(1_000)
    const { id } = await first.create({ cwd: SOME_CWD })
    await first.end(id)
    ids.unshift(id)
  }
  const damaged = ids.pop()!
  await gateway.close()
  const db = new Driver(path)
  db.prepare("UPDATE sessions SET state = '{' WHERE id = ?").run(damaged)
  db.close()
  const { call, registry, worker } = await buildServer(t, { storage: storage(), clock, sessionRetentionMs: 60_000 })
  t.same(idsOf(await registry.list()), ids)
  for (const method of ['GET', 'DELETE']) t.equal((await call(method, `/sessions/${damaged}`)).status, 404)
  t.equal((await call('GET', `/sessions/${ids[0]}`)).status, 200)
  const removed: string[] = []
  registry.on('session_removed', ({ sessionId }) => removed.push(sessionId))
  await clock.advance(61_000)
  await until(() => removed.length === 2, 'the removal of the others')
  t.same(removed.sort(), [...ids].sort())
  await worker.close()
})

t.test('what asks for one that has ended says that the storage fails, and nothing is done', async (t) => {
  const clock = new VirtualClock()
  const storage = createMemoryStorage({ now: () => clock.now() })
  const { call, registry } = await buildServer(t, { storage, clock })
  const { id } = await registry.create({ cwd: SOME_CWD })
  await registry.end(id)
  await clock.advance(LEFT_ALONE_MS)
  const { get, atRest } = storage.journal
  const broken = () => Promise.reject(new Error('disk I/O error'))
  Object.assign(storage.journal, { get: broken, atRest: broken })
  const refused = ['GET /sessions', `GET /sessions/${id}`, `DELETE /sessions/${id}`, `GET /sessions/${id}/files`]
  for (const route of refused) {
    const [method, path] = route.split(' ')
    const { status, json } = await call(method!, path!)
    t.match({ status, json }, { status: 503, json: { code: 'SG_ERR_STORE_UNAVAILABLE' } }, `${method} ${path}`)
  }
  Object.assign(storage.journal, { get, atRest })
  t.same(idsOf((await call('GET', '/sessions')).json), [id])
})

t.test(
  'an execution is of the session that waits for it, when an earlier one of that id is on its way out',
  async (t) => {
    const clock = new VirtualClock()
    const storage = createMemoryStorage({ now: () => clock.now() })
    const build = () => buildGateway(t, { storage, clock, script: native })
    const { registry, engine, gateway } = await build()
    const parked = async () => {
      const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
      const runner = engine.last
      await until(() => runner.sent.length === 1)
      await runner.defer('x')
      await until(() => registry.here(id)?.status === 'parked', 'the park')
      return id
    }
    const earlier = await parked()
    await gateway.executions.submit('x', ok)
    await until(() => registry.here(earlier)?.status !== 'parked', 'the wake')
    await registry.end(earlier)
    await registry.durable(earlier)
    const { remove } = storage.journal
    Object.assign(storage.journal, { remove: () => Promise.reject(new Error('disk I/O error')) })
    await registry.close(earlier)
    const id = await parked()
    Object.assign(storage.journal, { remove })
    const next = await build()
    t.match(await next.gateway.executions.submit('x', ok), { applied: true, sessionId: id })
  },
)
