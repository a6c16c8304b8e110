import t from 'tap'
import type { JobFilter, QueueAdapter } from '../../src/jobs/adapter.js'
import { newJob } from '../../src/jobs/job.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildGateway, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const JOB = { session: { cwd: SOME_CWD, prompt: 'go' } }

type Wrong = { [Name in keyof QueueAdapter]?: () => unknown }

/** An adapter of a host without what may be left out; `wrong` stands for its own methods. */
function adapterWith(wrong: Wrong): QueueAdapter {
  const inner = createMemoryQueueAdapter({ now: () => Date.now() })
  const { add, claimNext, get, list, update, prune, addDailyTokens, dailyTokens } = inner
  return { add, claimNext, get, list, update, prune, addDailyTokens, dailyTokens, ...wrong } as QueueAdapter
}

t.test('an answer that is none is a refusal that says so in the log, and not a failure of the gateway', async (t) => {
  const logged: string[] = []
  const error = ({ err }: { err?: Error }) => void logged.push(String((err?.cause as Error | undefined)?.message))
  const logger = { info() {}, warn() {}, error }
  for (const [name, wrong, path] of [
    ['list', () => [{}], '/jobs'],
    ['list', () => undefined, '/jobs'],
    ['get', () => 42, '/jobs/unknown'],
  ] as const) {
    let isWrong = false
    const inner = adapterWith({})
    const method = (...given: never[]) =>
      isWrong ? wrong() : (inner[name] as (...given: never[]) => unknown)(...given)
    const { call } = await buildServer(t, { logger, queue: { adapter: adapterWith({ [name]: method }) } })
    isWrong = true
    t.match((await call('GET', path)).json, { code: 'SG_ERR_STORE_UNAVAILABLE' }, name)
  }
  t.same(logged, [
    ...Array(2).fill("list() of the queue's adapter gave something else than a list of jobs."),
    "get() of the queue's adapter gave something else than a job or null.",
  ])
})

t.test('a total that is no number is tried again and told, and holds no other job without a word', async (t) => {
  const inner = adapterWith({})
  const logged: string[] = []
  let isWrong = false
  const added: number[] = []
  const addDailyTokens = (_day: string, tokens: number) => void added.push(tokens)
  const dailyTokens = async (_day: string) => (isWrong ? undefined : added.reduce((total, tokens) => total + tokens, 0))
  const logger = {
    info() {},
    warn() {},
    error: (fields: { err?: Error }) => void logged.push(String((fields.err?.cause as Error | undefined)?.message)),
  }
  const adapter = adapterWith({ ...inner, addDailyTokens, dailyTokens } as Wrong)
  const { gateway, engine, clock } = await buildGateway(t, { logger, queue: { adapter, dailyTokenLimit: 1_000 } })
  isWrong = true
  const first = await gateway.queue!.submit(JOB)
  await until(() => engine.runners[0]?.sent.length === 1)
  engine.runners[0]!.complete()
  await until(() => logged.length > 0)
  t.same(logged, ["dailyTokens() of the queue's adapter gave something else than a number."])
  isWrong = false
  await clock.advance(1_000)
  await until(async () => (await gateway.queue!.get(first.id))?.status === 'succeeded')
})

t.test('a queue that cannot start says why in the words of its adapter', async (t) => {
  const broken = () => Promise.reject(new Error('no table jobs'))
  await t.rejects(buildGateway(t, { queue: { adapter: adapterWith({ list: broken }) } }), {
    code: 'SG_ERR_OPTION',
    message: 'queue.adapter: no table jobs',
  })
  await t.rejects(buildGateway(t, { queue: { adapter: adapterWith({ list: () => [null] }) } }), {
    code: 'SG_ERR_OPTION',
    message: "queue.adapter: list() of the queue's adapter gave something else than a list of jobs.",
  })
})

t.test('tokens are added once by an adapter that gives no total, and the total is asked for', async (t) => {
  const added: number[] = []
  const addDailyTokens = (_day: string, tokens: number) => void added.push(tokens)
  const dailyTokens = async (_day: string) => added.reduce((total, tokens) => total + tokens, 0)
  const adapter = adapterWith({ addDailyTokens, dailyTokens } as Wrong)
  const { gateway, engine } = await buildGateway(t, { queue: { adapter, dailyTokenLimit: 1_000 } })
  const { id } = await gateway.queue!.submit(JOB)
  await until(() => engine.runners[0]?.sent.length === 1)
  const usage = { inputTokens: 7, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }
  engine.runners[0]!.complete({ usage })
  await until(async () => (await gateway.queue!.get(id))?.status === 'succeeded')
  t.same(added, [7])
  t.match(await gateway.queue!.stats(), { dailyTokensUsed: 7 })
})

