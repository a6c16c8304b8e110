import t from 'tap'
import type { SqliteInternals } from '../../src/storage/sqlite/storage.js'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { native, ok } from '../fixtures/parked.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'
import { workerFile } from './sqlite-world.js'

/** What is asked of the database once the returned function is called. */
function counter() {
  let calls: string[] = []
  let commits = 0
  const onBatch: NonNullable<SqliteInternals['onBatch']> = (names) => {
    calls.push(...names)
    commits++
  }
  const from = () => {
    calls = []
    commits = 0
  }
  const of = (name: string) => calls.filter((one) => one === name).length
  return { onBatch, from, of, all: () => calls.length, commits: () => commits }
}

async function world(t: Parameters<typeof buildGateway>[0], options: Parameters<typeof buildGateway>[1] = {}) {
  const asked = counter()
  const path = `${t.testdir()}/gateway.db`
  const storage = createSqliteStorage({ path }, { worker: workerFile(), onBatch: asked.onBatch })
  return { asked, storage, ...(await buildGateway(t, { storage, ...options })) }
}

/** A backlog of jobs whose turns end as they begin, from the moment that the first ones may end. */
async function drained(t: Parameters<typeof buildGateway>[0], slots: number, jobs: number) {
  let held: ScriptedRunner[] | undefined = []
  const { asked, gateway } = await world(t, {
    script: { send: (runner) => void (held ? held.push(runner) : runner.complete()) },
    queue: { maxConcurrency: slots },
  })
  const queue = gateway.queue!
  let over = 0
  queue.on('job_event', ({ event }) => void (event.type === 'job_completed' && over++))
  await Promise.all(Array.from({ length: jobs }, () => queue.submit({ session: { cwd: SOME_CWD, prompt: 'go' } })))
  await until(() => held!.length === slots, 'taken slots')
  asked.from()
  const first = held
  held = undefined
  for (const runner of first) runner.complete()
  await until(() => over === jobs, 'the end of all jobs')
  return asked
}

t.test(
  'a job costs two commits with one slot: the birth of its session, and its end with the claim of the next',
  async (t) => {
    const asked = await drained(t, 1, 20)
    t.ok(asked.commits() <= 2 * 20, `${asked.commits()} commits`)
    t.ok(asked.all() <= 4 * 20, `${asked.all()} calls`)
    t.equal(asked.of('jobs.claim'), 19, 'one for each')
    t.equal(asked.of('jobs.update'), 0, 'begun by its claim')
  },
)

t.test('what a webhook is told of a job costs no write before it is delivered', async (t) => {
  const sink = await WebhookSink.start(t)
  const { asked, gateway, engine, storage } = await world(t, { script: native, queue: {} })
  const queue = gateway.queue!
  const webhook = { url: sink.url, progress: 'completion' as const }
  const { id } = await queue.submit({ session: { cwd: SOME_CWD, prompt: 'go' }, webhook })
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await queue.get(id))?.status === 'parked', 'a parked job')
  await gateway.executions.submit('e1', ok)
  await until(() => engine.runners.length === 2 && engine.last.settled.length === 1, 'a woken engine')
  engine.last.complete()
  await until(async () => sink.types.length === 4 && (await storage.outbox.list()).length === 0, 'all that is told')
  t.same(sink.types, ['job_started', 'job_parked', 'job_resumed', 'job_completed'])
  t.equal(asked.of('outbox.add'), 0, 'each is in the write of what it tells of')
  t.equal(asked.of('jobs.update'), 2, 'the park and the wake')
})

t.test('with fifty slots a job costs a tenth of a commit, and is not claimed alone', async (t) => {
  const asked = await drained(t, 50, 300)
  t.ok(asked.commits() <= 300 / 10, `${asked.commits()} commits`)
  t.ok(asked.all() <= 4.1 * 300, `${asked.all()} calls`)
  t.ok(asked.of('jobs.claim') <= 300 / 10, `${asked.of('jobs.claim')} claims`)
})

t.test('a session is there after one commit, and a turn of it takes three', async (t) => {
  const { asked, registry, engine } = await world(t)
  asked.from()
  const { id } = await registry.create({ cwd: SOME_CWD })
  t.equal(asked.commits(), 1, 'for the creation')
  await registry.durable(id)
  asked.from()
  await registry.send(id, { type: 'user_message', text: 'go' })
  await until(() => engine.last.sent.length === 1)
  engine.last.complete()
  await registry.durable(id)
  t.equal(asked.commits(), 3, 'what was asked for, the turn begun, the turn over')
  t.equal(asked.all(), 3, 'calls for a turn')
})

t.test('a park and a wake', async (t) => {
  const { asked, registry, engine, gateway } = await world(t, { script: native })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await registry.durable(id)
  asked.from()
  const runner = engine.last
  await runner.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked', 'a parked session')
  await registry.durable(id)
  t.comment(`${asked.commits()} commits, ${asked.all()} calls for a park`)
  t.ok(asked.commits() <= 4, `${asked.commits()} commits for a park`)
  asked.from()
  await gateway.executions.submit('e1', ok)
  await until(() => engine.last !== runner && engine.last.settled.length === 1, 'a woken engine')
  await registry.durable(id)
  t.comment(`${asked.commits()} commits, ${asked.all()} calls for a wake`)
  t.ok(asked.commits() <= 4, `${asked.commits()} commits for a wake`)
})

t.test(
  'a deferred execution is dispatched by what its session is written down with, also while that is busy',
  async (t) => {
    const sink = await WebhookSink.start(t)
    let answer = () => {}
    sink.answer = (_received, response) => {
      answer = () => void response.writeHead(204).end()
    }
    const tool = {
      name: 'elsewhere',
      description: 'Works.',
      inputSchema: { type: 'object' },
      dispatch: { url: sink.url },
    }
    const { asked, registry, engine, storage } = await world(t, { script: native, executions: { tools: [tool] } })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => engine.last.sent.length === 1)
    await registry.durable(id)
    asked.from()
    engine.last.say('I am')
    await new Promise(setImmediate)
    engine.last.say('waiting.')
    await engine.last.defer('e1')
    t.same(
      (await storage.outbox.list()).map((kept) => kept.id),
      ['e1'],
    )
    t.equal(asked.of('outbox.add'), 0, 'in no write of its own')
    await until(() => sink.received.length === 1, 'its delivery')
    answer()
  },
)
