import { createMCPClient } from '@ai-sdk/mcp'
import { jsonSchema } from 'ai'
import t from 'tap'
import { type ProviderEngineOptions, providerEngine } from '../../../src/engines/provider/index.js'
import { startHttpServer, stdioServer } from '../../fixtures/mcp-server.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'
import { gate, type Opening, open } from './host.js'

type TapTest = typeof t

async function session(t: Pick<TapTest, 'teardown'>, options: ProviderEngineOptions, opening: Partial<Opening> = {}) {
  const engine = providerEngine({ demoChunkDelayMs: 0, ...options })
  const { runner, host } = await open(engine, { provider: { id: 'demo' }, ...opening })
  t.teardown(() => runner.close())
  host.decide = () => ({ behavior: 'allow' })
  let turns = 0
  const call = async (tool: string, input: object = {}) => {
    runner.send(`@@${JSON.stringify([{ tools: [{ tool, input }] }, { text: 'ok' }])}@@`)
    await host.turn(++turns)
    return Object.values(host.results).at(-1)!
  }
  const [init] = host.of('system_init')
  return { runner, host, call, servers: init?.mcpServers, tools: init?.tools ?? [] }
}

const http = async (t: Pick<TapTest, 'teardown'>) => ({
  type: 'http' as const,
  ...(await startHttpServer(t)),
  headers: { authorization: 'Bearer fixture' },
})

for (const transport of ['stdio', 'streamable HTTP']) {
  t.test(`tools of a server over ${transport}`, async (t) => {
    const server = transport === 'stdio' ? stdioServer : await http(t)
    const { host, call, servers, tools } = await session(t, { mcpServers: { things: server } })
    t.same(servers, [{ name: 'things', status: 'connected' }])
    t.same(await call('mcp__things__echo', { words: 'hello' }), { content: 'hello\nagain', isError: false })
    t.match(host.asked, [{ toolName: 'mcp__things__echo', input: { words: 'hello' }, title: 'echo (things)' }])
    t.match(await call('mcp__things__picture'), {
      content: [
        { type: 'text', text: 'a dot' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'ZG90' } },
      ],
    })
    t.same(await call('mcp__things__fail'), { content: 'it broke', isError: true })
    t.match(await call('mcp__things__echo', { words: 7 }), { isError: true, content: /words/ })
    const odd = tools.find((name) => name.includes('odd')) ?? ''
    t.match(odd, /^mcp__things__odd_namex+_[0-9a-f]{8}$/)
    t.match(odd, /^[A-Za-z0-9_-]{1,64}$/, 'a name that every provider takes')
    t.same(await call(odd), { content: 'odd', isError: false })
  })
}

t.test('a profile is granted servers by name', async (t) => {
  const server = await http(t)
  const mcpServers = { one: server, two: server }
  const named = await session(t, { mcpServers }, { session: { mcpServers: ['two'] } })
  t.same(named.servers, [{ name: 'two', status: 'connected' }])
  t.notOk(named.tools.some((tool) => tool.startsWith('mcp__one')))
  t.match(await named.call('mcp__one__echo', { words: 'x' }), { content: 'There is no tool mcp__one__echo.' })

  const none = await session(t, { mcpServers }, { session: {} })
  t.same(none.servers, [])
  const all = await session(t, { mcpServers })
  t.match(
    all.servers?.map(({ name }) => name),
    ['one', 'two'],
  )

  const unknown = session(t, { mcpServers }, { session: { mcpServers: ['constructor'] } })
  await t.rejects(unknown, { code: 'SG_ERR_ENGINE_START', message: /MCP server constructor/ })
})

t.test('all tools of a server can be allowed and disallowed by its prefix', async (t) => {
  const server = await http(t)
  const config = { permissionMode: 'dontAsk' as const, allowedTools: ['mcp__one'], disallowedTools: ['mcp__two'] }
  const { host, call, tools } = await session(
    t,
    { mcpServers: { one: server, two: server, three: server } },
    { config },
  )
  t.same(await call('mcp__one__echo', { words: 'x' }), { content: 'x\nagain', isError: false })
  t.notOk(tools.some((tool) => tool.startsWith('mcp__two')))
  t.match(await call('mcp__three__echo', { words: 'x' }), { isError: true, content: /dontAsk/ })
  t.same(host.asked, [])
})

