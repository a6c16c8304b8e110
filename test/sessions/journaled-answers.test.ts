import t, { type Test } from 'tap'
import type { PermissionDecision } from '../../src/engines/runner.js'
import { deferred } from '../../src/lib/deferred.js'
import { PATIENCE_MS } from '../../src/lib/patience.js'
import { UNLIMITED } from '../../src/principal.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { ok } from '../fixtures/parked.js'
import { turns } from '../fixtures/turns.js'

/** A session that was asked for permission to use some tools, and what became of each. */
async function asked(t: Test, toolUseIds: string[]) {
  const world = await buildJournaled(t, {
    script: { capabilities: { parking: 'native' } },
  })
  const { id } = await world.registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => world.engine.last.sent.length === 1)
  const session = await world.registry.open(id, UNLIMITED)
  // while somebody looks on, it does not park
  const attachment = session.attach(new FakeSink(), {})
  const decided: Record<string, PermissionDecision> = {}
  for (const toolUseId of toolUseIds)
    void world.engine.last.host
      .requestPermission({ toolName: 'write', toolUseId, input: {} })
      .then((decision) => (decided[toolUseId] = decision))
  await until(async () => (await world.registry.get(id))?.pendingPermissions === toolUseIds.length)
  await session.durable()
  const [request] = session.pendingPermissions
  return { ...world, id, decided, requestId: request!.id, leave: () => session.detach(attachment) }
}

t.test('what was allowed runs once that is durable', async (t) => {
  const { registry, journal, id, requestId, decided } = await asked(t, ['u1'])
  journal.hold()
  const answered = registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
  await turns()
  t.same(decided, {})
  journal.release()
  await answered
  await until(() => decided.u1)
  t.equal(decided.u1?.behavior, 'allow')
})

t.test('a crash before that leaves a denial, and nothing that ran', async (t) => {
  const { registry, journal, id, requestId, decided, again } = await asked(t, ['u1'])
  journal.broken = true
  const answer = registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
  await t.rejects(answer, { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.broken = false
  const { registry: next } = await again()
  const resolved = (await eventsOf({ registry: next }, id)).filter(({ type }) => type === 'permission_resolved')
  t.match(resolved, [{ behavior: 'deny' }])
  t.same(decided, {})
})

t.test('what is denied is told to the agent once the answer is kept, and to nobody when it is refused', async (t) => {
  const { registry, journal, id, requestId, decided } = await asked(t, ['u1'])
  const deny = () => registry.resolvePermission(id, requestId, { behavior: 'deny', message: 'no' }, UNLIMITED)
  journal.broken = true
  await t.rejects(deny(), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.broken = false
  await turns()
  t.same(decided, {})
  t.equal((await registry.get(id))?.pendingPermissions, 1)
  await deny()
  await until(() => decided.u1)
  t.match(decided.u1, { behavior: 'deny', message: 'no' })
})

t.test('an interrupt takes back what was allowed and not handed over', async (t) => {
  const { registry, journal, id, requestId, decided } = await asked(t, ['u1'])
  journal.hold()
  const answered = registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
  await turns()
  const interrupted = registry.send(id, { type: 'interrupt' })
  await until(() => decided.u1)
  t.match(decided.u1, { behavior: 'deny', message: 'The turn was interrupted.' })
  journal.release()
  await t.rejects(answered, { code: 'SG_ERR_PERMISSION_NOT_FOUND' })
  await interrupted
  t.match(decided.u1, { behavior: 'deny' })
})

t.test('a session does not park while an answer is on its way, and does afterwards', async (t) => {
  const { registry, journal, clock, id, requestId, decided, leave } = await asked(t, ['u1', 'u2'])
  journal.hold()
  const answered = registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
  await turns()
  leave()
  await clock.advance(5_000)
  t.not((await registry.get(id))?.status, 'parked')
  journal.release()
  await answered
  await until(() => decided.u1)
  t.equal(decided.u1?.behavior, 'allow')
  await until(async () => (await registry.get(id))?.status === 'parked', 'the park')
})

/** A session whose removal is held by its journal, while its engine asks for a tool and could park. */
async function askedWhileRemoved(t: Test) {
  const built = await buildJournaled(t, { script: { capabilities: { parking: 'native' } } })
  const { registry, engine, journal } = built
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  await (await registry.open(id, UNLIMITED)).durable()
  journal.hold()
  const removed = registry.close(id, 'client')
  void engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} })
  await turns()
  return { ...built, id, removed }
}

