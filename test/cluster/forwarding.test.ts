import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { CLIENT_HEADER, HOP_HEADER, type HopMessage, signHop } from '../../src/cluster/hop-signature.js'
import { type Clock, systemClock } from '../../src/lib/clock.js'
import { silentLogger } from '../../src/lib/logger.js'
import { StorageError } from '../../src/storage/storage.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { attach, refusedUpgrade } from '../fixtures/client.js'
import { CLUSTER_SECRET, clusterOf, type TestNode } from '../fixtures/cluster.js'
import { freePort } from '../fixtures/free-port.js'
import { isProblem } from '../fixtures/problem.js'
import { hasPostgres } from '../storage/postgres-world.js'

/** A session on one node, with one turn that was answered. */
async function sessionOn(node: TestNode): Promise<string> {
  const { json } = await node.call('POST', '/sessions', { cwd: SOME_CWD })
  await node.call('POST', `/sessions/${json.id}/commands`, { type: 'user_message', text: 'hello' })
  node.engine.last.say('hello back', 'm1')
  node.engine.last.complete()
  await until(async () => (await node.call('GET', `/sessions/${json.id}/events`)).text.includes('turn_completed'))
  return json.id
}

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

const authenticate = ({ headers }: { headers: { authorization?: string } }) =>
  headers.authorization === 'Bearer right' ? { name: 'somebody' } : null
/** Where nobody listens. */
const unreachable = { url: 'http://127.0.0.1:1' }
const right = { authorization: 'Bearer right' }

