import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import gatewayPlugin from '../../src/index.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { CLUSTER_SECRET } from '../fixtures/cluster.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'
import { HANDSHAKE, rawRequest } from '../fixtures/raw-http.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

const TOKEN = 'token-of-ann'
/** Where the proxy is, which is not where nodes ask each other from. */
const PROXY = '127.0.0.2'
const HERE = 'https://gateway.example'
const FORWARDED = { host: '10.0.0.5:3000', 'x-forwarded-host': 'gateway.example', 'x-forwarded-proto': 'https' }

/** A node in a host that trusts the proxy alone. */
async function startNode(t: Test, node: string) {
  const storage = createPostgresStorage({ url: (await postgres()).url(), schema: 'behind_proxy' })
  const cluster = {
    ...{ node, secret: CLUSTER_SECRET, leaseMs: 10_000, agentState: 'node' as const },
    ...{ url: 'http://127.0.0.1:0', listen: { host: '127.0.0.1', port: 0 } },
  }
  const { engine: _, options } = hostWorld()
  const hosts: string[] = []
  const authenticate = ({ headers, host }: { headers: { authorization?: string | undefined }; host: string }) => {
    hosts.push(host)
    return headers.authorization === `Bearer ${TOKEN}` && { name: 'ann' }
  }
  const host = fastify({ trustProxy: PROXY, forceCloseConnections: true })
  t.teardown(() => host.close())
  const given = { ...options, allowUnauthenticated: false, authenticate, console: true, storage, cluster }
  await host.register(gatewayPlugin, given)
  await host.listen({ port: 0, host: '127.0.0.1' })
  return { host, storage, hosts, port: (host.server.address() as AddressInfo).port }
}

if (hasPostgres())
  t.test('a page is of the host that the proxy was asked for also at the node that it is passed on to', async (t) => {
    const [a, b] = [await startNode(t, 'a'), await startNode(t, 'b')]
    await until(() => [a, b].every(({ storage }) => storage.cluster!.nodes().length === 2), 'both nodes')
    const { id } = await a.host.gateway.registry.create({ cwd: SOME_CWD })
    const ask = (method: string, path: string, headers: Record<string, string>, body?: object) =>
      rawRequest(b.port, {
        ...{ method, path: `/v1${path}`, from: PROXY, headers: { ...FORWARDED, ...headers } },
        ...(body && { body: JSON.stringify(body) }),
      })
    const typed = { origin: HERE, 'content-type': 'application/json' }
    const signedIn = await ask('POST', '/console/sessions', typed, { token: TOKEN })
    t.equal(signedIn.status, 201, signedIn.text)
    const cookie = signedIn.headers['set-cookie']![0]!.split(';', 1)[0]!
    a.hosts.length = 0
    const renamed = await ask('PATCH', `/sessions/${id}`, { ...typed, cookie }, { title: 'by its page' })
    t.match(renamed, { status: 200, json: { title: 'by its page' } })
    t.equal((await ask('GET', `/sessions/${id}/ws`, { ...HANDSHAKE, origin: HERE, cookie })).status, 101)
    t.same(new Set(a.hosts), new Set(['gateway.example']), 'authenticate is told so, too')
    t.match(
      await ask('GET', `/sessions/${id}`, { 'x-forwarded-host': 'a, ', cookie }),
      { status: 200 },
      'who says none',
    )
    const foreign = { ...typed, cookie, origin: 'https://evil.example' }
    t.match(await ask('PATCH', `/sessions/${id}`, foreign, { title: 'x' }), { status: 403 })
  })
