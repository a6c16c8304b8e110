import { join } from 'node:path'
import t, { type Test } from 'tap'
import { deferred } from '../../src/lib/deferred.js'
import { UNLIMITED } from '../../src/principal.js'
import type { SessionJournal, SessionsAtRest } from '../../src/sessions/kept/journal.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { createSqliteStorage, type SqliteInternals } from '../../src/storage/sqlite/storage.js'
import type { GatewayStorage } from '../../src/storage/storage.js'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { eventsOf } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { jobOf } from '../storage/sqlite-records.js'
import { workerFile } from '../storage/sqlite-world.js'

const profiles: NonNullable<BuildOptions['profiles']> = ['scripted', 'secret'].map((name) => ({
  ...{ name, engine: 'provider', provider: { id: name } },
}))
/** Nobody has looked at what has ended for so long: it is in the journal alone then. */
const LEFT_ALONE_MS = 11_000

const idsOf = (sessions: readonly { id: string }[]) => sessions.map(({ id }) => id)
const onlySecret = { allowedProfiles: ['secret'] }

/** Gateways one after the other on one storage in memory. */
async function world(t: Test, options: BuildOptions = {}) {
  const clock = new VirtualClock()
  const storage = createMemoryStorage({ now: () => clock.now() })
  const build = () => buildGateway(t, { storage, clock, profiles, script: native, ...options })
  let current = await build()
  const again = async () => {
    await current.gateway.close()
    current = await build()
    return current
  }
  const create = async (profile = 'scripted', prompt?: string) => {
    await clock.advance(1_000)
    return (await current.registry.create({ cwd: SOME_CWD, profile, ...(prompt && { prompt }) })).id
  }
  const ended = async (profile?: string) => {
    const id = await create(profile)
    await current.registry.end(id)
    return id
  }
  return { clock, storage, create, ended, again, first: current }
}

t.test('a start asks for as much, however many sessions and jobs have ended', async (t) => {
  const startOn = async (endedOnes: number) => {
    const path = join(t.testdir(), 'gateway.db')
    const at = (onBatch?: SqliteInternals['onBatch']) =>
      createSqliteStorage({ path }, { worker: workerFile(), ...(onBatch && { onBatch }) })
    const before = at()
    const { registry, gateway } = await buildGateway(t, { storage: before, queue: {} })
    const one = await registry.create({ cwd: SOME_CWD })
    await registry.end(one.id)
    await registry.create({ cwd: SOME_CWD })
    await registry.durable(one.id)
    const { state, snapshot: _none, position: _first, ...left } = (await before.journal.get(one.id))!
    const { profile, generation, config, epoch } = left
    const copies = Array.from({ length: endedOnes }, (_, index) => `${one.id}-${index}`)
    await Promise.all(
      copies.map((id, index) =>
        before.journal.write({
          ...{ id, origin: { profile, generation, config, epoch }, events: [{ seq: 1, json: '{}' }] },
          state: { ...state, order: (state.order ?? 0) + index + 1, info: { ...state.info, id } },
        }),
      ),
    )
    for (const id of copies) await before.queue.add(jobOf(id))
    await Promise.all(copies.map((id) => before.queue.update(id, { status: 'canceled', finishedAt: Date.now() })))
    await gateway.close()

    const asked: string[] = []
    const after = at((names) => asked.push(...names))
    let read = 0
    const { journal } = after
    const awake: SessionsAtRest['awake'] = async (onUnreadable) => {
      const sessions = await journal.awake!(onUnreadable)
      read += sessions.length
      return sessions
    }
    const storage: GatewayStorage = { ...after, journal: { ...journal, awake } }
    const options = { storage, queue: { retention: { maxAgeMs: 86_400_000 } }, sessionRetentionMs: 86_400_000 }
    const { gateway: next } = await buildGateway(t, options)
    const atStart = [...asked].sort()
    t.equal(next.registry.count().ended, endedOnes + 1)
    t.equal((await next.registry.list()).length, endedOnes + 2)
    await next.close()
    return { atStart, read }
  }
  const few = await startOn(1)
  const many = await startOn(450)
  t.same(many.atStart, few.atStart)
  t.same([many.read, few.read], [0, 0], 'sessions that are read')
  t.notOk(many.atStart.includes('journal.page'))
})

