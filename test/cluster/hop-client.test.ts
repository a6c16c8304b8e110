import { once } from 'node:events'
import http, { createServer } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { endToEnd, HopClient } from '../../src/cluster/hop-client.js'
import { CLIENT_HEADER, HOP_HEADER, HopVerifier, signHop, signHopAgain } from '../../src/cluster/hop-signature.js'
import type { ClusterNode } from '../../src/storage/cluster.js'
import { until } from '../fixtures/build.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test('a caller names headers of the connection, and none that the message needs', async (t) => {
  const sent = ['Host', 'x', 'X-Own', '1', 'Content-Length', '3', 'Cookie', 'a=b', 'Keep-Alive', '5']
  t.same(endToEnd(sent, 'close, X-Own, content-length, Host, cookie'), [
    ...['Host', 'x', 'Content-Length', '3', 'Cookie', 'a=b'],
  ])
})

t.test('an answer has to come whole in time, but for a stream, of which its head has to', async (t) => {
  const clock = new VirtualClock()
  let begun = 0
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
    response.write('{"results":', () => begun++)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const hops = new HopClient({ secret: 'of these nodes', clock, from: () => 1 })
  t.teardown(() => {
    hops.close()
    server.closeAllConnections()
    server.close()
  })
  const node = { n: 2, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } as ClusterNode
  const whole = await hops.ask(node, { method: 'GET', path: '/v1/whole' })
  const stream = await hops.ask(node, { method: 'GET', path: '/v1/stream', isStream: true })
  await until(() => begun === 2, 'the heads')
  const reader = stream.body!.getReader()
  await clock.advance(5_000)
  await t.rejects(whole.text(), 'it is not waited for any longer')
  t.equal(new TextDecoder().decode((await reader.read()).value), '{"results":')
})

t.test('an answer that breaks off is none, however it looks', async (t) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
    response.write('{"results":[]}', () => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const hops = new HopClient({ secret: 'of these nodes', clock: new VirtualClock(), from: () => 1 })
  t.teardown(() => {
    hops.close()
    server.close()
  })
  const node = { n: 2, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } as ClusterNode
  await t.rejects((async () => (await hops.ask(node, { method: 'GET', path: '/v1/x' })).text())())
})

t.test('whoever something is asked for is said under the signature', async (t) => {
  const clock = new VirtualClock()
  const verifier = new HopVerifier(['of these nodes'], () => clock.now())
  const verdicts: unknown[] = []
  const server = createServer(({ method = '', url: path = '', headers }, response) => {
    const client = String(headers[CLIENT_HEADER])
    verdicts.push(client, verifier.verify(headers[HOP_HEADER], { method, path, client }, 2))
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const hops = new HopClient({ secret: 'of these nodes', clock, from: () => 1 })
  t.teardown(() => {
    hops.close()
    server.close()
  })
  const node = { n: 2, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } as ClusterNode
  const headers = { [CLIENT_HEADER]: 'http forged' }
  await (await hops.ask(node, { method: 'GET', path: '/v1/x', headers, client: 'https 203.0.113.5' })).text()
  t.same(verdicts, ['https 203.0.113.5', { from: 1, to: 2 }])
})

t.test('of two signatures one has to be right', async (t) => {
  const verifier = new HopVerifier(['of these nodes'], () => 0)
  const message = { method: 'GET', path: '/v1/sessions' }
  const judged = (secret: string, otherOf: (hop: string) => unknown) => {
    const hop = signHop(secret, { from: 1, to: 2 }, message, 0)
    return verifier.verify(hop, message, 2, otherOf(hop))
  }
  const by =
    (secret: string, of = message) =>
    (hop: string) =>
      signHopAgain(secret, hop, of)
  t.same(judged('a new one', by('of these nodes')), { from: 1, to: 2 })
  t.same(judged('of these nodes', by('a new one')), { from: 1, to: 2 })
  t.equal(judged('a new one', by('of others')), 'forged')
  t.equal(judged('a new one', by('of these nodes', { ...message, path: '/v1/jobs' })), 'forged')
  for (const nonsense of [undefined, '', 'é'.repeat(43), ['x', 'y']])
    t.equal(
      judged('a new one', () => nonsense),
      'forged',
    )
})

t.test('a node that is gone is asked no more, though it may still take connections', async (t) => {
  let asked = 0
  // stopped, the system takes connections for it, and nobody answers
  const server = createServer(() => asked++).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const hops = new HopClient({ secret: 'of these nodes', clock: new VirtualClock(), from: () => 1 })
  t.teardown(() => {
    hops.close()
    server.closeAllConnections()
    server.close()
  })
  const node = { n: 2, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } as ClusterNode
  const get = { method: 'GET', path: '/v1/sessions/1' }
  const ask = () => t.rejects(hops.ask(node, get), { name: 'NodeUnreachable' })
  // one that has just joined may be asked before it is heard of
  const early = ask()
  await until(() => asked === 1, 'it is asked')
  hops.keep([node])
  hops.keep([])
  await early
  await t.rejects(hops.ask(node, get), { name: 'NodeUnreachable', unsent: true })
  t.equal(asked, 1)
  hops.keep([node])
  const again = ask()
  await until(() => asked === 2, 'it is there again')
  hops.close()
  await again
})

t.test('what traces the requests of a process may add to their headers', async (t) => {
  const { request } = http
  const traced = (options: http.RequestOptions) =>
    // as the instrumentation of OpenTelemetry does
    request({ ...options, headers: Object.assign({}, options.headers, { traceparent: '00-1-2-01' }) })
  const patch = (by: unknown) => {
    http.request = by as typeof request
    syncBuiltinESMExports()
  }
  patch(traced)
  const server = createServer(({ rawHeaders }, response) => response.end(JSON.stringify(rawHeaders))).listen(0)
  await once(server, 'listening')
  const hops = new HopClient({ secret: 'of these nodes', clock: new VirtualClock(), from: () => 1 })
  t.teardown(() => {
    patch(request)
    hops.close()
    server.close()
  })
  const node = { n: 2, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } as ClusterNode
  const sent = ['Host', 'gateway.example', 'X-Own', '1', 'Cookie', 'a=b', 'x-own', '2', 'traceparent', '00-0-0-01']
  sent.push('host', 'another.example')
  const asked = hops.open(node, { method: 'GET', path: '/v1/x' }, sent).end()
  const [answer] = await once(asked, 'response')
  const heard = JSON.parse(Buffer.concat(await answer.toArray()).toString())
  t.same(heard.slice(0, 8), ['Host', 'gateway.example', 'X-Own', '1', 'X-Own', '2', 'Cookie', 'a=b'])
  t.same(heard.slice(8, 12), ['traceparent', '00-1-2-01', HOP_HEADER, heard[11]])
})
