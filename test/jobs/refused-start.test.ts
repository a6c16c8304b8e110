import t, { type Test } from 'tap'
import type { JobEvent } from '../../schemas/jobs.js'
import { PATIENCE_MS } from '../../src/lib/patience.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { failingDisk } from '../fixtures/failing-disk.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { bury } from '../fixtures/mortal-storage.js'
import { NO_USAGE } from '../fixtures/scripted-engine.js'

/** A gateway whose disk takes everything but what a session begins with. */
async function world(t: Test) {
  const { disk, storage } = failingDisk()
  const jobEvents: JobEvent[] = []
  const sessionEvents: string[] = []
  const server = await buildServer(t, {
    storage,
    queue: { maxConcurrency: 1, dailyTokenLimit: 1_000, onEvent: (event) => void jobEvents.push(event) },
  })
  server.registry.on('session_event', ({ event }) => sessionEvents.push(event.type))
  disk.only = 'journal.write'
  const { call } = server
  const submit = async (prompt = 'once') => {
    const { json, status } = await call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt }, attempts: 1 })
    t.equal(status, 201)
    return json.id as string
  }
  const job = async (id: string) => (await call('GET', `/jobs/${id}`)).json
  const sessions = async () => (await call('GET', '/sessions')).json
  const isQueued = (id: string) =>
    until(async () => (await job(id)).status === 'queued' && told().length > 1, 'put back')
  const told = () => jobEvents.map(({ type }) => type)
  return { ...server, disk, submit, job, sessions, isQueued, told, sessionEvents }
}

for (const how of ['refuses', 'hangs'] as const)
  t.test(`a disk that ${how} when the session of a job begins: the job waits on, as if it had not begun`, async (t) => {
    const { disk, submit, job, sessions, isQueued, told, call, clock, engine, sessionEvents } = await world(t)
    if (how === 'refuses') disk.fails = 'SQLITE_FULL'
    else disk.hold()
    const id = await submit()
    if (how === 'hangs') {
      await until(() => disk.held > 0, 'the write')
      await clock.advance(PATIENCE_MS)
      // what was refused lands after all
      disk.release()
    }
    await isQueued(id)
    const waiting = await job(id)
    t.match(waiting, { attempt: 1, usage: { tokens: 0 } })
    for (const field of ['startedAt', 'sessionId', 'error', 'finishedAt', 'nextRunAt']) t.notOk(field in waiting, field)
    t.same(told(), ['job_submitted', 'job_started'], 'no failure is told')
    await until(async () => (await sessions()).length === 0, 'no session is left')
    t.match((await call('GET', '/queue')).json, { queued: 1, running: 0 })
    t.same(engine.last.sent, [], 'its engine was given nothing')
    t.ok(engine.last.closed)
    const runners = engine.runners.length
    await clock.advance(900)
    t.equal(engine.runners.length, runners, 'nor is it begun again while nothing is taken')
    disk.fails = undefined
    await clock.advance(1_000)
    await until(() => engine.last.sent.length === 1, 'begun again')
    engine.last.complete()
    await until(async () => (await job(id)).finishedAt !== undefined, 'its end')
    t.match(await job(id), { status: 'succeeded', attempt: 1 })
    t.equal(engine.runners.filter(({ sent }) => sent.length > 0).length, 1, 'its prompt was given once')
    t.notOk(sessionEvents.includes('session_error'))
    t.equal((await sessions()).length, 1, 'and it has one session')
  })

t.test('an engine that does not close holds up no job that could not begin', async (t) => {
  const { disk, submit, job, isQueued, clock, engine } = await world(t)
  engine.script.close = () => new Promise(() => {})
  disk.fails = 'SQLITE_FULL'
  const id = await submit()
  await until(() => engine.runners.at(-1)?.closed, 'let go')
  await clock.advance(10_000)
  await isQueued(id)
  disk.fails = undefined
  await clock.advance(1_000)
  await until(() => engine.last.sent.length === 1, 'begun again')
  engine.last.complete()
  await clock.advance(10_000)
  await until(async () => (await job(id)).status === 'succeeded', 'its end')
})