if (hasPostgres()) {
  t.test('a session answers the same at every node', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b', 'c'])
    const [a, b, c] = nodes
    const id = await sessionOn(a)
    const direct = await a.call('GET', `/sessions/${id}`)
    for (const node of [b, c]) {
      const there = await node.call('GET', `/sessions/${id}`)
      t.same(there.json, direct.json, node.name)
      t.same(
        [...there.headers.keys()].filter((name) => !['date', 'connection', 'keep-alive'].includes(name)),
        [...direct.headers.keys()].filter((name) => !['date', 'connection', 'keep-alive'].includes(name)),
        'the same headers',
      )
      t.equal(
        (await node.call('GET', `/sessions/${id}/events`)).text,
        (await a.call('GET', `/sessions/${id}/events`)).text,
      )
    }
    const renamed = await c.call('PATCH', `/sessions/${id}`, { title: 'renamed elsewhere' })
    t.match(renamed, { status: 200, json: { title: 'renamed elsewhere' } })
    t.match((await b.call('GET', `/sessions/${id}`)).json, { title: 'renamed elsewhere' })
    isProblem(t, await b.call('POST', `/sessions/${id}/commands`, { type: 'nonsense' }), 400, 'SG_ERR_UNKNOWN_COMMAND')
    isProblem(t, await b.call('GET', '/sessions/nobodys'), 404, 'SG_ERR_SESSION_NOT_FOUND')
    isProblem(t, await b.call('GET', `/sessions/${id}/ws`), 426, 'SG_ERR_UPGRADE_REQUIRED')
    t.match((await b.call('DELETE', `/sessions/${id}`)).json, { id })
  })

  t.test('a socket over another node is the socket of the session', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'])
    const [a, b] = nodes
    const { json } = await a.call('POST', '/sessions', { cwd: SOME_CWD })
    const there = await attach(t, b.api, json.id)
    const here = await attach(t, a.api, json.id)
    there.send({ type: 'user_message', id: 'c1', text: 'over the hop' })
    await there.untilFrame('ack')
    a.engine.last.delta('typ', 'm1')
    a.engine.last.say('typed', 'm1')
    const asked = a.engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} })
    await there.untilEvent('permission_requested')
    const { pendingPermissions } = (await b.call('GET', `/sessions/${json.id}`)).json
    t.equal(pendingPermissions, 1)
    const { id: requestId } = there.events.flatMap((event) =>
      event.type === 'permission_requested' ? event.request : [],
    )[0]!
    const answer = await b.call('POST', `/sessions/${json.id}/permissions/${requestId}`, { behavior: 'allow' })
    t.match(answer, { status: 200, json: { resolved: true } })
    t.match(await asked, { behavior: 'allow' })
    a.engine.last.complete()
    await there.untilEvent('turn_completed')
    await here.untilEvent('turn_completed')
    t.same(there.events, here.events, 'event for event')
    await a.call('DELETE', `/sessions/${json.id}`)
    t.same(await there.untilClosed(), { code: 1000, reason: 'session_ended' })
  })

  t.test('an upgrade that the owner refuses is refused in its words', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'], { authenticate: authenticate as never, maxSocketsPerSession: 1 })
    const [a, b] = nodes
    const { json } = await a.call('POST', '/sessions', { cwd: SOME_CWD }, right)
    const url = `${b.api.replace('http', 'ws')}/sessions/${json.id}/ws`
    t.match(await refusedUpgrade(url), { status: 401, body: /SG_ERR_UNAUTHENTICATED/ })
    t.match(await refusedUpgrade(`${url}?afterSeq=-1`, { headers: right }), { status: 400, body: /SG_ERR_VALIDATION/ })
    t.match(await refusedUpgrade(url.replace(json.id, 'nobodys'), { headers: right }), {
      status: 404,
      body: /SG_ERR_SESSION_NOT_FOUND/,
    })
    isProblem(t, await b.call('GET', `/sessions/${json.id}`), 401, 'SG_ERR_UNAUTHENTICATED')
    t.match(await b.call('GET', `/sessions/${json.id}`, undefined, right), { status: 200 })
  })

  t.test('server-sent events come as they happen, and a reader that leaves is gone at the owner', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'])
    const [a, b] = nodes
    const id = await sessionOn(a)
    const gone = new AbortController()
    const stream = await fetch(`${b.api}/sessions/${id}/events`, {
      headers: { accept: 'text/event-stream' },
      signal: gone.signal,
    })
    t.match(stream.headers.get('content-type'), /^text\/event-stream/)
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader()
    let read = ''
    const readUntil = async (text: string) => {
      while (!read.includes(text)) read += (await reader.read()).value ?? ''
    }
    await readUntil('hello back')
    const clients = async () => (await a.call('GET', `/sessions/${id}`)).json.attachedClients
    await until(async () => (await clients()) === 1, 'the reader at the owner')
    await a.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
    await readUntil('more')
    gone.abort()
    await until(async () => (await clients()) === 0, 'the end of the reader at the owner')
  })

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

  t.test('bodies go through as they come, however large', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'], { maxBodyBytes: 8 * 1024 * 1024 })
    const [a, b] = nodes
    const id = await sessionOn(a)
    const text = 'x'.repeat(6 * 1024 * 1024)
    t.match(await b.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text }), { status: 200 })
    t.equal(a.engine.last.sent.at(-1)!.text, text)
    const tooMuch = 'x'.repeat(9 * 1024 * 1024)
    isProblem(
      t,
      await b.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: tooMuch }),
      413,
      'SG_ERR_BODY_TOO_LARGE',
    )
    const page = await b.call('GET', `/sessions/${id}/events`)
    t.ok(page.text.includes(text), 'and back')
  })

  t.test('a body stays a body, whatever its request says of the connection', async (t: Test) => {
    const refusals: object[] = []
    const logger = { info() {}, error() {}, warn: (fields: object) => void refusals.push(fields) }
    const { nodes } = await clusterOf(t, ['a', 'b'], { logger })
    const [a, b] = nodes
    const id = await sessionOn(a)
    const inside = 'GET /v1/sessions HTTP/1.1\r\nhost: x\r\n\r\n'
    const asked = httpRequest(`${b.api}/sessions/${id}`, {
      headers: { connection: 'content-length', 'content-length': inside.length },
    }).end(inside)
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    response.resume()
    t.equal(response.statusCode, 200)
    t.equal((await b.call('GET', `/sessions/${id}`)).status, 200)
    t.same(refusals, [], 'nothing of it was taken for a request')
  })

  t.test('a caller of whom a proxy says nonsense is still a caller', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a'])
    const [a] = nodes
    const path = '/v1/cluster/v1/inbox'
    const n = a.storage.cluster!.n
    const { url } = a.storage.cluster!.nodes()[0]!
    for (const client of ['http', '%', '']) {
      const signed = signHop(CLUSTER_SECRET, { from: 1, to: n }, { method: 'POST', path, client }, Date.now())
      const headers = { [HOP_HEADER]: signed, [CLIENT_HEADER]: client, 'content-type': 'application/json' }
      t.equal((await fetch(url + path, { method: 'POST', headers, body: '{}' })).status, 404, `'${client}'`)
    }
  })

  t.test('a client that leaves in the midst of its body leaves at the owner', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'])
    const [a, b] = nodes
    const id = await sessionOn(a)
    const asked = httpRequest(`${b.api}/sessions/${id}/commands`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': 1000 },
    })
    asked.on('error', () => {})
    asked.write('{"type":"user_message","text":"')
    await once(asked, 'socket')
    asked.destroy()
    t.equal((await b.call('GET', `/sessions/${id}`)).status, 200)
    t.notMatch(a.engine.last.sent.at(-1)!.text, /^$/)
  })

  t.test('a node that stops says so to the sockets that lead elsewhere', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'])
    const [a, b] = nodes
    const id = await sessionOn(a)
    const there = await attach(t, b.api, id)
    await b.stop()
    t.same(await there.untilClosed(), { code: 1001, reason: 'server_shutdown' })
    t.equal((await a.call('GET', `/sessions/${id}`)).status, 200, 'the session goes on')
  })

  t.test('what a node had that left is answered by the others', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b', 'c'])
    const [a, b, c] = nodes
    const id = await sessionOn(a)
    t.equal((await b.call('GET', `/sessions/${id}`)).status, 200)
    await a.stop()
    const states = async () => [
      (await b.call('GET', `/sessions/${id}`)).status,
      (await c.call('GET', `/sessions/${id}`)).status,
    ]
    await until(async () => (await states()).every((status) => status === 200), 'the session at the others')
    t.match(await c.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'again' }), { status: 200 })
    t.equal([b, c].filter(({ engine }) => engine.runners.length > 0).length, 1, 'one of them has it')
  })

  t.test(
    'a node that is asked by mistake does nothing, and the right one is asked then, with the whole body',
    async (t: Test) => {
      const { nodes } = await clusterOf(t, ['a', 'b', 'c'])
      const [a, b, c] = nodes
      const id = await sessionOn(a)
      const cluster = b.storage.cluster!
      const placeOfSession = cluster.placeOfSession.bind(cluster)
      const mistaken = cluster.nodes().find(({ name }) => name === 'c')!
      let mistakes = 2
      cluster.placeOfSession = async (id) => ({
        ...(await placeOfSession(id))!,
        ...(mistakes-- > 0 && { owner: mistaken }),
      })
      const say = (text: string) => b.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text })
      isProblem(t, await say('to nobody'), 503, 'SG_ERR_NODE_UNREACHABLE')
      mistakes = 1
      t.match(await say('x'.repeat(10_000)), { status: 200 })
      await until(() => a.engine.last.sent.length === 2, 'that the engine is told')
      t.equal(a.engine.last.sent[1]!.text.length, 10_000)
      t.equal(c.engine.runners.length, 0)
    },
  )

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
  })

  t.test('an owner that cannot be reached is a 503, and nothing was done', async (t: Test) => {
    const told: { err?: Error }[] = []
    const logger = { ...silentLogger, error: (fields: object) => void told.push(fields) }
    const { nodes, join } = await clusterOf(t, ['a'], { logger })
    const [a] = nodes
    const cut = await join('cut', { cluster: unreachable })
    const id = await sessionOn(cut)
    const read = await a.call('GET', `/sessions/${id}`)
    isProblem(t, read, 503, 'SG_ERR_NODE_UNREACHABLE')
    t.equal(read.json.detail, 'The node that has this cannot be reached. Try again shortly.')
    const { status, headers, json } = await a.call('DELETE', `/sessions/${id}`)
    t.match({ status, after: headers.get('retry-after') }, { status: 503, after: '2' })
    t.match(json.detail, 'so nothing was done')
    const why = {
      message: /^The node cut cannot be reached at http:\/\/127\.0\.0\.1:1,/,
      cause: { code: 'ECONNREFUSED' },
    }
    t.match(told, [{ err: { cause: why } }], 'its operator is told which one, and where')
    t.equal(told.length, 1, 'once for both')
    // as with the address of a third node
    const astray = await join('astray', { cluster: { url: a.storage.cluster!.nodes()[0]!.url } })
    const there = await sessionOn(astray)
    told.length = 0
    isProblem(t, await cut.call('GET', `/sessions/${there}`), 503, 'SG_ERR_NODE_UNREACHABLE')
    t.match(told, [
      { err: { cause: { message: /^The node astray/, cause: { message: /^Another node answers there/ } } } },
    ])
    t.equal((await cut.call('GET', `/sessions/${id}`)).status, 200)
  })

  t.test('a port that is taken is said by the name of its option', async (t: Test) => {
    const { nodes, join } = await clusterOf(t, ['a'])
    const { url } = nodes[0].storage.cluster!.nodes()[0]!
    const listen = { host: '127.0.0.1', port: Number(new URL(url).port) }
    await t.rejects(join('b', { cluster: { listen } }), {
      ...{ code: 'SG_ERR_OPTION', errors: [{ path: 'cluster.listen' }] },
      message: /another process/,
    })
    t.equal(nodes[0].storage.cluster!.nodes().length, 1, 'it has not joined')
  })

  t.test('a database that goes away between two questions of a request is a 503', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a'])
    const [a] = nodes
    const cluster = a.storage.cluster!
    const ask = cluster.placeOfExecution.bind(cluster)
    let asked = 0
    Object.assign(cluster, {
      placeOfExecution: (id: string) =>
        ++asked > 1 ? Promise.reject(new StorageError('STORAGE_FAILED', 'connection lost')) : ask(id),
    })
    const result = { status: 'ok', output: { type: 'text', value: '' } }
    isProblem(t, await a.call('POST', '/executions/unknown/result', result), 503, 'SG_ERR_STORE_UNAVAILABLE')
    t.equal(asked, 2)
  })

  t.test('and one that goes away while a session comes into memory that is this node’s already', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'])
    const [a, b] = nodes
    const id = await sessionOn(a)
    await a.stop()
    // as it is when what came of that was not heard
    t.equal((await b.storage.cluster!.claim(id))?.owner?.n, b.storage.cluster!.n)
    const journal = b.storage.journal!
    const get = journal.get.bind(journal)
    let asked = 0
    Object.assign(journal, {
      get: (id: string) =>
        ++asked === 2 ? Promise.reject(new StorageError('STORAGE_FAILED', 'connection lost')) : get(id),
    })
    const say = () => b.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
    isProblem(t, await say(), 503, 'SG_ERR_STORE_UNAVAILABLE')
    t.equal(asked, 2)
    t.match(await say(), { status: 200 })
  })

  t.test('an owner that goes away in the midst of its answer: nobody takes what came for whole', async (t: Test) => {
    // where the others reach it: what it says passes, until it is cut
    let toOwner = 0
    const passed: Socket[] = []
    const relay = createServer((client) => {
      const owner = connect(toOwner, '127.0.0.1')
      passed.push(client)
      owner.on('error', () => {}).on('data', (chunk) => client.write(chunk))
      client.on('error', () => {}).on('data', (chunk) => owner.write(chunk))
      client.on('close', () => owner.destroy())
    }).listen(0, '127.0.0.1')
    await once(relay, 'listening')
    t.teardown(() => relay.close())
    const port = (relay.address() as AddressInfo).port
    const { nodes, join } = await clusterOf(t, ['a'])
    // not before: whatever connects to something is given a port of the same range
    toOwner = await freePort()
    const owner = await join('owner', {
      cluster: { url: `http://127.0.0.1:${port}`, listen: { host: '127.0.0.1', port: toOwner } },
    })
    const id = await sessionOn(owner)
    const [a] = nodes
    t.equal((await a.call('GET', `/sessions/${id}`)).status, 200)
    const stream = await fetch(`${a.api}/sessions/${id}/events`, { headers: { accept: 'text/event-stream' } })
    const reader = stream.body!.getReader()
    t.match(new TextDecoder().decode((await reader.read()).value), /event: attached|data:/)
    for (const socket of passed) socket.destroy()
    await t.rejects(async () => {
      while (!(await reader.read()).done);
    }, 'its end is none')
    const other = await sessionOn(a)
    t.equal((await a.call('GET', `/sessions/${other}`)).status, 200, 'nobody else is harmed')
    t.equal((await a.call('GET', `/sessions/${id}`)).status, 200, 'and it is asked again')
  })
}