t.test('what has ended stands in the lists where it stood, in pages, by what is asked for, and for whom', async (t) => {
  const { create, ended, again, clock } = await world(t)
  const [e1, live1, s2, e3, f4, live5, s6] = [
    ...[await ended(), await create(), await ended('secret'), await ended(), await create()],
    ...[await create(), await ended('secret')],
  ]
  const all = [s6, live5, f4, e3, s2, live1, e1]
  const { registry, gateway } = await again()
  await until(async () => (await registry.open(f4!, UNLIMITED)) !== undefined)
  ;(await registry.open(f4!, UNLIMITED)).fail('broken')
  const seen = async (query: Parameters<typeof registry.page>[0], principal = UNLIMITED as object) =>
    idsOf((await registry.page(query, principal)).items)
  const check = async (what: string) => {
    t.same(idsOf(await registry.list()), all, what)
    const walked: string[] = []
    for (let cursor: string | undefined; ; ) {
      const { items, next } = await registry.page({ limit: 2, ...(cursor && { cursor }) }, UNLIMITED)
      walked.push(...idsOf(items))
      if (next === undefined) break
      cursor = next
    }
    t.same(walked, all, `${what}, in pages`)
    t.same(await seen({ limit: 7 }), all)
    t.same(await seen({ status: 'closed' }), [s6, e3, s2, e1])
    t.same(await seen({ status: 'failed' }), [f4])
    t.same(await seen({ status: 'idle' }), [live5, live1])
    t.same(await seen({ profile: 'secret' }), [s6, s2])
    t.same(await seen({ engine: 'cli' }), [])
    t.same(await seen({}, onlySecret), [s6, s2])
    t.same(await seen({ profile: 'scripted' }, onlySecret), [])
    t.same(await seen({}, { allowedProfiles: [] }), [])
    t.same(registry.count(), { live: 2, parked: 0, ended: 5 })
  }
  await check('after a restart')
  t.match(await registry.get(e1!), { id: e1, status: 'closed' })
  await check('while one of them was asked for')
  await clock.advance(LEFT_ALONE_MS)
  t.equal(registry.here(f4!), undefined, 'nobody looks at it any more')
  await check('with all of them in the journal alone')
  await registry.close(e3!)
  all.splice(all.indexOf(e3!), 1)
  t.same(idsOf(await registry.list()), all)
  t.equal(await registry.get(e3!), undefined)
  t.equal(registry.count().ended, 4)
  await gateway.close()
})

t.test('one that has ended is opened, renamed and removed as before, by those who may see it', async (t) => {
  const { ended, again, clock, first } = await world(t)
  const id = await ended('secret')
  const log = await eventsOf(first, id)
  const next = await again()
  const { registry } = next
  const theirs = { allowedProfiles: ['scripted'] }
  const refusals: (() => Promise<unknown>)[] = [
    () => registry.visibleInfo(id, theirs),
    () => registry.open(id, theirs),
    () => registry.close(id, 'client', theirs),
    () => registry.rename(id, 'mine', theirs),
  ]
  for (const refused of refusals) await t.rejects(refused(), { code: 'SG_ERR_SESSION_NOT_FOUND' })
  t.equal(await registry.isVisible(id, theirs), false)
  t.equal(await registry.isVisible(id, onlySecret), true)
  t.same(await eventsOf(next, id), log, 'its log')
  t.match(await registry.rename(id, 'theirs', onlySecret), { title: 'theirs', status: 'closed' })
  await clock.advance(LEFT_ALONE_MS)
  t.equal(registry.here(id), undefined)
  t.match(await registry.visibleInfo(id, onlySecret), { title: 'theirs' })
  const removed: string[] = []
  registry.on('session_removed', ({ sessionId }) => removed.push(sessionId))
  const outcomes = await Promise.allSettled([registry.close(id), registry.close(id), registry.get(id)])
  t.equal(outcomes[0]!.status, 'fulfilled')
  t.equal(await registry.get(id), undefined)
  t.same(removed, [id], 'told once')
  t.same(await registry.list(), [])
  t.same((await again()).registry.count(), { live: 0, parked: 0, ended: 0 })
})

t.test('what ends leaves the memory as soon as that is durable, or when its last client has left', async (t) => {
  const { create, first, clock } = await world(t)
  const [alone, watched] = [await create(), await create()]
  const session = await first.registry.open(watched, UNLIMITED)
  const attachment = session.attach(new FakeSink(), {})
  await Promise.all([alone, watched].map((id) => first.registry.end(id)))
  await until(() => first.registry.here(alone) === undefined, 'the end of one that nobody looks at')
  t.match(await first.registry.get(alone), { id: alone, status: 'closed' }, 'found where it is kept')
  await clock.advance(LEFT_ALONE_MS)
  t.match(first.registry.here(watched), { status: 'closed' })
  session.detach(attachment)
  await clock.advance(LEFT_ALONE_MS)
  t.equal(first.registry.here(watched), undefined)
})

