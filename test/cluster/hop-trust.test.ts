import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import { HOP_HEADER, type HopMessage, signHop } from '../../src/cluster/hop-signature.js'
import { type Clock, systemClock } from '../../src/lib/clock.js'
import { silentLogger } from '../../src/lib/logger.js'
import { until } from '../fixtures/build.js'
import { refusedUpgrade } from '../fixtures/client.js'
import { CLUSTER_SECRET, clusterOf, sessionOn, type TestNode } from '../fixtures/cluster.js'
import { isProblem } from '../fixtures/problem.js'
import { hasPostgres } from '../storage/postgres-world.js'

/** What a node says of itself to whoever holds the secret. */
async function askAsNode(
  to: TestNode,
  message: Partial<HopMessage> & { path: string },
  { n = to.storage.cluster!.n, secret = CLUSTER_SECRET, now = Date.now(), signature = '' } = {},
) {
  const { url } = to.storage.cluster!.nodes().find((node) => node.n === to.storage.cluster!.n)!
  const whole = { method: 'GET', ...message }
  const signed = signature || signHop(secret, { from: 1, to: n }, whole, now)
  // fetch would send what gets a 421 once more
  const asked = httpRequest(`${url}${whole.path}`, {
    method: whole.method,
    headers: { [HOP_HEADER]: signed, ...(whole.authorization && { authorization: whole.authorization }) },
  }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += chunk
  return { signed, status: response.statusCode, json: JSON.parse(text) as { code?: string } }
}

interface Told {
  msg: string
  reason?: string
}

if (hasPostgres()) {
  t.test('nothing but what another node has signed comes in as a hop, and once', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'])
    const [a, b] = nodes
    const id = await sessionOn(a)
    const path = `/v1/sessions/${id}`
    const { signed, status } = await askAsNode(a, { path })
    t.equal(status, 200)
    const refused = { status: 403, json: { code: 'SG_ERR_HOP_REFUSED' } }
    t.match(await askAsNode(a, { path }, { signature: signed }), refused, 'replayed')
    t.match(await askAsNode(a, { path }, { signature: 'v1.nonsense' }), refused, 'no signature')
    t.match(await askAsNode(a, { path }, { secret: `${CLUSTER_SECRET}!` }), refused, 'of another secret')
    t.match(await askAsNode(a, { path }, { now: Date.now() - 31_000 }), refused, 'too old')
    const forOther = signHop(
      CLUSTER_SECRET,
      { from: 1, to: a.storage.cluster!.n },
      { method: 'GET', path: '/v1/other' },
      Date.now(),
    )
    t.match(await askAsNode(a, { path }, { signature: forOther }), refused, 'for another path')
    const withAuthorization = signHop(
      CLUSTER_SECRET,
      { from: 1, to: a.storage.cluster!.n },
      { method: 'GET', path, authorization: 'Bearer one' },
      Date.now(),
    )
    t.match(
      await askAsNode(a, { path, authorization: 'Bearer two' }, { signature: withAuthorization }),
      refused,
      'with credentials of somebody else',
    )
    t.match(await askAsNode(a, { path }, { n: 999_999 }), { status: 421, json: { code: 'SG_ERR_WRONG_NODE' } })
    t.match(await askAsNode(b, { path }), { status: 421, json: { code: 'SG_ERR_WRONG_NODE' } }, 'not passed on again')
    const fresh = signHop(CLUSTER_SECRET, { from: 1, to: b.storage.cluster!.n }, { method: 'GET', path }, Date.now())
    isProblem(t, await b.call('GET', `/sessions/${id}`, undefined, { [HOP_HEADER]: fresh }), 403, 'SG_ERR_HOP_REFUSED')
    const { url } = a.storage.cluster!.nodes().find(({ name }) => name === 'a')!
    t.equal((await fetch(`${url}/v1/sessions`)).status, 403, 'nobody is let in unsigned')
  })

  t.test('nodes that do not let each other in say so to callers as what the operator has to mend', async (t: Test) => {
    const told: Told[] = []
    const logger = { ...silentLogger, warn: (fields: object, msg: string) => void told.push({ ...fields, msg }) }
    const { nodes, join } = await clusterOf(t, ['a'], { logger })
    const [a] = nodes
    const secret = `${CLUSTER_SECRET}!`
    // as one whose clock is wrong sees the time; its lease goes by the database's
    const clock: Clock = { ...systemClock, now: () => Date.now() + 5 * 60_000 }
    const onA = await sessionOn(a)
    for (const [name, wrong, why] of [
      ['b', { secret }, /cluster\.secret/],
      ['c', { clock }, /clocks .* 30 s/],
    ] as const) {
      const node = await join(name, { ...wrong, logger: silentLogger })
      await until(() => node.storage.cluster!.nodes().length > 1, 'another node')
      for (const body of [undefined, { type: 'user_message', text: 'go on' }]) {
        const answer = await node.call(body ? 'POST' : 'GET', `/sessions/${onA}${body ? '/commands' : ''}`, body)
        isProblem(t, answer, 503, 'SG_ERR_NODE_UNREACHABLE')
        t.match(answer.json.detail, why)
        t.equal(answer.headers.get('sg-hop-refused'), null)
      }
      const upgrade = await refusedUpgrade(`${node.api.replace('http', 'ws')}/sessions/${onA}/ws`)
      t.match(
        { ...upgrade, ...JSON.parse(upgrade.body) },
        { status: 503, code: 'SG_ERR_NODE_UNREACHABLE', detail: why },
      )
    }
    t.equal((await a.call('GET', `/sessions/${onA}`)).json.numTurns, 1, 'nothing was done')
    const refusals = told.filter(({ reason }) => reason).map(({ reason }) => reason)
    t.same(refusals.sort(), ['forged', 'late'], 'each is told once, however often they ask')
  })

  t.test('two secrets are taken while they are exchanged', async (t: Test) => {
    const next = `${CLUSTER_SECRET}, the next one`
    const { nodes, join } = await clusterOf(t, ['a'], { secret: [CLUSTER_SECRET, next] })
    const [a] = nodes
    const b = await join('b', { secret: [next, CLUSTER_SECRET] })
    const [onA, onB] = [await sessionOn(a), await sessionOn(b)]
    t.equal((await b.call('GET', `/sessions/${onA}`)).status, 200)
    t.equal((await a.call('GET', `/sessions/${onB}`)).status, 200)
  })

  t.test('nodes are given another secret one after the other, and know each other all the while', async (t: Test) => {
    const next = `${CLUSTER_SECRET}, the next one`
    for (const [earlier, later] of [
      [CLUSTER_SECRET, [next, CLUSTER_SECRET]],
      [[next, CLUSTER_SECRET], next],
    ]) {
      const { nodes, join } = await clusterOf(t, ['a'], { secret: earlier! })
      const [a] = nodes
      const b = await join('b', { secret: later! })
      await until(() => a.storage.cluster!.nodes().length === 2, 'another node')
      const [onA, onB] = [await sessionOn(a), await sessionOn(b)]
      t.equal((await b.call('GET', `/sessions/${onA}`)).status, 200, 'as the one that has it already asks')
      t.equal((await a.call('GET', `/sessions/${onB}`)).status, 200, 'as the one that has it yet to get asks')
    }
  })

  t.test('what nodes ask each other in their own name is nobody else’s', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a'])
    const [a] = nodes
    const unknown = (await a.call('POST', '/cluster/v1/nothing', {})).json
    for (const path of ['changes', 'inbox', 'answers']) {
      const answer = await a.call('POST', `/cluster/v1/${path}`, {})
      isProblem(t, answer, 404, 'SG_ERR_NOT_FOUND')
      t.same({ ...answer.json, requestId: unknown.requestId, instance: unknown.instance }, unknown, path)
    }
    isProblem(t, await a.call('GET', '/cluster/v1/queue-events'), 404, 'SG_ERR_NOT_FOUND')
    for (const path of ['inbox', 'queue-events'])
      for (const method of ['PUT', 'OPTIONS'])
        isProblem(t, await a.call(method, `/cluster/v1/${path}`), 404, 'SG_ERR_NOT_FOUND')
  })

  t.test('who is not let in is not told that there are nodes', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a'], { authenticate: ({ headers }) => headers.caller })
    const [a] = nodes
    for (const path of ['/nothing', '/cluster/v1/nothing', '/cluster/v1/queue-events', '/cluster/v1/inbox']) {
      const method = path.endsWith('inbox') ? 'POST' : 'GET'
      isProblem(t, await a.call(method, path), 401, 'SG_ERR_UNAUTHENTICATED', path)
      isProblem(t, await a.call(method, path, undefined, { caller: 'ann' }), 404, 'SG_ERR_NOT_FOUND', path)
    }
  })
}
