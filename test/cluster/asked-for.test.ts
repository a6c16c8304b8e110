import t from 'tap'
import { answerPages } from '../../plugins/answer-page.js'
import { jobRoutes } from '../../plugins/jobs.js'
import { type NodeRequest, NodeUnreachable } from '../../src/cluster/cluster.js'
import { overNodes } from '../../src/cluster/over-nodes.js'
import { JobElsewhere } from '../../src/jobs/elsewhere.js'
import { systemClock } from '../../src/lib/clock.js'
import { silentLogger } from '../../src/lib/logger.js'
import { ANSWERS_KEY_HEADER, answerOverNodes } from '../../src/notifications/answers-over-nodes.js'
import type { ClusterNode } from '../../src/storage/cluster.js'
import fastify from '../fixtures/host.js'

const NODE = { n: 2, name: 'b', url: 'http://127.0.0.1:1' } as ClusterNode
const ANSWER = { sessionId: 's', requestId: 'r' }

/** What is asked of the other node for somebody, and what becomes of it here. */
function asker(answer: () => Promise<Response>) {
  const asked: NodeRequest[] = []
  const ask = (_node: ClusterNode, request: NodeRequest) => {
    asked.push(request)
    return answer()
  }
  const sent = { path: '/v1/inbox/answers', headers: {}, client: 'https 203.0.113.5' }
  const give = async () => {
    const cluster = { where: async () => NODE, ask, forget() {} }
    const [result] = await answerOverNodes([ANSWER], async () => [], cluster, sent)
    return result
  }
  const cancel = async () => {
    const app = fastify({ trustProxy: true })
    const queue = {
      visibleJob: async () => ({ id: 'j' }),
      cancel: async () => {
        throw new JobElsewhere('j', NODE)
      },
    }
    await app.register(jobRoutes, { queue: queue as never, cluster: { ask } })
    const headers = {
      'x-forwarded-for': '203.0.113.5',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'gateway.example',
    }
    return (await app.inject({ method: 'DELETE', url: '/jobs/0b0e5b1c-0000-4000-8000-000000000000', headers })).json()
  }
  return { asked, give, cancel }
}

t.test('what a node asks for somebody says where they are and came to: hooks there look at it, too', async (t) => {
  const { asked, give, cancel } = asker(async () => Response.json({ results: [{ ...ANSWER, resolved: true }] }))
  t.match(await give(), { resolved: true })
  await cancel()
  t.same(
    asked.map(({ client }) => client),
    ['https 203.0.113.5', 'https 203.0.113.5 gateway.example'],
  )
})

t.test('what is answered or asked of a session that went elsewhere is not refused for where it was', async (t) => {
  const other = { ...NODE, n: 3, name: 'c' }
  const places = new Map([['s', NODE]])
  const cluster = {
    self: { n: 1, name: 'a', url: '' },
    others: () => [NODE, other],
    where: async ({ session }: { session: string }) => places.get(session) ?? other,
    forget: ({ session }: { session: string }) => void places.delete(session),
    async ask({ n }: ClusterNode, { path, body }: NodeRequest) {
      const code = 'SG_ERR_SESSION_NOT_FOUND'
      if (path.endsWith('/answers') && path.includes('cluster'))
        return Response.json(n === other.n ? { given: { waits: true } } : { refused: { code, detail: '' } })
      const { answers } = JSON.parse(String(body)) as { answers: (typeof ANSWER)[] }
      const resultOf = (answer: object) => ({
        ...answer,
        ...(n === other.n ? { resolved: true } : { resolved: false, code }),
      })
      return Response.json({ results: answers.map(resultOf) })
    },
  }
  const sent = { path: '/v1/inbox/answers', headers: {}, client: 'http 203.0.113.5' }
  const answers = [{ sessionId: 'there', requestId: 'r' }, ANSWER]
  t.match(await answerOverNodes(answers, async () => [], cluster as never, sent), [
    { sessionId: 'there', resolved: true },
    { ...ANSWER, resolved: true },
  ])

  places.set('s', NODE)
  const { sessions } = overNodes(cluster as never, {} as never, {
    ...{ here: {} as never, waiting: () => ({}), basePath: '/v1', clock: systemClock, logger: silentLogger },
  })
  t.same(await sessions.waiting('s', 'r'), { waits: true })
})

t.test('the key that answers are kept under is the node’s to say, never its caller’s', async (t) => {
  const asked: NodeRequest[] = []
  const ask = async (_node: ClusterNode, request: NodeRequest) => {
    asked.push(request)
    return Response.json({ results: [{ ...ANSWER, resolved: true }] })
  }
  const cluster = { where: async () => NODE, ask, forget() {} }
  const headers = { 'idempotency-key': 'k', [ANSWERS_KEY_HEADER]: 'forged', 'x-other': 'stays' }
  const sent = { path: '/v1/inbox/answers', headers, client: 'http 203.0.113.5' }
  await answerOverNodes([ANSWER], async () => [], cluster, sent)
  await answerOverNodes([ANSWER], async () => [], cluster, { ...sent, key: 'scoped' })
  t.same(
    asked.map((request) => request.headers),
    [{ 'x-other': 'stays' }, { 'x-other': 'stays', [ANSWERS_KEY_HEADER]: 'scoped' }],
  )
})

t.test('nobody knows whether it was done what a node was asked for that did not answer', async (t) => {
  const fails = (unsent: boolean) => asker(() => Promise.reject(new NodeUnreachable(NODE, unsent, undefined)))
  const breaksOff = () =>
    asker(async () => new Response(new ReadableStream({ pull: (body) => body.error(new Error()) })))
  for (const { give, cancel } of [fails(false), breaksOff()]) {
    t.match(await give(), { resolved: false, code: 'SG_ERR_NODE_LOST' })
    t.match(await cancel(), { code: 'SG_ERR_NODE_LOST' })
  }
  const { give, cancel } = fails(true)
  t.match(await give(), { resolved: false, code: 'SG_ERR_NODE_UNREACHABLE' })
  t.match(await cancel(), { code: 'SG_ERR_NODE_UNREACHABLE' })
})

t.test('an answer by a link to what another node has is refused for that node, and not for the storage', async (t) => {
  const linksOver = (unsent: boolean) => {
    const ask = () => Promise.reject(new NodeUnreachable(NODE, unsent, undefined))
    const cluster = { self: { n: 1 }, others: () => [NODE], where: async () => NODE, forget() {}, ask }
    return overNodes(cluster as never, {} as never, {
      ...{ here: {} as never, waiting: () => ({}), basePath: '/v1', clock: systemClock, logger: silentLogger },
    }).sessions
  }
  const unreachable = { code: 'SG_ERR_NODE_UNREACHABLE', retryAfterS: 2, cause: { name: 'NodeUnreachable' } }
  await t.rejects(linksOver(true).resolve('s', 'r', { behavior: 'deny' }), unreachable)
  await t.rejects(linksOver(false).waiting('s', 'r'), unreachable, 'looking does nothing')
  const lost = linksOver(false).resolve('s', 'r', { behavior: 'deny' })
  await t.rejects(lost, { code: 'SG_ERR_NODE_LOST' })
  const app = fastify()
  t.teardown(() => app.close())
  await app.register(answerPages, { links: { nameOf: async () => undefined, answer: () => lost } as never })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const page = await app.inject({ method: 'POST', url: '/answer?token=x', headers, payload: 'behavior=deny' })
  t.equal(page.statusCode, 502)
  t.match(page.body, /Whether your answer was taken is not known\. Open the link again/)
})