t.test('executions of what has ended stay known until it is removed', async (t) => {
  const { create, again, first, clock } = await world(t)
  const id = await create('scripted', 'go')
  const parked = await create('scripted', 'go')
  const runnerOf = (of: string): ScriptedRunner => first.engine.runners.find(({ context }) => context.sessionId === of)!
  await until(() => runnerOf(id)?.sent.length === 1 && runnerOf(parked)?.sent.length === 1)
  await runnerOf(id).defer('over')
  await runnerOf(parked).defer('waits')
  await until(async () => first.registry.here(parked)?.status === 'parked')
  await first.gateway.executions.submit('over', ok)
  await first.registry.end(id)
  const { gateway, registry, engine } = await again()
  await clock.advance(LEFT_ALONE_MS)
  t.equal(registry.here(id), undefined)
  t.same(await gateway.executions.submit('over', ok), { applied: false, sessionId: id })
  t.equal(await registry.isVisible((await gateway.executions.sessionOf('over'))!, UNLIMITED), true)
  t.throws(() => gateway.executions.defer(parked, 'over', undefined), { code: 'SG_ERR_EXECUTION_EXISTS' })
  await registry.close(id)
  await t.rejects(gateway.executions.submit('over', ok), { code: 'SG_ERR_EXECUTION_NOT_FOUND' })
  t.match(await gateway.executions.submit('waits', ok), { applied: true, sessionId: parked })
  await until(() => engine.runners.some(({ settled }) => settled.length === 1), 'the wake of the other one')
})

