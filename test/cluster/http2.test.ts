import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2'
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { gatewayPlugin } from '../../plugins/gateway.js'
import type { WorkerServerOptions } from '../../src/options.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { until } from '../fixtures/build.js'
import { CLUSTER_SECRET, clusterOf, sessionOn, type TestCluster } from '../fixtures/cluster.js'
import { freePort } from '../fixtures/free-port.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

/** One more node, in a host that speaks HTTP/2, and a client of it. */
async function http2Node(t: Test, { schema, nodes }: TestCluster, more: Partial<WorkerServerOptions> = {}) {
  const storage = createPostgresStorage({ url: (await postgres()).url(), schema })
  const cluster = {
    ...{ node: 'http2', secret: CLUSTER_SECRET, leaseMs: 10_000, agentState: 'node' as const },
    ...{ url: 'http://127.0.0.1:0', listen: { host: '127.0.0.1', port: 0 } },
  }
  const host = fastify({ http2: true, forceCloseConnections: true })
  await host.register(gatewayPlugin, { ...hostWorld().options, ...more, storage, cluster })
  await host.listen({ port: 0, host: '127.0.0.1' })
  await until(() => nodes.every((node) => node.storage.cluster!.nodes().length === nodes.length + 1), 'all nodes')
  const client = connect(`http://127.0.0.1:${(host.server.address() as AddressInfo).port}`)
  t.teardown(async () => {
    client.destroy()
    await host.close()
  })
  return { client, storage }
}

interface Sent {
  method?: string
  body?: string
  headers?: Record<string, string>
}

function send(client: ClientHttp2Session, path: string, { method = 'GET', body, headers }: Sent = {}) {
  const typed = body !== undefined && { 'content-type': 'application/json' }
  return client.request({ ':path': `/v1${path}`, ':method': method, ...typed, ...headers }).end(body)
}

async function answerOf(stream: ClientHttp2Stream) {
  const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders & { ':status'?: number }]
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) text += chunk
  return { status: head[':status'], head, text }
}

const ask = (client: ClientHttp2Session, path: string, sent?: Sent) => answerOf(send(client, path, sent))

