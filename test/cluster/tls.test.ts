import { request as httpRequest } from 'node:http'
import { request } from 'node:https'
import t from 'tap'
import WebSocket from 'ws'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf, type TestNode } from '../fixtures/cluster.js'
import { isProblem } from '../fixtures/problem.js'
import { NODE_TLS, STRANGERS_TLS } from '../fixtures/tls.js'
import { hasPostgres } from '../storage/postgres-world.js'

const tls = (more: object = NODE_TLS) => ({ cluster: { url: 'https://127.0.0.1:0', tls: more as typeof NODE_TLS } })
const urlOf = (node: TestNode) => new URL(node.storage.cluster!.nodes().find(({ name }) => name === node.name)!.url)

if (hasPostgres()) {
  t.test('nodes with certificates answer for each other, requests, streams and sockets', async (t) => {
    const { nodes } = await clusterOf(t, ['a', 'b'], tls())
    const [a, b] = nodes
    t.equal(urlOf(a).protocol, 'https:')
    const { id } = (await a.call('POST', '/sessions', { cwd: SOME_CWD, title: 'of a', prompt: 'go' })).json
    t.match((await b.call('GET', `/sessions/${id}`)).json, { title: 'of a' })
    const large = { type: 'user_message', text: 'x'.repeat(200_000) }
    t.match(await b.call('POST', `/sessions/${id}/commands`, large), { status: 200 })
    const socket = new WebSocket(`${b.api.replace('http', 'ws')}/sessions/${id}/ws`)
    t.teardown(() => socket.terminate())
    const types: string[] = []
    socket.on('message', (data) => types.push(JSON.parse(String(data)).type))
    await until(() => types.includes('attached'), 'a socket over another node')
    a.engine.last.complete()
    await until(async () => (await b.call('GET', `/sessions/${id}`)).json.numTurns === 1, 'the end of its turn')
    t.same((await b.call('GET', '/inbox')).json, [], 'every node is asked')
  })

  t.test('who has no certificate of theirs says nothing to a node', async (t) => {
    const { nodes } = await clusterOf(t, ['a'], tls())
    const { hostname: host, port } = urlOf(nodes[0])
    const { cert, key, ca } = STRANGERS_TLS
    const asked = (options: object) =>
      new Promise<string>((resolve) => {
        const sent = request({ host, port, path: '/v1/sessions', agent: false, ...options }, ({ statusCode }) =>
          resolve(`answered ${statusCode}`),
        )
        sent.on('error', ({ message }) => resolve(message)).end()
      })
    t.match(await asked({ ca }), /certificate|alert|reset|hang up/i)
    t.match(await asked({ ca, cert, key }), /certificate|alert|reset|hang up/i)
    t.equal(await asked(NODE_TLS), 'answered 403', 'and who has one has to sign as well')
    const plain = await new Promise<string>((resolve) => {
      httpRequest({ host, port, path: '/v1/sessions', agent: false }, () => resolve('answered'))
        .on('error', () => resolve('refused'))
        .end()
    })
    t.equal(plain, 'refused')
  })

  t.test('a node of somebody else is not spoken to', async (t) => {
    const { nodes, join } = await clusterOf(t, ['a'], tls())
    const [a] = nodes
    const b = await join('b', tls(STRANGERS_TLS))
    await until(() => a.storage.cluster!.nodes().length === 2, 'two nodes')
    const { id } = (await b.call('POST', '/sessions', { cwd: SOME_CWD })).json
    isProblem(t, await a.call('GET', `/sessions/${id}`), 503, 'SG_ERR_NODE_UNREACHABLE')
    t.match(await b.call('GET', `/sessions/${id}`), { status: 200 })
  })
}