t.test('so they do when the only one that has ended is looked at', async (t) => {
  const { create, clock, again, first } = await world(t)
  const id = await create('scripted', 'go')
  await until(() => first.engine.last.sent.length === 1)
  await first.engine.last.defer('over')
  await first.gateway.executions.submit('over', ok)
  await first.registry.end(id)
  const { gateway, registry, engine } = await again()
  t.match(await registry.get(id), { status: 'closed' })
  t.same(await gateway.executions.submit('over', ok), { applied: false, sessionId: id })
  await registry.create({ cwd: SOME_CWD, profile: 'scripted', prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await t.rejects(engine.last.defer('over'), { code: 'SG_ERR_EXECUTION_EXISTS' })
  await clock.advance(LEFT_ALONE_MS)
  t.equal(registry.here(id), undefined)
  t.same(
    await gateway.executions.submit('over', ok),
    { applied: false, sessionId: id },
    'nor is it forgotten afterwards',
  )
})

t.test('what it has written in the turn that its end cuts off can be read for as long as it is listed', async (t) => {
  const contents = new TextEncoder().encode('# Report')
  const files = {
    list: () => [{ path: 'report.md', bytes: contents.byteLength, modifiedAt: 42 }],
    read: () => contents,
  }
  let written: Record<string, string> = {}
  const snapshot = () => ({ engine: 'scripted', state: null, files: written })
  const { create, again, first, clock } = await world(t, { script: { ...native, files, snapshot } })
  const ways = [
    (id: string) => first.registry.end(id),
    () => first.engine.last.host.emit({ type: 'session_error', message: 'broke' }),
  ]
  const ids: string[] = []
  for (const end of ways) {
    written = {}
    const id = await create('scripted', 'go')
    await until(() => first.engine.last.sent.length === 1)
    written = { 'report.md': Buffer.from(contents).toString('base64') }
    await end(id)
    await first.registry.durable(id)
    ids.push(id)
  }
  const listed = async (registry: typeof first.registry) =>
    Promise.all(ids.map(async (id) => (await registry.open(id, UNLIMITED)).files?.list()))
  await clock.advance(LEFT_ALONE_MS)
  t.same(
    ids.map((id) => first.registry.here(id)),
    [undefined, undefined],
  )
  t.same(await listed(first.registry), [files.list(), files.list()])
  t.same(await listed((await again()).registry), [files.list(), files.list()])
})

t.test('what an earlier version left on the lists of one that has ended nobody is shown as waiting', async (t) => {
  const { create, again, first, storage } = await world(t)
  const id = await create('scripted', 'go')
  await until(() => first.engine.last.sent.length === 1)
  await first.engine.last.defer('never settled')
  await until(async () => first.registry.here(id)?.status === 'parked')
  await first.gateway.close()
  const { state, reservedSeq } = (await storage.journal.get(id))!
  const { midTurn: _midTurn, ...earlier } = state
  const request = { id: 'never answered', toolName: 'Write', toolUseId: 't', input: {} }
  const info = { ...state.info, status: 'closed' as const }
  await storage.journal.write({ id, reservedSeq, state: { ...earlier, info, permissions: [request] } })
  const { registry, gateway } = await again()
  const shown = (await registry.open(id, UNLIMITED)).snapshot()
  t.match(shown.session, { status: 'closed', pendingPermissions: 0 })
  t.same([shown.pendingExecutions, shown.pendingPermissions], [[], []])
  t.same(await gateway.executions.submit('never settled', ok), { applied: false, sessionId: id })
})

t.test('it can be looked at while another session asks whether it may have its execution', async (t) => {
  const { create, storage, again, first } = await world(t)
  const id = await create('scripted', 'go')
  await until(() => first.engine.last.sent.length === 1)
  await first.engine.last.defer('over')
  await first.gateway.executions.submit('over', ok)
  await first.registry.end(id)
  const { registry, engine } = await again()
  await registry.create({ cwd: SOME_CWD, profile: 'scripted', prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  const journal = storage.journal as SessionJournal & SessionsAtRest
  const { sessionOf } = journal
  const asked = deferred()
  const looked = deferred()
  journal.sessionOf = async (executionId) => {
    asked.resolve()
    await looked.promise
    return sessionOf(executionId)
  }
  const refused = t.rejects(engine.last.defer('over'), { code: 'SG_ERR_EXECUTION_EXISTS' })
  await asked.promise
  t.match(await registry.get(id), { status: 'closed' })
  looked.resolve()
  await refused
})

t.test('what has ended goes when its time is over, whether or not it was looked at, and over restarts', async (t) => {
  const { ended, again, clock, storage } = await world(t, { sessionRetentionMs: 60_000 })
  const [a, b] = [await ended(), await ended()]
  const { registry } = await again()
  await clock.advance(30_000)
  const c = await ended()
  t.match(await registry.get(a), { status: 'closed' })
  await clock.advance(27_000)
  t.same(idsOf(await registry.list()), [c, b, a])
  const removed: string[] = []
  registry.on('session_removed', ({ sessionId }) => removed.push(sessionId))
  await registry.get(b)
  await clock.advance(3_000)
  await until(() => removed.length === 2, 'the removal of both')
  t.same(removed.sort(), [a, b].sort())
  t.same(idsOf(await registry.list()), [c])
  t.same(idsOf(await storage.journal.list()), [c])
  await clock.advance(30_000)
  await until(() => removed.length === 3, 'the removal of the last')
  t.same(await registry.list(), [])
  t.equal(registry.count().ended, 0)
})

t.test('what has ended does not leave the lists while a page of them is made', async (t) => {
  const clock = new VirtualClock()
  const storage = createMemoryStorage({ now: () => clock.now() })
  let answer = () => {}
  const read = storage.journal.atRest!
  let asked = 0
  const slow: SessionJournal['atRest'] = async (query) => {
    const page = await read(query)
    asked++
    await new Promise<void>((resolve) => {
      answer = resolve
    })
    return page
  }
  const { registry } = await buildGateway(t, { storage, clock, profiles })
  const { id: earlier } = await registry.create({ cwd: SOME_CWD, profile: 'scripted' })
  await registry.end(earlier)
  await clock.advance(LEFT_ALONE_MS)
  t.equal(registry.here(earlier), undefined)
  const { id } = await registry.create({ cwd: SOME_CWD, profile: 'scripted' })
  Object.assign(storage.journal, { atRest: slow })
  const listed = registry.page({}, UNLIMITED)
  await until(() => asked === 1, 'the question')
  await registry.end(id)
  await registry.durable(id)
  await clock.advance(7_000)
  answer()
  t.same(idsOf((await listed).items), [id, earlier])
  await clock.advance(LEFT_ALONE_MS)
  t.equal(registry.here(id), undefined, 'then it does')
})

t.test('a job whose session had ended when the process died has failed, and the attempt counts', async (t) => {
  const { again, first, storage } = await world(t, { queue: {} })
  const { id } = await first.gateway.queue!.submit({
    ...{ session: { cwd: SOME_CWD, profile: 'scripted', prompt: 'go' }, attempts: 1 },
  })
  await until(() => first.engine.runners[0]?.sent.length === 1)
  const { sessionId } = (await storage.queue.get(id))!.info
  const running = (await storage.queue.get(id))!.info
  await first.registry.end(sessionId!)
  await first.registry.durable(sessionId!)
  await until(async () => (await storage.queue.get(id))!.info.status !== 'running')
  const { finishedAt: _at, error: _error, result: _result, ...rest } = running
  await storage.queue.update(id, { ...rest, finishedAt: undefined, error: undefined, result: undefined } as never)
  const { gateway, engine } = await again()
  await until(async () => (await gateway.queue!.get(id))?.status === 'failed', 'its end')
  t.same(engine.runners, [], 'nothing of it runs again')
})