if (hasPostgres()) {
  t.test('a session of another node answers over HTTP/2 as over HTTP/1', async (t: Test) => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => void warnings.push(warning)
    process.on('warning', onWarning)
    t.teardown(() => process.off('warning', onWarning))
    const limit = { maxBodyBytes: 500_000 }
    const cluster = await clusterOf(t, ['a'], limit)
    const [a] = cluster.nodes
    const { client } = await http2Node(t, cluster, limit)
    const id = await sessionOn(a)
    const direct = await a.call('GET', `/sessions/${id}`)
    const read = await ask(client, `/sessions/${id}`)
    t.equal(read.text, direct.text)
    const names = [...direct.headers.keys()].filter((name) => name !== 'connection' && name !== 'keep-alive')
    t.same(Object.keys(read.head).sort(), [':status', ...names].sort(), 'no header of a connection')
    const head = await ask(client, `/sessions/${id}`, { method: 'HEAD' })
    t.match({ ...head, length: head.head['content-length'] }, { status: 200, text: '', length: /^\d+$/ })
    t.match(await ask(client, `/sessions/${id}/ws`), { status: 426 })
    t.match(await ask(client, `/sessions/${id}`, { headers: { host: 'other.example' } }), { status: 200 })

    const saying = (text: string, isMeasured: boolean) => {
      const body = JSON.stringify({ type: 'user_message', text })
      const headers = isMeasured ? { 'content-length': `${Buffer.byteLength(body)}` } : {}
      return send(client, `/sessions/${id}/commands`, { method: 'POST', body, headers })
    }
    for (const isMeasured of [false, true]) {
      for (const text of ['short', 'long'.repeat(100_000)]) {
        t.match(await answerOf(saying(text, isMeasured)), { status: 200 })
        await until(() => a.engine.last.sent.at(-1)!.text === text, 'the whole of it at the engine')
        a.engine.last.complete()
      }
      const tooMuch = saying('x'.repeat(1_000_000), isMeasured)
      const over = new Promise((resolve) => tooMuch.once('close', resolve))
      t.match(await answerOf(tooMuch), { status: 413, text: /SG_ERR_BODY_TOO_LARGE/ })
      await over
    }
    const renamed = { method: 'PATCH', body: JSON.stringify({ title: 'renamed' }) }
    t.match(await ask(client, `/sessions/${id}`, renamed), { status: 200, text: /"title":"renamed"/ })

    const asked = a.engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} })
    await until(async () => (await a.call('GET', `/sessions/${id}`)).json.pendingPermissions === 1, 'a request')
    const [waiting] = JSON.parse((await ask(client, '/inbox')).text)
    const answers = [{ sessionId: id, requestId: waiting.request.id, behavior: 'allow' }]
    const given = await ask(client, '/inbox/answers', { method: 'POST', body: JSON.stringify({ answers }) })
    t.match({ status: given.status, ...JSON.parse(given.text) }, { status: 200, results: [{ resolved: true }] })
    t.match(await asked, { behavior: 'allow' })

    t.match(await ask(client, `/sessions/${id}`, { method: 'DELETE', headers: { te: 'trailers' } }), { status: 200 })
    t.same(warnings, [], 'Node has nothing to say of what was written')
  })

  t.test('and its stream comes as it happens, to somebody who may leave', async (t: Test) => {
    const cluster = await clusterOf(t, ['a'])
    const [a] = cluster.nodes
    const { client } = await http2Node(t, cluster)
    const id = await sessionOn(a)
    const stream = send(client, `/sessions/${id}/events`, { headers: { accept: 'text/event-stream' } })
    let read = ''
    stream.setEncoding('utf8').on('data', (chunk) => {
      read += chunk
    })
    await until(() => read.includes('hello back'), 'what there is')
    await a.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
    await until(() => read.includes('more'), 'what comes')
    const clients = async () => (await a.call('GET', `/sessions/${id}`)).json.attachedClients
    t.equal(await clients(), 1)
    stream.destroy()
    await until(async () => (await clients()) === 0, 'the end of the reader at the owner')
  })

  t.test('an answer that breaks off at the owner is no whole one over HTTP/2 either', async (t: Test) => {
    const cluster = await clusterOf(t, ['a'])
    const relay = await relayed(t)
    const owner = await cluster.join('owner', { cluster: relay.cluster })
    const { client } = await http2Node(t, { ...cluster, nodes: [...cluster.nodes, owner] })
    const id = await sessionOn(owner)
    const stream = send(client, `/sessions/${id}/events`, { headers: { accept: 'text/event-stream' } })
    await once(stream, 'data')
    stream.resume()
    relay.cut()
    await t.rejects(once(stream, 'end'), { code: 'ERR_HTTP2_STREAM_ERROR' })

    const begun = client.request({
      ...{ ':method': 'POST', ':path': `/v1/sessions/${id}/commands`, 'content-type': 'application/json' },
    })
    begun.write('{"type":"user_message","text":"half of it')
    await until(() => relay.has('half of it'), 'the beginning of the body at the owner')
    const over = new Promise((resolve) => begun.once('close', resolve))
    relay.cut()
    const lost = await answerOf(begun)
    t.match(lost, { status: 502, text: /SG_ERR_NODE_LOST/ })
    begun.end('x'.repeat(300_000))
    await over
  })
}

/** Between a node and the others. */
async function relayed(t: Test) {
  const passed: Socket[] = []
  let toOwner = 0
  let passedOn = ''
  const relay = createServer((client) => {
    const owner = connectTo(toOwner, '127.0.0.1')
    passed.push(client)
    for (const [one, other] of [[client, owner] as const, [owner, client] as const])
      one
        .on('error', () => {})
        .on('close', () => other.destroy())
        .on('data', (chunk) => {
          passedOn += chunk
        })
        .pipe(other)
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  t.teardown(() => relay.close())
  toOwner = await freePort()
  const url = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`
  const cut = () => {
    for (const socket of passed) socket.destroy()
  }
  return {
    cluster: { url, listen: { host: '127.0.0.1', port: toOwner } },
    cut,
    has: (text: string) => passedOn.includes(text),
  }
}
