import t from 'tap'
import type { QueueAdapter } from '../../src/jobs/adapter.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { buildGateway, buildServer, SOME_CWD, until } from '../fixtures/build.js'

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
  let isWrong = true
  const addDailyTokens = (day: string, tokens: number) => (isWrong ? undefined : inner.addDailyTokens(day, tokens))
  const logger = {
    info() {},
    warn() {},
    error: (fields: { err?: Error }) => void logged.push(String((fields.err?.cause as Error | undefined)?.message)),
  }
  const adapter = adapterWith({ ...inner, addDailyTokens } as Wrong)
  const { gateway, engine, clock } = await buildGateway(t, { logger, queue: { adapter, dailyTokenLimit: 1_000 } })
  const first = await gateway.queue!.submit(JOB)
  await until(() => engine.runners[0]?.sent.length === 1)
  engine.runners[0]!.complete()
  await until(() => logged.length > 0)
  t.same(logged, ["addDailyTokens() of the queue's adapter gave something else than a number."])
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
