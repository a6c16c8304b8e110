import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import t from 'tap'
import { providerEngine } from '../../../src/engines/provider/index.js'
import { open } from './host.js'

type TapTest = typeof t

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

/** An MCP server by hand. @param onCall what it does instead of answering a call of its tool */
async function serve(
  t: Pick<TapTest, 'teardown'>,
  type: 'http' | 'sse',
  onCall: (response: ServerResponse) => void,
): Promise<{ type: 'http' | 'sse'; url: string }> {
  let told: ServerResponse | undefined
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET') {
      if (type === 'http') return response.writeHead(405).end()
      told = stream(response)
      return told.write(event('endpoint', '/asked'))
    }
    const asked = (await json(request)) as Asked
    if (type === 'http' && asked.method === 'tools/call') return onCall(stream(response))
    const said = JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: resultOf(asked) })
    if (type === 'http' && asked.id !== undefined)
      return response.writeHead(200, { 'content-type': 'application/json' }).end(said)
    response.writeHead(202).end()
    if (asked.method === 'tools/call') onCall(told!)
    else if (asked.id !== undefined) told!.write(event('message', said))
    return undefined
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { type, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

const HALF = 'event: message\ndata: {"jsonrpc":"2.0","id":2,"resu'
const ENDS: [how: string, onCall: (response: ServerResponse) => void][] = [
  ['is cut off', (response) => response.write(HALF, () => response.destroy())],
  ['ends in good order', (response) => void response.end(': no answer\n\n')],
]

for (const type of ['http', 'sse'] as const)
  for (const [how, onCall] of ENDS)
    t.test(`a call over ${type} whose answer ${how} has failed, and the turn goes on`, async (t) => {
      const mcpServers = { things: await serve(t, type, onCall) }
      const config = { permissionMode: 'bypassPermissions' as const }
      const { runner, host } = await open(providerEngine({ demoChunkDelayMs: 0, mcpServers }), {
        provider: { id: 'demo' },
        config,
      })
      t.teardown(() => runner.close())
      t.match(host.of('system_init')[0]?.mcpServers, [{ name: 'things', status: 'connected' }])
      runner.send(`@@${JSON.stringify([{ tools: [{ tool: 'mcp__things__slow', input: {} }] }, { text: 'went on' }])}@@`)
      t.match(await host.turn(), { subtype: 'success', result: 'went on' })
      t.match(Object.values(host.results), [{ isError: true, content: /ended before it answered|Connection closed/ }])
    })
