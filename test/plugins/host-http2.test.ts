import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import gatewayPlugin from '../../src/index.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'

t.test('over HTTP/2 a path that is a socket is refused, and the host lives on', async (t) => {
  const host = fastify({ http2: true, forceCloseConnections: true })
  await host.register(gatewayPlugin, hostWorld().options)
  await host.listen({ port: 0 })
  const client = connect(`http://127.0.0.1:${(host.server.address() as AddressInfo).port}`)
  t.teardown(async () => {
    client.close()
    await host.close()
  })
  const created = await getOver(client, '/v1/sessions', JSON.stringify({ cwd: SOME_CWD }))
  const { id } = JSON.parse(created.text)
  const refused = await getOver(client, `/v1/sessions/${id}/ws`)
  t.match(
    { ...refused, json: JSON.parse(refused.text) },
    { status: 426, upgrade: undefined, json: { code: 'SG_ERR_UPGRADE_REQUIRED' } },
  )
  t.match(await getOver(client, `/v1/sessions/${id}`), { status: 200 })
  const gzip = { 'content-encoding': 'gzip' }
  const encoded = await getOver(client, '/v1/sessions', '\u001f\u008b', gzip)
  t.match([encoded.status, JSON.parse(encoded.text).detail], [415, /without a Content-Encoding/])
  t.match(await getOver(client, '/v1/sessions', undefined, gzip), { status: 200 }, 'without a body')
})

t.test('over HTTP/2 a host is what the request is addressed to, and who leaves has left', async (t) => {
  const waiting: (() => void)[] = []
  let letIn = 0
  const host = fastify({ http2: true, forceCloseConnections: true })
  host.addHook('preHandler', async ({ url }) => {
    if (url.endsWith('/events')) letIn++
  })
  await host.register(gatewayPlugin, {
    ...hostWorld().options,
    ...{ allowUnauthenticated: false, allowedHosts: ['127.0.0.1'], console: true },
    authenticate: async ({ headers }) => {
      if (headers.accept === 'text/event-stream') await new Promise<void>((resolve) => waiting.push(resolve))
      return headers.authorization === 'Bearer right'
    },
  })
  await host.listen({ port: 0, host: '127.0.0.1' })
  const origin = `http://127.0.0.1:${(host.server.address() as AddressInfo).port}`
  const client = connect(origin)
  t.teardown(async () => {
    client.destroy()
    await host.close()
  })
  const signIn = JSON.stringify({ token: 'right' })
  t.match(await getOver(client, '/v1/console/sessions', signIn, { origin }), { status: 201 })
  t.match(await getOver(client, '/v1/console/sessions', signIn, { origin: 'http://evil.example' }), { status: 403 })
  t.match(await getOver(client, '/v1/console/sessions', signIn, { ':authority': 'evil.example' }), {
    ...{ status: 403, text: /SG_ERR_HOST_REFUSED/ },
  })
  const right = { authorization: 'Bearer right' }
  const created = await getOver(client, '/v1/sessions', JSON.stringify({ cwd: SOME_CWD }), right)
  const path = `/v1/sessions/${JSON.parse(created.text).id}`
  const stream = client.request({ ':path': `${path}/events`, accept: 'text/event-stream', ...right })
  await until(() => waiting.length === 1, 'somebody who waits to be let in')
  stream.destroy()
  await once(stream, 'close')
  await getOver(client, path, undefined, right)
  waiting[0]!()
  await until(() => letIn === 1, 'somebody who is let in')
  const clients = async () => JSON.parse((await getOver(client, path, undefined, right)).text).attachedClients
  await clients()
  t.equal(await clients(), 0)
})

async function getOver(client: ClientHttp2Session, path: string, body?: string, more: Record<string, string> = {}) {
  const sends = body !== undefined && { ':method': 'POST', 'content-type': 'application/json' }
  const request = client.request({ ':path': path, ...sends, ...more })
  let head: Record<string, unknown> = {}
  request.on('response', (headers) => {
    head = headers
  })
  request.end(body)
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return { status: head[':status'], upgrade: head.upgrade, text }
}
