import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { type ProviderEngineOptions, providerEngine } from '../../../src/engines/provider/index.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'
import { gate, type Opening, open } from './host.js'

type TapTest = typeof t

/** A session on the demo model, in which every call is allowed; `call` makes one and gives its result. */
async function session(
  t: Pick<TapTest, 'teardown'>,
  options: ProviderEngineOptions = {},
  opening: Partial<Opening> = {},
) {
  const { runner, host } = await open(providerEngine({ demoChunkDelayMs: 0, ...options }), {
    provider: { id: 'demo' },
    ...opening,
  })
  t.teardown(() => runner.close())
  host.decide = () => ({ behavior: 'allow' })
  let turns = 0
  const call = async (tool: string, input: object) => {
    runner.send(`@@${JSON.stringify([{ tools: [{ tool, input }] }, { text: 'ok' }])}@@`)
    await host.turn(++turns)
    const { content, isError } = Object.values(host.results).at(-1)!
    return { content: String(content), isError }
  }
  return { runner, host, call }
}

async function site(t: Pick<TapTest, 'teardown'>, serve: RequestListener) {
  const server = createServer(serve)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return { host, url: `http://${host}`, egress: { allowedHosts: [host] } }
}

t.test('the scratch filesystem by its tools', async (t) => {
  const { call } = await session(t)
  t.match(await call('fs_list', {}), { content: 'There are no files yet.' })
  t.match(await call('fs_write', { path: './a/ä.txt', content: 'grüße' }), { content: 'Wrote a/ä.txt (7 bytes).' })
  t.match(await call('fs_read', { path: 'a/ä.txt' }), { content: 'grüße', isError: false })
  t.match(await call('fs_read', { path: 'a/ä.txt', offset: 3 }), { content: 'ße' })
  t.match(await call('fs_list', {}), { content: 'a/ä.txt (7 bytes)' })
  t.match(await call('fs_read', { path: 'none' }), { isError: true, content: /There is no file none/ })
  t.match(await call('fs_write', { path: '../x', content: '' }), { isError: true, content: /leads outside/ })
  t.match(await call('fs_write', { path: 'a', content: '' }), { isError: true, content: /is a folder/ })
})

t.test('a long file is read piece by piece', async (t) => {
  const { url, egress } = await site(t, (_request, response) => void response.end('x'.repeat(100_001)))
  const { call } = await session(t, { egress })
  await call('download', { url: `${url}/long` })
  t.match(await call('fs_read', { path: 'long' }), { content: /x\n\[1 more characters; read on with offset 100000\]$/ })
  t.match(await call('fs_read', { path: 'long', offset: 100_000 }), { content: /^x$/ })
})

t.test('a long file is cut between characters', async (t) => {
  const { url, egress } = await site(t, (_request, response) => void response.end(`${'x'.repeat(99_999)}😀y`))
  const { call } = await session(t, { egress })
  await call('download', { url: `${url}/long` })
  t.match(await call('fs_read', { path: 'long' }), { content: /x\n\[3 more characters; read on with offset 99999\]$/ })
  t.match(await call('fs_read', { path: 'long', offset: 99_999 }), { content: /^😀y$/ })
})

t.test('deliver_file hands over what is there', async (t) => {
  const { host, call } = await session(t)
  t.match(await call('deliver_file', { path: 'report.md' }), { isError: true, content: /no file report\.md/ })
  await call('fs_write', { path: 'report.md', content: 'ä' })
  t.match(await call('deliver_file', { path: './report.md', description: 'the report' }), { isError: false })
  const delivered = { type: 'file_delivered' as const, path: 'report.md', bytes: 2, description: 'the report' }
  t.same(host.of('file_delivered'), [delivered])
})