for (const name of ['settle', 'addDailyTokens'] as const)
  t.test(`tokens are added once by ${name} that gives no total while that cannot be asked for, either`, async (t) => {
    const inner = adapterWith({})
    const added: number[] = []
    let isDown = false
    const dailyTokens = async () => {
      if (isDown) throw new Error('no connection')
      return added.reduce((total, tokens) => total + tokens, 0)
    }
    const { update } = inner
    const settle: QueueAdapter['settle'] = async (id, patch, { tokens }, expected) => {
      added.push(tokens)
      return { record: await update.call(inner, id, patch, expected) } as never
    }
    const addDailyTokens = (_day: string, tokens: number) => void added.push(tokens)
    const adapter = adapterWith({
      ...inner,
      dailyTokens,
      ...(name === 'settle' ? { settle } : { addDailyTokens }),
    } as Wrong)
    const { gateway, engine, clock } = await buildGateway(t, { queue: { adapter, dailyTokenLimit: 1_000 } })
    const { id } = await gateway.queue!.submit(JOB)
    await until(() => engine.runners[0]?.sent.length === 1)
    isDown = true
    const usage = { inputTokens: 7, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }
    engine.runners[0]!.complete({ usage })
    await until(() => added.length === 1)
    await clock.advance(60_000)
    isDown = false
    await clock.advance(60_000)
    await until(async () => (await gateway.queue!.get(id))?.status === 'succeeded')
    t.same(added, [7])
    t.match(await gateway.queue!.stats(), { dailyTokensUsed: 7 })
  })

t.test('a number that a driver gives as text, as those of bigint columns are, is a number', async (t) => {
  const clock = new VirtualClock()
  const inner = createMemoryQueueAdapter({ now: () => clock.now() })
  const asText = (name: string) => (item: object) => ({ ...item, [name]: String(item[name as never]) })
  const adapter = adapterWith({
    ...{ add: inner.add, claimNext: inner.claimNext, get: inner.get, update: inner.update, prune: inner.prune },
    addDailyTokens: async (...given: [string, number]) => String(await inner.addDailyTokens(...given)),
    dailyTokens: async (day: string) => BigInt(await inner.dailyTokens(day)),
    list: async (filter: JobFilter) => (await inner.list(filter)).map(asText('position')),
    counts: async () => (await inner.counts!()).map(asText('count')),
    delayed: async (...given: [number, number]) => (await inner.delayed!(...given)).map(asText('nextRunAt')),
  } as Wrong)
  const request = { ...JOB, runAt: clock.now() + 60_000 }
  const given = { now: clock.now(), profile: 'scripted', generation: 'g1', cwd: SOME_CWD }
  for (const id of ['left-1', 'left-2']) await inner.add({ request, info: newJob(request, { ...given, id }) })
  const { gateway, engine } = await buildGateway(t, { clock, queue: { adapter, dailyTokenLimit: 10 } })
  const queue = gateway.queue!
  for (const usage of [7, 8]) {
    const { id } = await queue.submit(JOB)
    await until(() => engine.runners.at(-1)?.sent.length === 1 && engine.runners.at(-1)?.turns === 0)
    t.match(await queue.stats(), { queued: 2, running: 1, paused: false })
    engine.runners.at(-1)!.complete({
      usage: { inputTokens: usage, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
    })
    await until(async () => (await queue.get(id))?.status === 'succeeded')
  }
  t.match(await queue.stats(), { queued: 2, running: 0, dailyTokensUsed: 15, paused: true })
})

t.test('and not in its name what the storage of its sessions says', async (t) => {
  const storage = createMemoryStorage()
  const inner = adapterWith({})
  const { gateway, engine } = await buildGateway(t, { storage, queue: { adapter: inner } })
  const { id: sessionId } = await gateway.registry.create({ cwd: SOME_CWD })
  await gateway.registry.end(sessionId)
  await gateway.registry.durable(sessionId)
  await gateway.queue!.submit(JOB)
  await until(() => engine.runners[1]?.sent.length === 1)
  const list = async (...given: Parameters<QueueAdapter['list']>) =>
    (await inner.list(...given)).map((job) => ({ ...job, info: { ...job.info, sessionId } }))
  const get = () => Promise.reject(new Error('no table sessions'))
  const journal = Object.assign(Object.create(storage.journal!), { get })
  const again = { ...createMemoryStorage(), journal }
  await t.rejects(buildGateway(t, { storage: again, queue: { adapter: { ...inner, list } } }), {
    code: 'SG_ERR_OPTION',
    message: 'storage: no table sessions',
  })
})
