import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { deferred } from '../../src/lib/deferred.js'
import { createWorkerServer } from '../../src/server.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'

/** A worker whose stores are read as late as the test says; nobody lets it listen. */
function buildWorker(t: Test, list: () => Promise<[]> = async () => []) {
  const engine = new ScriptedEngine()
  const said: string[] = []
  const worker = createWorkerServer({
    allowUnauthenticated: true,
    profiles: [{ name: 'p', engine: 'provider', provider: { id: 'acme', model: 'm' } }],
    createEngineRunner: engine.create,
    profileStore: { ...createMemoryProfileStore(), list },
    logger: {
      info() {},
      warn: (_fields, message) => void said.push(message),
      error: (fields) => void said.push(inspect(fields)),
    },
  })
  t.teardown(() => worker.close())
  return { worker, said }
}

/** One whose server the host itself lets listen. */
async function build(t: Test, list?: () => Promise<[]>) {
  const { worker, said } = buildWorker(t, list)
  await once(worker.server.listen(0, '127.0.0.1'), 'listening')
  const { port } = worker.server.address() as AddressInfo
  return { worker, said, url: `http://127.0.0.1:${port}/v1` }
}

t.test('a server that its host lets listen serves what it serves otherwise', async (t) => {
  const { worker, url } = await build(t)
  t.equal((await fetch(`${url}/sessions`)).status, 200)
  const headers = { 'content-type': 'application/json' }
  const made = await fetch(`${url}/sessions`, { method: 'POST', headers, body: JSON.stringify({ cwd: process.cwd() }) })
  const { id } = (await made.json()) as { id: string }
  const socket = new WebSocket(`${url.replace('http', 'ws')}/sessions/${id}/ws`)
  t.match(JSON.parse(String((await once(socket, 'message'))[0])), { type: 'attached', session: { id } })
  const closed = once(socket, 'close')
  await worker.close()
  t.equal((await closed)[0], 1001)
  t.notOk(worker.server.listening)
})

t.test('who comes before the stores were read waits, upgrades too', async (t) => {
  const read = deferred<[]>()
  const { url } = await build(t, () => read.promise)
  const answered = fetch(`${url}/sessions`)
  const socket = new WebSocket(`${url.replace('http', 'ws')}/sessions/none/ws`)
  const refused = once(socket, 'unexpected-response')
  socket.on('error', () => {})
  const first = await Promise.race([answered, refused, new Promise((resolve) => setImmediate(resolve, 'nobody'))])
  t.equal(first, 'nobody')
  read.resolve([])
  t.equal((await answered).status, 200)
  t.equal((await refused)[1].statusCode, 404)
})

t.test('one that cannot start says so once, and hangs up', async (t) => {
  const { url, said } = await build(t, async () => Promise.reject(new Error('no disk')))
  for (const _ of [1, 2]) await t.rejects(fetch(`${url}/sessions`))
  t.same(said, ['the gateway could not start'])
})

t.test('a server of the host’s own may hand over what comes, also before the stores were read', async (t) => {
  const read = deferred<[]>()
  const { worker } = buildWorker(t, () => read.promise)
  const host = createServer((request, response) => worker.server.emit('request', request, response))
  const come = deferred<void>()
  host.on('upgrade', (...upgrade) => {
    worker.server.emit('upgrade', ...upgrade)
    come.resolve()
  })
  t.teardown(() => {
    host.closeAllConnections()
    host.close()
  })
  await once(host.listen(0, '127.0.0.1'), 'listening')
  const url = `127.0.0.1:${(host.address() as AddressInfo).port}/v1/sessions`
  const answered = fetch(`http://${url}`)
  const socket = new WebSocket(`ws://${url}/none/ws`)
  const refused = once(socket, 'unexpected-response')
  socket.on('error', () => {})
  await come.promise
  read.resolve([])
  t.equal((await answered).status, 200)
  t.equal((await refused)[1].statusCode, 404)
})

t.test('a request whose body the host’s own server has read is refused, and the host told why', async (t) => {
  const { worker, said } = buildWorker(t)
  const host = createServer((request, response) =>
    request.resume().once('end', () => worker.server.emit('request', request, response)),
  )
  t.teardown(() => host.close())
  await once(host.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}/v1/sessions`
  t.equal((await fetch(url)).status, 200)
  const headers = { 'content-type': 'application/json', connection: 'close' }
  // of which nobody would have read it
  const [got] = await once(request(url, { headers: { ...headers, 'content-length': 2 } }).end('{}'), 'response')
  t.equal(got.statusCode, 200)
  got.resume()
  const made = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ cwd: process.cwd() }) })
  t.equal(made.status, 500)
  t.match(said, [/The body was read before/])
})

t.test('whoever closes one that starts is told of no failure', async (t) => {
  const { worker, said } = await build(t, () => new Promise(() => {}))
  await worker.close()
  t.same(said, [])
})