t.test('web_fetch reduces a page to its text and follows redirects within the guard', async (t) => {
  const { url, host, egress } = await site(t, (request, response) => {
    if (request.url === '/') return response.writeHead(302, { location: '/page' }).end()
    if (request.url === '/page') {
      response.setHeader('content-type', 'text/html; charset=iso-8859-1')
      return response.end(
        Buffer.from('<h1>Gr\xfc\xdfe</h1><script>x</script><p>one <a href="/two">two</a></p>', 'latin1'),
      )
    }
    if (request.url === '/json') return response.setHeader('content-type', 'application/ld+json').end('{"a":1}')
    if (request.url === '/image') return response.setHeader('content-type', 'image/png').end('x')
    if (request.url === '/gzip') return response.setHeader('content-encoding', 'gzip').end('x')
    if (request.url === '/loop') return response.writeHead(307, { location: '/loop' }).end()
    if (request.url === '/inside') return response.writeHead(302, { location: 'http://localhost:1/' }).end()
    if (request.url === '/metadata') return response.writeHead(302, { location: 'http://169.254.169.254/' }).end()
    if (request.url === '/file') return response.writeHead(302, { location: 'file:///etc/passwd' }).end()
    response.writeHead(404).end('nothing here')
  })
  const { call } = await session(t, { egress })
  const page = await call('web_fetch', { url })
  t.match(page, { isError: false, content: new RegExp(`^http://${host}/page \\(HTTP 200\\)\\n\\nGRÜSSE|Grüße`) })
  t.match(page.content, /one two/)
  t.notMatch(page.content, /script|<p>/)
  t.match(await call('web_fetch', { url: `${url}/json` }), { content: /\{"a":1\}$/, isError: false })
  t.match(await call('web_fetch', { url: `${url}/image` }), { isError: true, content: /image\/png.*download/ })
  t.match(await call('web_fetch', { url: `${url}/gone` }), { isError: true, content: /HTTP 404\)\n\nnothing here/ })
  t.match(await call('web_fetch', { url: `${url}/gzip` }), { isError: true, content: /in gzip only/ })
  t.match(await call('web_fetch', { url: `${url}/loop` }), { isError: true, content: /more than 5 times/ })
  t.match(await call('web_fetch', { url: `${url}/inside` }), { isError: true, content: /may not be reached/ })
  t.match(await call('web_fetch', { url: `${url}/metadata` }), { isError: true, content: /may not be reached/ })
  t.match(await call('web_fetch', { url: `${url}/file` }), { isError: true, content: /scheme/ })
  t.match(await call('web_fetch', { url: 'ftp://example.com' }), { isError: true, content: /scheme/ })
  t.match(await call('web_fetch', { url: 'nonsense' }), { isError: true, content: /cannot be read/ })
})

t.test('what web_fetch does not read is not left open', async (t) => {
  const closed = gate()
  const { url, egress } = await site(t, (_request, response) => {
    response.on('close', closed.open).setHeader('content-encoding', 'gzip')
    response.write('x'.repeat(1024 * 1024))
  })
  const { call } = await session(t, { egress })
  t.match(await call('web_fetch', { url }), { isError: true, content: /in gzip only/ })
  await closed.opened
})

t.test('web_fetch reaches nothing private unless the host lets it', async (t) => {
  let hits = 0
  const { url } = await site(t, (_request, response) => {
    hits += 1
    response.end()
  })
  const { call } = await session(t)
  t.match(await call('web_fetch', { url }), { isError: true, content: /a private address/ })
  t.equal(hits, 0)
})

t.test('web_fetch stops at its limits', async (t) => {
  const clock = new VirtualClock()
  const slowBegan = gate()
  const { url, egress } = await site(t, (request, response) => {
    response.setHeader('content-type', 'text/plain')
    if (request.url === '/big') return response.end('x'.repeat(1024 * 1024 + 1))
    if (request.url === '/slow') {
      response.write('never done')
      return slowBegan.open()
    }
    response.setHeader('content-type', 'text/html').end('<div>'.repeat(200_000))
  })
  const { runner, call } = await session(t, { egress, clock })
  t.match(await call('web_fetch', { url: `${url}/big` }), { isError: true, content: /more than the 1048576 bytes/ })
  t.match(await call('web_fetch', { url: `${url}/deep` }), { isError: false })
  const slow = call('web_fetch', { url: `${url}/slow` })
  await slowBegan.opened
  await clock.advance(20_000)
  t.match(await slow, { isError: true, content: 'No complete answer within 20 s.' })
  t.same(runner.files?.list(), [])
})

