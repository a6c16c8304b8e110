import { join } from 'node:path'
import t, { type Test } from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { createSqliteStorage, type SqliteInternals } from '../../src/storage/sqlite/storage.js'
import type { GatewayStorage } from '../../src/storage/storage.js'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { eventsOf } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { workerFile } from '../storage/sqlite-world.js'

/** Nobody has looked at what sleeps for so long: it is in the journal alone then. */
const LEFT_ALONE_MS = 16_000
const IDLE_MS = 60_000

/** Gateways one after the other on one storage. */
async function world(t: Test, options: BuildOptions = {}) {
  let time = new VirtualClock()
  const clock = {
    now: () => time.now(),
    advance: (ms: number) => time.advance(ms),
    set: (byMs: number) => time.set(byMs),
  }
  const storage: GatewayStorage = options.storage ?? createMemoryStorage({ now: () => clock.now() })
  const build = () =>
    buildGateway(t, {
      storage,
      clock: time,
      script: native,
      idleReleaseMs: IDLE_MS,
      parking: { expiredGraceMs: 5_000 },
      ...options,
    })
  let current = await build()
  const runnerOf = (id: string): ScriptedRunner | undefined =>
    current.engine.runners.findLast(({ context }) => context.sessionId === id)
  const create = async (request: object = {}) => (await current.registry.create({ cwd: SOME_CWD, ...request })).id
  const parked = async (executionId: string, expiresAt?: number) => {
    const id = await create({ prompt: 'go' })
    await until(() => runnerOf(id)?.sent.length === 1, 'the prompt')
    await runnerOf(id)!.defer(executionId, expiresAt)
    await until(() => current.registry.here(id)?.status === 'parked', 'the park')
    return id
  }
  const idle = async (request: object = {}) => {
    const id = await create({ prompt: 'go', ...request })
    await until(() => runnerOf(id)?.sent.length === 1, 'the prompt')
    runnerOf(id)!.complete()
    await current.registry.durable(id)
    return id
  }
  /** Until the journal alone has it. */
  const left = async (...ids: string[]) => {
    for (const id of ids)
      await until(async () => {
        await clock.advance(LEFT_ALONE_MS)
        return current.registry.here(id) === undefined
      }, 'that it leaves the memory')
  }
  const again = async ({ crash = false } = {}) => {
    if (!crash) await current.gateway.close()
    // whose time stands still does nothing more
    else time = new VirtualClock(time.now())
    current = await build()
    return current
  }
  return { clock, storage, create, parked, idle, left, again, runnerOf, now: () => current }
}

t.test('a parked session is in the journal alone until its result comes, over restarts', async (t) => {
  const { parked, left, again, now, runnerOf } = await world(t)
  const [first, second] = [await parked('e1'), await parked('e2')]
  const log = await eventsOf(now(), first)
  await left(first, second)
  t.match(now().registry.count(), { live: 0, parked: 2 })
  const { items } = await now().registry.page({ status: 'parked' }, UNLIMITED)
  t.match(items, [
    { id: second, status: 'parked', parked: { executions: [{ executionId: 'e2' }] } },
    { id: first, status: 'parked', parked: { executions: [{ executionId: 'e1' }] } },
  ])
  t.match(await now().registry.get(first), { status: 'parked', numTurns: 0 })
  t.match(await now().gateway.executions.submit('e1', ok), { applied: true, sessionId: first })
  await until(() => runnerOf(first)!.settled.length === 1, 'the result')
  t.same((await eventsOf(now(), first)).slice(0, log.length), log, 'its log goes on')
  await left(second)
  const { registry, gateway } = await again()
  t.equal(registry.here(second), undefined)
  t.equal(await gateway.executions.sessionOf('e2'), second)
  t.match(await gateway.executions.submit('e2', ok), { applied: true, sessionId: second })
  await until(() => runnerOf(second)!.settled.length === 1, 'the result after a restart')
  t.match(await gateway.executions.submit('e2', ok), { applied: false, sessionId: second })
})

