import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import t from 'tap'
import { type ProviderEngineOptions, providerEngine } from '../../../src/engines/provider/index.js'
import { deferred } from '../../../src/lib/deferred.js'
import { stdioServer } from '../../fixtures/mcp-server.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'
import { open } from './host.js'

type TapTest = typeof t
type HostMcpServer = NonNullable<ProviderEngineOptions['mcpServers']>[string]

interface Asked {
  id?: number
  method: string
}

const TOOL = { name: 'slow', description: 'Takes a while.', inputSchema: { type: 'object' } }
const resultOf = ({ method }: Asked) =>
  method === 'initialize'
    ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'ends', version: '1' } }
    : { tools: [TOOL] }
const event = (type: string, data: string) => `event: ${type}\ndata: ${data}\n\n`
const stream = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' })

const toolResult = (text: string) => ({ content: [{ type: 'text', text }] })

/**
 * An MCP server by hand, with a tool that it answers the second time. Of several calls of a session that it knows no more it says so of the
 * first at once, and of the others when that was made again.
 * @param onCall what it does the first time
 * @param isMute it does not answer a session that leaves
 */
async function serve(
  t: Pick<TapTest, 'teardown'>,
  type: 'http' | 'sse',
  onCall: (response: ServerResponse) => void,
  isMute = false,
): Promise<{
  type: 'http' | 'sse'
  url: string
  calls: () => number
  forget: (status?: number, said?: string) => void
  leaving: Promise<void>
}> {
  let told: ServerResponse | undefined
  let calls = 0
  let sessions = 1
  let refusal = { status: 404, said: '' }
  let strangers = 0
  const leaving = deferred()
  const calledAgain = deferred()
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET') {
      if (type === 'http') return response.writeHead(405).end()
      told = stream(response)
      return told.write(event('endpoint', '/asked'))
    }
    const asked = request.method === 'POST' ? ((await json(request)) as Asked) : { method: 'DELETE' }
    const known = request.headers['mcp-session-id']
    if (asked.method === 'DELETE') {
      leaving.resolve()
      return isMute || response.writeHead(200).end()
    }
    if (type === 'http' && asked.method !== 'initialize' && known !== `s${sessions}`) {
      if (strangers++ > 0) await calledAgain.promise
      return response.writeHead(refusal.status).end(refusal.said)
    }
    if (asked.method === 'tools/call' && calls++ === 0) {
      if (type === 'sse') response.writeHead(202).end()
      return onCall(type === 'sse' ? told! : stream(response))
    }
    if (asked.method === 'tools/call' && strangers > 0) calledAgain.resolve()
    const result = asked.method === 'tools/call' ? toolResult('here I am') : resultOf(asked)
    const said = JSON.stringify({ jsonrpc: '2.0', id: asked.id, result })
    if (type === 'http' && asked.id !== undefined)
      return response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': `s${sessions}` }).end(said)
    response.writeHead(202).end()
    if (asked.id !== undefined) told!.write(event('message', said))
    return undefined
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const forget = (status = 404, said = '') => {
    sessions++
    refusal = { status, said }
  }
  return { type, url, calls: () => calls, forget, leaving: leaving.promise }
}

async function session(t: Pick<TapTest, 'teardown' | 'match'>, things: HostMcpServer) {
  const engine = providerEngine({ demoChunkDelayMs: 0, mcpServers: { things } })
  const config = { permissionMode: 'bypassPermissions' as const }
  const { runner, host } = await open(engine, { provider: { id: 'demo' }, config })
  t.teardown(() => runner.close())
  t.match(host.of('system_init')[0]?.mcpServers, [{ name: 'things', status: 'connected' }])
  let turns = 0
  return async (tool: string, input = {}, times = 1) => {
    const tools = Array.from({ length: times }, () => ({ tool: `mcp__things__${tool}`, input }))
    runner.send(`@@${JSON.stringify([{ tools }, { text: 'went on' }])}@@`)
    t.match(await host.turn(++turns), { subtype: 'success', result: 'went on' })
    return Object.values(host.results).at(-1)!
  }
}

const HALF = 'event: message\ndata: {"jsonrpc":"2.0","id":2,"resu'
const ENDS: [how: string, onCall: (response: ServerResponse) => void][] = [
  ['is cut off', (response) => response.write(HALF, () => response.destroy())],
  ['ends in good order', (response) => void response.end(': no answer\n\n')],
]

for (const type of ['http', 'sse'] as const)
  for (const [how, onCall] of ENDS)
    t.test(`a call over ${type} whose answer ${how} has failed, and the next one is made`, async (t) => {
      const server = await serve(t, type, onCall)
      const call = await session(t, { type, url: server.url })
      t.match(await call('slow'), { isError: true, content: /ended before it answered|Connection closed/ })
      t.equal(server.calls(), 1, 'nobody makes it again')
      t.match(await call('slow'), { content: 'here I am', isError: false })
    })

for (const [status, said] of [
  [404, ''],
  [400, 'Bad Request: No valid session ID provided'],
] as const)
  t.test(`a server that knows its session no more, and says so by ${status}, is asked anew`, async (t) => {
    const server = await serve(t, 'http', (response) => response.end(event('message', '{}')))
    const call = await session(t, { type: 'http', url: server.url })
    await call('slow')
    server.forget(status, said)
    t.match(await call('slow'), { content: 'here I am', isError: false })
    t.equal(server.calls(), 2)
  })

t.test('a server that takes no call for another reason is not asked again', async (t) => {
  const server = await serve(t, 'http', (response) => response.end(event('message', '{}')))
  const call = await session(t, { type: 'http', url: server.url })
  await call('slow')
  server.forget(400, 'Bad Request: too long')
  t.match(await call('slow'), { content: /too long/, isError: true })
  t.equal(server.calls(), 1)
})

t.test('of several calls at once that a server does not know each is made again', async (t) => {
  const server = await serve(t, 'http', (response) => response.end(event('message', '{}')))
  const call = await session(t, { type: 'http', url: server.url })
  await call('slow')
  server.forget()
  t.match(await call('slow', {}, 2), { content: 'here I am', isError: false })
  t.equal(server.calls(), 3, 'both were made again')
  t.match(await call('slow'), { content: 'here I am', isError: false })
})

t.test('a server that has ended is started again with the next call', async (t) => {
  const call = await session(t, stdioServer)
  t.match(await call('leave'), { isError: true, content: 'Connection closed' })
  t.match(await call('echo', { words: 'hello' }), { content: 'hello\nagain', isError: false })
})

t.test('a server that does not answer a session that leaves keeps nobody waiting', async (t) => {
  const server = await serve(t, 'http', (response) => response.end(), true)
  const clock = new VirtualClock()
  const things = { type: 'http' as const, url: server.url }
  const { runner } = await open(providerEngine({ clock, mcpServers: { things } }), { provider: { id: 'demo' } })
  const closed = runner.close()
  await server.leaving
  await clock.advance(2_000)
  await closed
})