t.test('download saves what a URL serves', async (t) => {
  const { url, egress } = await site(t, (request, response) => {
    if (request.url === '/gone.bin') return response.writeHead(410).end()
    response.end(request.url === '/big' ? Buffer.alloc(101) : Buffer.from([0, 255, 1]))
  })
  const { runner, call } = await session(t, { egress, files: { maxBytes: 100 } })
  t.match(await call('download', { url: `${url}/data.bin` }), { content: /as data\.bin \(3 bytes\)/, isError: false })
  t.match(await call('download', { url: `${url}/`, path: 'sub/copy' }), { isError: false })
  t.match(await call('download', { url }), { content: /as download / })
  t.match(await call('download', { url: `${url}/%E6%97%A5%2F..%2Fx%` }), { content: /as %E6%97%A5%2F/ })
  t.match(await call('download', { url: `${url}/%E6%97%A5%2F..%2Fx` }), { content: /as 日_\.\._x / })
  t.match(await call('download', { url: `${url}/gone.bin` }), { isError: true, content: /HTTP 410/ })
  t.match(await call('download', { url: `${url}/x`, path: '../x' }), { isError: true, content: /leads outside/ })
  t.match(await call('download', { url: `${url}/big` }), { isError: true, content: /more than the 85 bytes/ })
  t.match(
    runner.files?.list().map(({ path }) => path),
    ['%E6%97%A5%2F..%2Fx%', 'data.bin', 'download', 'sub/copy', '日_.._x'],
  )
  t.same(runner.files?.read('data.bin'), Buffer.from([0, 255, 1]))
  t.match(await call('fs_read', { path: 'data.bin' }), { isError: true, content: /not a text file \(3 bytes\)/ })
})

t.test('web_search asks the backend of the host', async (t) => {
  const webSearch = async (query: string) => {
    if (query === 'fail') throw new Error('the index is away')
    return [{ title: 'A page', url: 'https://example.com', snippet: query }]
  }
  const { call } = await session(t, { webSearch })
  t.same(JSON.parse((await call('web_search', { query: 'boats' })).content), {
    results: [{ title: 'A page', url: 'https://example.com', snippet: 'boats' }],
  })
  t.match(await call('web_search', { query: 'fail' }), { isError: true, content: 'the index is away' })
})

t.test('a result that is too long is cut, and says so', async (t) => {
  const webSearch = async () => [{ title: 'x'.repeat(300_000), url: '' }]
  const { call } = await session(t, { webSearch })
  const { content } = await call('web_search', { query: 'long' })
  t.match(content, /\[\d+ more characters were left out\]$/)
  t.ok(content.length < 201_000)
})

const SCRATCH = ['AskUserQuestion', 'fs_list', 'fs_read', 'fs_write']
const GRANTS: [title: string, Partial<Opening>, expected: string[]][] = [
  ['no session block: whatever the host wired', {}, ['deliver_file', 'download', 'web_fetch', 'web_search']],
  ['an empty session block: nothing', { session: {} }, []],
  ['a list of capabilities: only those', { session: { capabilities: ['web_fetch'] } }, ['web_fetch']],
  [
    'a request narrows the grant',
    { session: { capabilities: ['web_fetch', 'deliver_file'] }, config: { capabilities: ['deliver_file'] } },
    ['deliver_file'],
  ],
  [
    'and never widens it',
    { session: { capabilities: ['web_fetch'] }, config: { capabilities: ['web_fetch', 'download'] } },
    ['web_fetch'],
  ],
  ['a request for none', { session: { capabilities: ['web_fetch'] }, config: { capabilities: [] } }, []],
]
for (const [title, opening, expected] of GRANTS) {
  t.test(`grants: ${title}`, async (t) => {
    const { host, call } = await session(t, { webSearch: async () => [] }, opening)
    t.same(host.of('system_init')[0]?.tools, [...SCRATCH, ...expected])
    if (!expected.includes('download')) {
      t.match(await call('download', { url: 'https://example.com' }), { content: 'There is no tool download.' })
    }
  })
}

t.test('grants: web_search needs a backend', async (t) => {
  const { host } = await session(t, {}, { session: { capabilities: ['web_search'] } })
  t.same(host.of('system_init')[0]?.tools, SCRATCH)
})