t.test('a session that waits for nothing is in the journal alone until somebody speaks to it', async (t) => {
  const { idle, left, again, now, runnerOf, clock } = await world(t)
  const id = await idle({ title: 'mine' })
  await clock.advance(IDLE_MS)
  await left(id)
  t.match(now().registry.count(), { live: 1, parked: 0 })
  t.same(
    (await now().registry.page({ status: 'idle' }, UNLIMITED)).items.map((one) => one.id),
    [id],
  )
  const { registry } = await again()
  t.equal(registry.here(id), undefined)
  t.equal(await registry.isContinued(`sdk-${id}`), true)
  t.equal(await registry.isContinued('another'), false)
  t.match(await registry.rename(id, 'yours', UNLIMITED), { title: 'yours', status: 'idle' })
  await left(id)
  t.match(await registry.visibleInfo(id, UNLIMITED), { title: 'yours' }, 'a sleeping one is renamed where it is')
  await registry.send(id, { type: 'user_message', text: 'again' })
  await until(() => runnerOf(id)?.sent.length === 1, 'the message')
  runnerOf(id)!.complete()
  await registry.durable(id)
  t.match(await registry.get(id), { title: 'yours', status: 'idle' })
  await clock.advance(IDLE_MS)
  await left(id)
  await registry.end(id)
  t.match(await registry.get(id), { status: 'closed' }, 'a host ends it by its id')
  await registry.close(id)
  t.equal(await registry.get(id), undefined)
  t.match(registry.count(), { live: 0, parked: 0, ended: 0 })
})

t.test('the deadline of what a sleeping session waits for comes, wherever it sleeps', async (t) => {
  const { parked, left, again, clock, runnerOf, now } = await world(t)
  const far = clock.now() + 3_600_000
  const [a, b, c] = [await parked('a', far), await parked('b', far + 600_000), await parked('c', far + 1_200_000)]
  await left(a, b, c)
  const timedOut = (id: string) => runnerOf(id)?.settled[0]
  await clock.advance(far - clock.now() - 1)
  t.equal(timedOut(a), undefined, 'not before')
  await clock.advance(1)
  await until(() => runnerOf(a)!.settled.length === 1, 'the first deadline')
  t.match(timedOut(a), { result: { status: 'failed', reason: 'timeout' } })
  t.equal(now().registry.here(c), undefined)
  await again()
  await clock.advance(far + 600_000 - clock.now())
  await until(() => runnerOf(b)?.settled.length === 1, 'the second, after a restart')
  await now().gateway.close()
  await clock.advance(3_600_000)
  await again({ crash: true })
  await until(() => now().registry.here(c)?.status === 'parked', 'the last, which lapsed meanwhile')
  t.equal(runnerOf(c)?.settled.length ?? 0, 0)
  await clock.advance(5_000)
  await until(() => runnerOf(c)?.settled.length === 1, 'it had a while of grace')
})

t.test('a deadline that passed while the machine slept comes within two minutes after', async (t) => {
  const { parked, left, clock, runnerOf } = await world(t)
  const id = await parked('e1', clock.now() + 24 * 3_600_000)
  await left(id)
  // which no timer counts
  clock.set(30 * 3_600_000)
  await clock.advance(120_000)
  await until(() => runnerOf(id)!.settled.length === 1, 'the deadline')
  t.match(runnerOf(id)!.settled, [{ result: { status: 'failed', reason: 'timeout' } }])
})

t.test('what an engine served when its process died is read once, and then sleeps as others do', async (t) => {
  const { idle, again, clock, now, storage } = await world(t)
  const id = await idle()
  const awake = async () => (await storage.journal.awake!()).map((one) => one.id)
  t.same(await awake(), [id])
  await again({ crash: true })
  await until(async () => (await awake()).length === 0, 'that it sleeps')
  await clock.advance(LEFT_ALONE_MS)
  t.equal(now().registry.here(id), undefined)
  t.match(await now().registry.get(id), { status: 'idle' })
})

t.test('whoever waits for a person, and the run of a job, is not asleep', async (t) => {
  const { create, clock, now, runnerOf, storage } = await world(t, { queue: {} })
  const asks = await create({ prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => runnerOf(asks)?.sent.length === 1)
  void runnerOf(asks)!.host.requestPermission({ toolUseId: 'u1', toolName: 'Bash', input: {} })
  runnerOf(asks)!.host.waitForExecutions()
  await until(() => now().registry.here(asks)?.pendingPermissions === 1, 'the request')
  const { id: jobId } = await now().gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'go' } })
  const ofJob = () =>
    now()
      .registry.unended()
      .find((one) => one.jobId === jobId)
  await until(() => runnerOf(ofJob()?.id ?? '')?.sent.length === 1)
  await runnerOf(ofJob()!.id)!.defer('of a job')
  await until(() => ofJob()?.status === 'parked', 'the park of the run')
  const run = ofJob()!.id
  await until(async () => {
    await clock.advance(LEFT_ALONE_MS)
    return now().registry.here(asks)?.status === 'parked'
  }, 'the park of the one that asks')
  await clock.advance(10 * LEFT_ALONE_MS)
  t.match(now().registry.here(asks), { status: 'parked', pendingPermissions: 1 })
  t.match(now().registry.here(run), { status: 'parked' })
  t.same((await storage.journal.awake!()).map(({ id }) => id).sort(), [asks, run].sort())
})