t.test('a job that waits for the disk to begin can be canceled, and holds nobody up', async (t) => {
  const { disk, submit, job, isQueued, told, call, clock, engine } = await world(t)
  disk.fails = 'SQLITE_FULL'
  const first = await submit('first')
  const second = await submit('second')
  await isQueued(first)
  t.equal((await call('DELETE', `/jobs/${first}`)).status, 200)
  t.equal((await job(first)).status, 'canceled')
  disk.fails = undefined
  await clock.advance(1_000)
  await until(async () => (await job(second)).status === 'running', 'the next one')
  await until(() => engine.last.sent.length === 1)
  engine.last.complete()
  await until(async () => (await job(second)).status === 'succeeded', 'its end')
  t.equal(told().filter((type) => type === 'job_retrying').length, 0)
})

t.test('the end of a job is told, and shown, once the end of its turn is durable, too', async (t) => {
  const { disk, submit, job, told, clock, engine, registry } = await world(t)
  const heard: string[] = []
  registry.on('session_event', ({ event }) => void heard.push(event.type))
  const id = await submit()
  await until(() => engine.runners[0]?.sent.length === 1)
  await until(async () => (await job(id)).status === 'running')
  disk.fails = 'SQLITE_FULL'
  engine.last.complete({ usage: { ...NO_USAGE, outputTokens: 7 } })
  await until(() => engine.last.closed, 'the end of its engine')
  await until(() => !registry.isWritable, 'a refused write')
  t.match(await job(id), { status: 'running', usage: { tokens: 0 } })
  t.same(told(), ['job_submitted', 'job_started'])
  t.notOk(heard.includes('turn_completed'))
  disk.fails = undefined
  await until(async () => told().length === 3 || void (await clock.advance(1_000)), 'its end')
  t.match(await job(id), { status: 'succeeded', usage: { tokens: 7 } })
  t.same(heard.slice(-2), ['status_changed', 'session_closed'])
  t.ok(heard.includes('turn_completed'))
})

t.test('a gateway that closes does not wait for the turn of a job whose engine is still starting', async (t) => {
  const script = { start: () => new Promise<void>(() => {}) }
  const { gateway, engine, storage } = await buildJournaled(t, { queue: {}, script })
  const { id } = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'once' }, attempts: 2 })
  await until(() => engine.runners[0]?.host !== undefined)
  // virtual time: a wait for the turn would never end
  await gateway.close()
  t.same(engine.last.sent, [])
  t.ok(engine.last.closed)
  t.match((await storage.queue.get(id))?.info, { status: 'queued', attempt: 2 })
})

for (const how of ['succeeded', 'is tried again'] as const)
  t.test(`a job that ${how}, and whose session cannot be written, holds up no other`, async (t) => {
    const { gateway, engine, journal, registry, clock } = await buildJournaled(t, { queue: { maxConcurrency: 2 } })
    const queue = gateway.queue!
    const submit = (prompt: string) =>
      queue.submit({ session: { cwd: SOME_CWD, prompt }, attempts: 2, retryDelayMs: 0 })
    const given = (prompt: string) => engine.runners.filter(({ sent }) => sent.some(({ text }) => text === prompt))
    const first = await submit('first')
    await until(() => given('first').length === 1)
    const { sessionId } = (await queue.get(first.id))!
    const { write } = journal
    journal.write = (given) =>
      given.id === sessionId ? Promise.reject(new Error('refused')) : write.call(journal, given)
    engine.last.complete(how === 'succeeded' ? {} : { subtype: 'error_during_execution', isError: true })
    await until(() => engine.last.closed && !registry.isWritable, 'a refused write')
    await submit('second')
    await until(() => given('second').length === 1, 'the next job')
    const later = await queue.submit({ session: { cwd: SOME_CWD, prompt: 'later' }, runAt: clock.now() + 60_000 })
    t.equal((await queue.cancel(later.id)).status, 'canceled')
    t.match(await queue.get(first.id), { status: 'running', attempt: 1 })
    t.equal(given('first').length, 1)
    journal.write = write
    given('second')[0]!.complete()
    if (how === 'is tried again') {
      await until(async () => given('first').length === 2 || void (await clock.advance(1_000)), 'another attempt')
      given('first')[1]!.complete()
    }
    const over = async () => (await queue.get(first.id))?.status === 'succeeded'
    await until(async () => (await over()) || void (await clock.advance(1_000)), 'its end')
  })

