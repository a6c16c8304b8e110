import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import { CLIENT_HEADER, HOP_HEADER, signHop } from '../../src/cluster/hop-signature.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { attach, refusedUpgrade } from '../fixtures/client.js'
import { CLUSTER_SECRET, clusterOf, sessionOn } from '../fixtures/cluster.js'
import { isProblem } from '../fixtures/problem.js'
import { hasPostgres } from '../storage/postgres-world.js'

const authenticate = ({ headers }: { headers: { authorization?: string } }) =>
  headers.authorization === 'Bearer right' ? { name: 'somebody' } : null
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
}