t.test('a server that is away is told, and the session goes on without it', async (t) => {
  const errors: string[] = []
  const away = { type: 'http' as const, url: 'http://127.0.0.1:9/mcp' }
  const missing = { command: '/does/not/exist' }
  const refused = { ...(await http(t)), headers: {} }
  const { servers, call } = await session(t, {
    mcpServers: { away, missing, refused },
    onError: (error, { mcpServer, sessionId }) => errors.push(`${sessionId} ${mcpServer} ${error.message}`),
  })
  t.same(servers, [
    { name: 'away', status: 'failed' },
    { name: 'missing', status: 'failed' },
    { name: 'refused', status: 'failed' },
  ])
  t.match(errors.sort(), [/^a-session away ./, /^a-session missing .*ENOENT/, /^a-session refused ./])
  t.match(await call('fs_list'), { isError: false })
})

t.test('a server that does not list its tools is told after a while, and the session goes on without it', async (t) => {
  const clock = new VirtualClock()
  const errors: string[] = []
  const asked = gate()
  const mute = {
    tools: () => {
      asked.open()
      return new Promise<never>(() => {})
    },
  }
  const opening = session(t, { clock, mcpServers: { mute }, onError: ({ message }) => errors.push(message) })
  await asked.opened
  t.equal(clock.pendingTimers, 1)
  await clock.advance(15_000)
  t.same((await opening).servers, [{ name: 'mute', status: 'failed' }])
  t.same(errors, ['It did not list its tools within 15 seconds.'])
})

t.test('a call that hangs is left by an interrupt', async (t) => {
  const { runner, host } = await session(t, { mcpServers: { things: await http(t) } })
  runner.send(`@@${JSON.stringify([{ tools: [{ tool: 'mcp__things__hang', input: {} }] }])}@@`)
  await host.until(() => host.asked.length === 1 && host.of('assistant_message').length === 1)
  await runner.interrupt()
  t.match(await host.turn(), { subtype: 'interrupted' })
  t.match(Object.values(host.results), [{ isError: true }])
})

t.test('a client that the host connected is used, and is the host’s to close', async (t) => {
  const { url } = await startHttpServer(t)
  const transport = { type: 'http' as const, url, headers: { authorization: 'Bearer fixture' } }
  const client = await createMCPClient({ transport })
  const first = await session(t, { mcpServers: { mine: client } })
  t.same(await first.call('mcp__mine__echo', { words: 'x' }), { content: 'x\nagain', isError: false })
  await first.runner.close()
  const second = await session(t, { mcpServers: { mine: client } })
  t.same(await second.call('mcp__mine__echo', { words: 'y' }), { content: 'y\nagain', isError: false })
  await client.close()
})

t.test('a result that is too long is cut, also beside an image', async (t) => {
  const image = { type: 'image', data: 'ZG90', mimeType: 'image/png' }
  const said = (text: string) => ({ type: 'text', text })
  const execute = async () => ({ content: [said('x'.repeat(199_999)), image, said('😀'.repeat(9)), said('z')] })
  const tools = async () => ({ look: { description: 'Looks.', inputSchema: jsonSchema({ type: 'object' }), execute } })
  const server = { tools } as unknown as NonNullable<ProviderEngineOptions['mcpServers']>[string]
  const { call } = await session(t, { mcpServers: { things: server } })
  const { content } = await call('mcp__things__look')
  t.match(content, [
    { type: 'text', text: /^x+$/ },
    { type: 'image' },
    { type: 'text', text: /^\n\[18 more characters were left out\]$/ },
    { type: 'text', text: /^\n\[1 more characters were left out\]$/ },
  ])
})