t.test('a session that begins to wait while it is being removed is not brought back by its park', async (t) => {
  const { journal, storage, again, id, removed } = await askedWhileRemoved(t)
  t.notOk((await storage.journal.get(id))?.state.midTurn, 'nothing is parked that is going')
  journal.release()
  await removed
  await turns()
  t.same(await storage.journal.list(), [])
  const { registry: next } = await again()
  t.same(await next.list(), [])
})

t.test('a session that could not be removed parks then', async (t) => {
  const { registry, journal, id, removed } = await askedWhileRemoved(t)
  journal.broken = true
  journal.release()
  await t.rejects(removed, { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.broken = false
  await until(async () => (await registry.get(id))?.status === 'parked')
})

t.test('of two answers that come at once the first is kept, and the other one is not', async (t) => {
  const { registry, journal, id, requestId, decided } = await asked(t, ['u1'])
  const answer = (behavior: 'allow' | 'deny') => registry.resolvePermission(id, requestId, { behavior }, UNLIMITED)
  journal.hold()
  const first = answer('allow')
  const second = answer('deny')
  await turns()
  journal.release()
  await first
  await t.rejects(second, { code: 'SG_ERR_PERMISSION_NOT_FOUND' })
  await until(() => decided.u1)
  t.equal(decided.u1?.behavior, 'allow')
  t.equal(journal.deposits.length, 1, 'nor is a key that came with it')
})

t.test('an answer takes the place of one that could not be kept', async (t) => {
  const { registry, journal, id, requestId, decided } = await asked(t, ['u1'])
  const answer = (behavior: 'allow' | 'deny') => registry.resolvePermission(id, requestId, { behavior }, UNLIMITED)
  journal.hold()
  const first = answer('allow')
  const second = answer('deny')
  await turns()
  journal.broken = true
  journal.release()
  journal.hold()
  await t.rejects(first, { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.broken = false
  journal.release()
  await second
  await until(() => decided.u1)
  t.equal(decided.u1?.behavior, 'deny')
})

type Journaled = Awaited<ReturnType<typeof buildJournaled>>

/** A second answer, while the first one that was refused is being written: it is taken once that is taken back, and not before. */
async function denied(t: Test, journal: Journaled['journal'], clock: Journaled['clock'], deny: () => Promise<unknown>) {
  const second = deny().then(
    () => 'taken',
    ({ code }) => code,
  )
  await turns()
  journal.release()
  // what was held is written, and nothing after it
  journal.hold()
  await turns()
  await clock.advance(PATIENCE_MS)
  t.equal(await second, 'SG_ERR_STORE_UNAVAILABLE')
  journal.release()
  await turns()
  await deny()
}

/** Also after a restart. */
async function isDenied(t: Test, again: Journaled['again'], id: string) {
  const { registry: next } = await again()
  const resolved = (await eventsOf({ registry: next }, id)).filter(({ type }) => type === 'permission_resolved')
  t.match(resolved, [{ behavior: 'deny' }])
}

t.test('until an answer that was refused late is taken back no other one is taken', async (t) => {
  const { registry, gateway, journal, id, requestId, decided, clock, again } = await asked(t, ['u1'])
  const answer = (behavior: 'allow' | 'deny') => registry.resolvePermission(id, requestId, { behavior }, UNLIMITED)
  journal.hold()
  const first = t.rejects(answer('allow'), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await turns()
  await clock.advance(PATIENCE_MS / 2)
  // slow, not silent
  await gateway.idempotency.begin('some', 'other')
  await clock.advance(PATIENCE_MS / 2)
  await first
  await denied(t, journal, clock, () => answer('deny'))
  await until(() => decided.u1)
  t.equal(decided.u1?.behavior, 'deny')
  await isDenied(t, again, id)
})

t.test(
  'nor is one when the session has parked meanwhile, and a crash does not bring the refused one back',
  async (t) => {
    const { registry, gateway, journal, id, requestId, clock, leave, again } = await asked(t, ['u1'])
    const answer = (behavior: 'allow' | 'deny') => registry.resolvePermission(id, requestId, { behavior }, UNLIMITED)
    journal.hold()
    const first = t.rejects(answer('allow'), { code: 'SG_ERR_STORE_UNAVAILABLE' })
    await turns()
    leave()
    // its own patience, and then that of the park
    for (let waitedMs = 0; waitedMs < 2 * PATIENCE_MS; waitedMs += PATIENCE_MS / 2) {
      await gateway.idempotency.begin(`slow, not silent ${waitedMs}`, 'some')
      await clock.advance(PATIENCE_MS / 2)
      await turns()
    }
    await first
    await until(async () => !(await registry.open(id, UNLIMITED)).live)
    await denied(t, journal, clock, () => answer('deny'))
    await isDenied(t, again, id)
  },
)

t.test(
  'a result for a session that ends while it is written down is not applied, as it is not afterwards',
  async (t) => {
    const { registry, engine, journal, gateway } = await buildJournaled(t)
    const { executions } = gateway
    const { id: sessionId } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => engine.last.sent.length === 1)
    await engine.last.defer('e1')
    journal.hold()
    const submitted = executions.submit('e1', ok)
    await turns()
    const ended = registry.end(sessionId)
    journal.release()
    await ended
    t.same(await submitted, { applied: false, sessionId })
    t.same(await executions.submit('e1', ok), { applied: false, sessionId })
  },
)

t.test('what an engine asks again after a crash in the midst of an interrupt is denied, too', async (t) => {
  const script = { capabilities: { parking: 'native' as const }, interrupt: () => {} }
  const { registry, engine, again } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  const write = { toolName: 'write', toolUseId: 'u', input: {} }
  void engine.last.host.requestPermission(write)
  await until(async () => (await registry.get(id))?.status === 'parked')
  await registry.send(id, { type: 'interrupt' })
  await until(async () => (await eventsOf({ registry }, id)).some(({ type }) => type === 'permission_resolved'))
  const next = await again()
  await until(async () => (await next.registry.get(id))?.status === 'running')
  t.match(await next.engine.last.host.requestPermission(write), { behavior: 'deny', interrupt: true })
  t.equal((await next.registry.get(id))?.pendingPermissions, 0)
})

t.test('a session that is being read to be woken when the process ends is not woken', async (t) => {
  const script = { capabilities: { parking: 'native' as const } }
  const { gateway, registry, engine, journal, clock } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  // nobody looks at it, and it is in the journal alone
  await clock.advance(60_000)
  const { get } = journal
  const read = deferred()
  let isReading = false
  journal.get = async (one) => {
    isReading ||= journal.deposits.length > 0
    if (isReading) await read.promise
    return get(one)
  }
  const submitted = gateway.executions.submit('e1', ok)
  await until(() => isReading)
  const closed = gateway.close()
  await turns()
  read.resolve()
  await Promise.all([submitted, closed])
  await turns()
  t.equal(engine.runners.length, 1)
})

t.test('what a crash cut off is told once it can be read, when nobody asks for it either', async (t) => {
  const { registry, engine, journal, clock, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  const { get } = journal
  journal.get = () => Promise.reject(new Error('no space left on device'))
  const { registry: next } = await again()
  const statusOf = async () => (await next.get(id))?.status
  t.equal(await statusOf(), 'running')
  journal.get = get
  await clock.advance(1_000)
  await until(async () => (await statusOf()) === 'idle', 'its end')
})

t.test('what could not be read as the process ended is left to the next one', async (t) => {
  const { registry, engine, journal, clock, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  const { get } = journal
  let reads = 0
  const full = deferred()
  journal.get = async () => {
    if (++reads > 1) await full.promise
    throw new Error('no space left on device')
  }
  const { gateway } = await again()
  await clock.advance(1_000)
  await until(() => reads === 2)
  const closed = gateway.close()
  await turns()
  full.resolve()
  await closed
  await turns()
  const atTheEnd = reads
  await clock.advance(60_000)
  t.equal(reads, atTheEnd, 'nobody reads any more')
  journal.get = get
  const { registry: next } = await again()
  await until(async () => (await next.get(id))?.status === 'idle', 'its end')
})

t.test('a session that was removed goes once it can be, when a crash and a full disk kept it', async (t) => {
  const { registry, journal, clock, again } = await buildJournaled(t, {
    script: { send: (runner) => runner.complete() },
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await (await registry.open(id, UNLIMITED)).durable()
  await journal.deposit(id, [{ key: 'removal', type: 'removal', reason: 'client' }])
  journal.broken = true
  const { registry: next } = await again()
  t.equal((await next.get(id))?.status, 'idle')
  journal.broken = false
  await clock.advance(1_000)
  await until(async () => (await next.get(id)) === undefined, 'its removal')
})