t.test('what an engine says right before its end is told before the end of its job', async (t) => {
  const { submit, told, engine } = await world(t)
  await submit()
  await until(() => engine.runners[0]?.sent.length === 1)
  engine.last.say('the last word')
  engine.last.complete()
  await until(() => told().includes('job_completed'))
  t.same(told(), ['job_submitted', 'job_started', 'job_progress', 'job_completed'])
})

for (const [deaths, status] of [
  [1, 'succeeded'],
  [3, 'succeeded'],
  [4, 'failed'],
] as const)
  t.test(`${deaths} kills between the refusal of a session and the put-back of its job: ${status}`, async (t) => {
    const script = { send: (runner: { complete(): void }) => runner.complete() }
    const world = await buildJournaled(t, { queue: {}, script })
    const { storage, journal, kill, again, clock } = world
    journal.broken = true
    const { id } = await world.gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'once' }, attempts: 1 })
    let { gateway } = world
    const stored = async () => (await storage.queue.get(id))?.info
    for (let death = 1; death <= deaths; death++) {
      // a claim that has its session's id, and a storage that has no session
      await until(async () => (await stored())?.status === 'queued' || (await stored())?.sessionId !== undefined)
      kill()
      await storage.queue.update(id, { status: 'running', sessionId: `never-born-${death}` })
      await bury(gateway, clock)
      journal.broken = death < deaths
      gateway = (await again()).gateway
    }
    await until(async () => (await stored())?.finishedAt !== undefined || void (await clock.advance(1_000)), 'its end')
    t.match(await stored(), { status, attempt: 1 })
  })

t.test(
  'a refused cancel over midnight: its tokens are taken back from the day that they were charged to',
  async (t) => {
    const { disk, storage } = failingDisk()
    const { call, clock, engine } = await buildServer(t, { storage, queue: { maxConcurrency: 1 } })
    const { json } = await call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'once' } })
    await until(() => engine.runners[0]?.sent.length === 1)
    engine.last.host.emit({
      type: 'assistant_message',
      message: { role: 'assistant', content: 'words', usage: { ...NO_USAGE, outputTokens: 7 } },
      uuid: 'm1',
      parentToolUseId: null,
    })
    await until(async () => (await call('GET', `/jobs/${json.id}`)).json.usage.tokens === 7)
    const DAY_MS = 24 * 60 * 60 * 1000
    await clock.advance(DAY_MS - (clock.now() % DAY_MS) - 2_000)
    const day = (at: number) => new Date(at).toISOString().slice(0, 10)
    const [first, second] = [day(clock.now()), day(clock.now() + 10_000)]
    disk.only = 'queue.settle'
    disk.hold()
    const cancel = call('DELETE', `/jobs/${json.id}`)
    await until(() => disk.held > 0)
    await clock.advance(PATIENCE_MS)
    t.match(await cancel, { status: 503 })
    const { addDailyTokens } = storage.queue
    const takenBack: [string, number][] = []
    storage.queue.addDailyTokens = (...charge) => {
      takenBack.push(charge)
      return addDailyTokens(...charge)
    }
    disk.release()
    await until(() => takenBack.length > 0, 'taken back')
    t.same(takenBack, [[first, -7]])
    t.equal((await storage.queue.get(json.id))?.info.status, 'running')
    engine.last.complete()
    await until(async () => (await call('GET', `/jobs/${json.id}`)).json.status === 'succeeded')
    t.same([await storage.queue.dailyTokens(first), await storage.queue.dailyTokens(second)], [0, 7])
  },
)