t.test('a result that was kept wakes its session although the storage failed in between', async (t) => {
  const { parked, left, again, clock, runnerOf, now, storage } = await world(t)
  const id = await parked('e1')
  await left(id)
  const { get, deposit } = storage.journal
  let fails = false
  Object.assign(storage.journal, {
    get: (asked: string) => (fails ? Promise.reject(new Error('disk I/O error')) : get(asked)),
    deposit: async (...given: Parameters<typeof deposit>) => {
      const isThere = await deposit(...given)
      fails = true
      return isThere
    },
  })
  t.match(await now().gateway.executions.submit('e1', ok), { applied: true, sessionId: id })
  const wait = async () => {
    for (let tries = 0; tries < 5; tries++) await clock.advance(LEFT_ALONE_MS)
    t.equal(runnerOf(id)?.settled.length ?? 0, 0)
  }
  await wait()
  await again({ crash: true })
  await wait()
  fails = false
  await until(async () => {
    await clock.advance(LEFT_ALONE_MS)
    return runnerOf(id)?.settled.length === 1
  }, 'the wake')
})

t.test('an execution id that a sleeping session has is no other’s', async (t) => {
  const { parked, left, create, runnerOf, now } = await world(t)
  const id = await parked('e1')
  await left(id)
  const other = await create({ prompt: 'go' })
  await until(() => runnerOf(other)?.sent.length === 1)
  await t.rejects(runnerOf(other)!.defer('e1'), { code: 'SG_ERR_EXECUTION_EXISTS' })
  t.match(await now().gateway.executions.submit('e1', ok), { applied: true, sessionId: id })
})

t.test('a start asks for as much, however many sessions sleep', async (t) => {
  const startOn = async (sleeping: number) => {
    const path = join(t.testdir(), 'gateway.db')
    const at = (onBatch?: SqliteInternals['onBatch']) =>
      createSqliteStorage({ path }, { worker: workerFile(), ...(onBatch && { onBatch }) })
    const before = at()
    const { parked, left, now } = await world(t, { storage: before })
    const one = await parked('e', Date.now() + 86_400_000)
    await left(one)
    const { state, snapshot, position: _first, sleeps: _asleep, ...whole } = (await before.journal.get(one))!
    const { profile, generation, config, epoch } = whole
    const ids = Array.from({ length: sleeping }, (_, index) => `${one}-${index}`)
    await Promise.all(
      ids.map((id, index) => {
        const executions = state.executions!.map((waits) => ({ ...waits, executionId: id }))
        return before.journal.write({
          ...{
            id,
            origin: { profile, generation, config, epoch },
            snapshot: snapshot!,
            reservedSeq: whole.reservedSeq,
          },
          events: [{ seq: 1, json: '{}' }],
          state: {
            ...{ ...state, executions, midTurn: { ...state.midTurn!, waits: [id] }, order: state.order! + index + 1 },
            info: { ...state.info, id, parked: { ...state.info.parked!, executions } },
          },
          asleep: { status: 'parked', wakesAt: Date.now() + 86_400_000 },
        })
      }),
    )
    await now().gateway.close()
    const asked: string[] = []
    const after = at((names) => asked.push(...names))
    const next = await world(t, { storage: after })
    const atStart = [...asked].sort()
    t.equal(next.now().registry.count().parked, sleeping + 1)
    t.match(await next.now().gateway.executions.submit(ids[0]!, ok), { applied: true, sessionId: ids[0] })
    await next.now().gateway.close()
    return atStart
  }
  const few = await startOn(1)
  const many = await startOn(450)
  t.same(many, few)
  t.notOk(many.includes('journal.page') || many.includes('journal.get'))
})
