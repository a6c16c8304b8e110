import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import gatewayPlugin from '../../src/index.js'
import { SOME_CWD } from '../fixtures/build.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'
import { isProblem } from '../fixtures/problem.js'
import { HANDSHAKE, rawRequest } from '../fixtures/raw-http.js'

const TOKEN = 'token-of-ann'
const HERE = 'https://gateway.example'
const FORWARDED = { host: '10.0.0.5:3000', 'x-forwarded-host': 'gateway.example', 'x-forwarded-proto': 'https' }

/** A host with the gateway in it, and ways to come by a proxy that says in a header which host was asked for. */
async function behindProxy(t: Test, trustProxy: boolean | string) {
  const { engine: _, options } = hostWorld()
  const authenticate = ({ headers }: { headers: { authorization?: string | undefined } }) =>
    headers.authorization === `Bearer ${TOKEN}` && { name: 'ann' }
  const host = fastify({ trustProxy, forceCloseConnections: true })
  t.teardown(() => host.close())
  await host.register(gatewayPlugin, { ...options, allowUnauthenticated: false, authenticate, console: true })
  await host.listen({ port: 0, host: '127.0.0.1' })
  const { port } = host.server.address() as AddressInfo
  const { id } = await host.gateway.registry.create({ cwd: SOME_CWD })
  const authorization = `Bearer ${TOKEN}`
  return {
    attach: (origin: string) =>
      rawRequest(port, {
        path: `/v1/sessions/${id}/ws`,
        headers: { ...HANDSHAKE, ...FORWARDED, authorization, origin },
      }),
    signIn: (origin: string) =>
      rawRequest(port, {
        ...{ method: 'POST', path: '/v1/console/sessions', body: JSON.stringify({ token: TOKEN }) },
        headers: { ...FORWARDED, origin, 'content-type': 'application/json' },
      }),
  }
}

for (const trusted of [true, '127.0.0.1'])
  t.test(`a page is of the host that a proxy was asked for, when the server trusts it: ${trusted}`, async (t) => {
    const { attach, signIn } = await behindProxy(t, trusted)
    t.match(await signIn(HERE), { status: 201, headers: { 'set-cookie': [/; Secure$/] } })
    t.equal((await attach(HERE)).status, 101)
    for (const foreign of ['https://evil.example', 'https://gateway.example:8443', 'null']) {
      isProblem(t, await attach(foreign), 403, 'SG_ERR_ORIGIN_REFUSED', foreign)
      isProblem(t, await signIn(foreign), 403, 'SG_ERR_ORIGIN_REFUSED', foreign)
    }
  })

t.test('what somebody else says of a proxy is nothing', async (t) => {
  const { attach, signIn } = await behindProxy(t, '10.0.0.1')
  isProblem(t, await attach(HERE), 403, 'SG_ERR_ORIGIN_REFUSED')
  isProblem(t, await signIn(HERE), 403, 'SG_ERR_ORIGIN_REFUSED')
})
