import t from 'tap'
import { Exchange, type Peers } from '../../src/cluster/exchange.js'
import { type Logger, silentLogger } from '../../src/lib/logger.js'
import type { ClusterNode } from '../../src/storage/cluster.js'
import { until } from '../fixtures/build.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const nodeOf = (n: number) => ({ n, name: `node ${n}` }) as ClusterNode

/** Of two others, the second of which begins to answer and says no more. */
function world(logger: Logger = silentLogger) {
  const clock = new VirtualClock()
  const asked: string[] = []
  const heard: number[] = []
  let signal: AbortSignal | undefined
  const peers: Peers = {
    others: () => [nodeOf(1), nodeOf(2)],
    async ask({ n }, request) {
      asked.push(`${n} ${request.path}`)
      if (n === 1) {
        const answer = Response.json({ waits: 3 })
        const text = answer.text.bind(answer)
        return Object.assign(answer, { text: () => text().finally(() => heard.push(n)) })
      }
      signal = request.signal
      return new Response(new ReadableStream({ start: (body) => body.enqueue(new TextEncoder().encode('{"wai')) }))
    },
  }
  const parts = { peers, n: () => 0, waiting: () => ({}) as never, basePath: '/v1', clock, logger }
  return { clock, asked, heard, exchange: new Exchange(parts), isGivenUp: () => signal?.aborted }
}

t.test('a node that stands still in the midst of its answer is left out', async (t) => {
  const { clock, exchange, heard, isGivenUp } = world()
  const answers = exchange.askAll<object>('/inbox', {})
  await until(() => heard.length === 1, 'the first has answered')
  await clock.advance(2_000)
  t.same([...(await answers)], [[1, { waits: 3 }]])
  t.ok(isGivenUp(), 'what is left of it is not read')
})

t.test('so is one that is told something: it holds up nobody, and is told again', async (t) => {
  const { clock, exchange, asked } = world()
  const told = exchange.tell('signIns')
  await until(() => asked.length === 2, 'both are told')
  await clock.advance(2_000)
  await told
  await clock.advance(1_000)
  await until(() => asked.length > 2, 'the second is told again')
  t.same(asked.slice(2), ['2 /v1/cluster/v1/changes'])
})

t.test('an operator is told once of one that is never there', async (t) => {
  const warned: object[] = []
  const { clock, exchange, asked } = world({ ...silentLogger, warn: (fields: object) => warned.push(fields) } as Logger)
  void exchange.tell('inbox')
  for (let times = 1; times <= 5; times++) {
    await until(() => asked.filter((one) => one.startsWith('2')).length === times, 'it is told')
    t.equal(warned.length, times > 3 ? 1 : 0, `before it has failed ${times} times`)
    await clock.advance(2_000)
    await new Promise(setImmediate)
    await clock.advance(1_000)
  }
  t.match(warned, [{ node: 'node 2', err: { message: /no answer/ } }])
})

t.test('so is whoever else answers in its place, and not a node that refuses for now', async (t) => {
  const problem = (status: number, code: string) => () =>
    Response.json({ code }, { status, headers: { 'content-type': 'application/problem+json; charset=utf-8' } })
  const page = (status: number) => () => new Response('<html>', { status, headers: { 'content-type': 'text/html' } })
  const warnedOf = async (answer: () => Response) => {
    const warned: { err: Error }[] = []
    const clock = new VirtualClock()
    let asked = 0
    const peers: Peers = {
      others: () => [nodeOf(1)],
      ask: async () => {
        asked++
        return answer()
      },
    }
    const logger = { ...silentLogger, warn: (fields: { err: Error }) => warned.push(fields) } as unknown as Logger
    const exchange = new Exchange({ peers, n: () => 0, waiting: () => ({}), basePath: '/v1', clock, logger })
    for (let times = 1; times <= 4; times++) {
      await exchange.tell('inbox')
      await clock.advance(1_000)
      await until(() => asked >= times, 'it is told')
    }
    exchange.close()
    return warned.map(({ err }) => err.message)
  }
  t.match(await warnedOf(page(404)), [/\(404\) is no node/])
  t.match(await warnedOf(page(200)), [/\(200\) is no node/])
  t.match(await warnedOf(() => Response.json({ message: 'Bad gateway' }, { status: 502 })), [/\(502\) is no node/])
  t.match(await warnedOf(problem(421, 'SG_ERR_WRONG_NODE')), [/421 SG_ERR_WRONG_NODE\) is another node/])
  t.match(await warnedOf(problem(403, 'SG_ERR_HOP_REFUSED')), [/, or where clients ask/])
  t.same(await warnedOf(problem(503, 'SG_ERR_SHUTTING_DOWN')), [])
  t.same(await warnedOf(() => Response.json({})), [])
})
