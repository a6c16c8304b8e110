import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Agent, request } from 'undici'
import { EgressGuard, type EgressGuardOptions } from '../../src/webhooks/egress.js'

type Ruling = 'public' | 'private' | 'never'

/** Literal hosts in every spelling that a URL parser takes, and what they are. */
const LITERALS: Record<Ruling, string[]> = {
  public: [
    '8.8.8.8',
    '1.1.1.1',
    '134744072',
    '0x08080808',
    '010.8.8.8',
    '172.15.255.255',
    '172.32.0.1',
    '192.167.255.255',
    '100.63.255.255',
    '100.128.0.1',
    '169.253.255.255',
    '223.255.255.254',
    '[2606:4700:4700::1111]',
    '[2001:4860:4860::8888]',
    '[::ffff:8.8.8.8]',
    '[64:ff9b::808:808]',
  ],
  private: [
    '127.0.0.1',
    '127.1',
    '127.255.255.254',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '017700000001',
    '①②⑦.⓪.⓪.①',
    '１２７.0.0.1',
    '127。0。0。1',
    '127.0.0.1.',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b::10.0.0.1]',
    '10.0.0.1',
    '10.255.255.255',
    '012.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '3232235521',
    '192.168.1',
    '[::ffff:192.168.0.1]',
    '100.64.0.1',
    '100.127.255.255',
    '[fc00::1]',
    '[fd12:3456::1]',
  ],
  never: [
    '169.254.169.254',
    '169.254.0.1',
    '2852039166',
    '0xa9fea9fe',
    '0251.0376.0251.0376',
    '169.254.43518',
    '[::ffff:169.254.169.254]',
    '[::ffff:a9fe:a9fe]',
    '[64:ff9b::a9fe:a9fe]',
    '[::169.254.169.254]',
    '[::127.0.0.1]',
    '[2002:a9fe:a9fe::]',
    '[2002:7f00:1::]',
    '[2001:0:a9fe:a9fe::]',
    '[64:ff9b:1::7f00:1]',
    '[::ffff:0:127.0.0.1]',
    '[fe80::1]',
    '[febf::1]',
    '[fec0::1]',
    '168.63.129.16',
    '[::ffff:168.63.129.16]',
    '100.100.100.200',
    '[fd00:ec2::254]',
    '[fd20:ce::254]',
    '192.0.0.192',
    '0.0.0.0',
    '0',
    '0.1.2.3',
    '[::]',
    '[::2]',
    '224.0.0.1',
    '239.255.255.250',
    '[ff02::1]',
    '240.0.0.1',
    '255.255.255.255',
    '4294967295',
    '192.0.2.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '192.88.99.1',
    '[2001:db8::1]',
    '[3fff::1]',
    '[5f00::1]',
    '[100::1]',
    '[2001:10::1]',
    '[4000::1]',
  ],
}

const isLetIn = (guard: EgressGuard, url: string): boolean => {
  try {
    guard.checkUrl(url)
    return true
  } catch (thrown) {
    t.match(thrown, { code: 'SG_ERR_EGRESS_BLOCKED' })
    return false
  }
}

for (const [ruling, hosts] of Object.entries(LITERALS) as [Ruling, string[]][]) {
  t.test(`literal addresses: ${ruling}`, async (t) => {
    const strict = new EgressGuard()
    const open = new EgressGuard({ allowPrivateNetworks: true })
    for (const host of hosts) {
      t.equal(isLetIn(strict, `http://${host}/`), ruling === 'public', `${host} by default`)
      t.equal(isLetIn(open, `https://${host}:8443/x`), ruling !== 'never', `${host} with private networks`)
    }
  })
}

t.test('URLs that are refused whatever they point at', async (t) => {
  const guard = new EgressGuard({ allowPrivateNetworks: true })
  const refused = [
    '',
    'example.com',
    '/relative',
    '//example.com',
    'ftp://example.com/',
    'file:///etc/passwd',
    'unix:/run/x.sock',
    'gopher://example.com/',
    'ws://example.com/',
    'data:text/plain,x',
    'javascript:alert(1)',
    'http+unix://%2Frun%2Fx.sock/',
    'http://user@example.com/',
    'http://user:password@example.com/',
    'http://:password@example.com/',
    'http://example.com@127.0.0.1/',
    'http://',
    'http://[::1',
    'http://1.2.3.4.5/',
    'http://256.1.1.1/',
    'http://exa mple.com/',
    'http://example.com:99999/',
  ]
  for (const url of refused) t.equal(isLetIn(guard, url), false, url)
})

t.test('names pass: they are judged when they are connected to', async (t) => {
  const guard = new EgressGuard()
  for (const url of ['https://example.com/hook?x=1', 'http://localhost:9/', 'http://metadata.google.internal/']) {
    t.equal(guard.checkUrl(url).href, url)
  }
})

t.test('allowedHosts lets named private hosts in, exactly, and nothing that is never let in', async (t) => {
  const guard = new EgressGuard({
    allowedHosts: ['127.0.0.1:9000', '10.0.0.1', '[::1]:8080', '[fd00::1]', '169.254.169.254', '0.0.0.0'],
  })
  const rulings: [url: string, expected: boolean][] = [
    ['http://127.0.0.1:9000/', true],
    ['http://127.1:9000/', true],
    ['http://127.0.0.1:9001/', false],
    ['http://127.0.0.1/', false],
    ['http://127.0.0.2:9000/', false],
    ['http://10.0.0.1/', true],
    ['https://10.0.0.1:8443/', true],
    ['http://10.0.0.11/', false],
    ['http://[::1]:8080/', true],
    ['http://[::1]/', false],
    ['http://[FD00::1]/', true],
    ['http://[fd00::2]/', false],
    ['http://169.254.169.254/', false],
    ['http://0.0.0.0/', false],
  ]
  for (const [url, expected] of rulings) t.equal(isLetIn(guard, url), expected, url)
})

t.test('a host is compared with its default port', async (t) => {
  const guard = new EgressGuard({ allowedHosts: ['10.0.0.1:443', '10.0.0.2:80'] })
  t.equal(isLetIn(guard, 'https://10.0.0.1/'), true)
  t.equal(isLetIn(guard, 'http://10.0.0.1/'), false)
  t.equal(isLetIn(guard, 'http://10.0.0.2/'), true)
})

type TapTest = typeof t

/** A listener on loopback that must not be reached unless a test says so. */
async function protectedListener(t: Pick<TapTest, 'teardown'>) {
  const seen = { hits: 0 }
  const server = createServer((_request, response) => {
    seen.hits += 1
    response.end('secret')
  })
  server.on('connection', () => {
    seen.hits += 1
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, seen }
}

function guarded(t: Pick<TapTest, 'teardown'>, options: EgressGuardOptions) {
  const guard = new EgressGuard(options)
  t.teardown(() => guard.close())
  return guard
}

const BLOCKED = { code: 'SG_ERR_EGRESS_BLOCKED' }

t.test('at connection time: literals are refused without checkUrl as well', async (t) => {
  const { port, seen } = await protectedListener(t)
  const { dispatcher } = guarded(t, {})
  for (const host of ['127.0.0.1', '127.1', '0x7f000001', '2130706433', '[::ffff:127.0.0.1]', '[::1]', '0']) {
    await t.rejects(request(`http://${host}:${port}/`, { dispatcher }), BLOCKED, host)
  }
  t.equal(seen.hits, 0)
})

t.test('at connection time: a name with any refused address is refused', async (t) => {
  const { port, seen } = await protectedListener(t)
  const v4 = (address: string) => ({ address, family: 4 })
  const answers: Record<string, { address: string; family: number }[]> = {
    'loopback.test': [v4('127.0.0.1')],
    'mixed.test': [v4('8.8.8.8'), v4('127.0.0.1')],
    'mixed6.test': [v4('8.8.8.8'), { address: '::1', family: 6 }],
    'mapped.test': [{ address: '::ffff:127.0.0.1', family: 6 }],
    'scoped.test': [{ address: 'fe80::1%eth0', family: 6 }],
    'metadata.test': [v4('169.254.169.254')],
    'nothing.test': [],
    'garbage.test': [v4('not an address')],
  }
  const resolve = async (hostname: string) => answers[hostname] ?? []
  const { dispatcher } = guarded(t, { resolve })
  for (const host of Object.keys(answers)) {
    await t.rejects(request(`http://${host}:${port}/`, { dispatcher }), BLOCKED, host)
    await t.rejects(request(`https://${host}:${port}/`, { dispatcher }), BLOCKED, `${host} over TLS`)
  }
  const open = guarded(t, { resolve, allowPrivateNetworks: true })
  for (const host of ['metadata.test', 'scoped.test', 'nothing.test', 'garbage.test']) {
    await t.rejects(request(`http://${host}:${port}/`, { dispatcher: open.dispatcher }), BLOCKED, `${host}, open`)
  }
  t.equal(seen.hits, 0)
})

t.test('at connection time: what the resolver answers for the connection is what counts', async (t) => {
  const { port, seen } = await protectedListener(t)
  // The classic rebinding: harmless to whoever asks first, loopback to whoever connects.
  let asked = 0
  const resolve = async () => {
    asked += 1
    return [{ address: asked === 1 ? '8.8.8.8' : '127.0.0.1', family: 4 }]
  }
  const guard = guarded(t, { resolve })
  await resolve()
  for (let round = 0; round < 5; round++) {
    const url = guard.checkUrl(`http://rebind.test:${port}/`)
    await t.rejects(request(url, { dispatcher: guard.dispatcher }), BLOCKED)
  }
  t.equal(asked, 6, 'one look-up for each connection')
  t.equal(seen.hits, 0, 'nothing reached the listener')
})

t.test('at connection time: a host that is let in is connected to', async (t) => {
  const { port, seen } = await protectedListener(t)
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  const { dispatcher } = guarded(t, { resolve, allowedHosts: [`Inside.test:${port}`] })
  const { body } = await request(`http://inside.test:${port}/`, { dispatcher })
  t.equal(await body.text(), 'secret')
  const dotted = await request(`http://inside.test.:${port}/`, { dispatcher })
  await dotted.body.dump()
  const hits = seen.hits
  await t.rejects(request(`http://outside.test:${port}/`, { dispatcher }), BLOCKED)
  t.equal(seen.hits, hits)
})

t.test('a name that cannot be resolved fails as such', async (t) => {
  const resolve = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
  const { dispatcher } = guarded(t, { resolve })
  await t.rejects(request('http://nowhere.test/', { dispatcher }), { code: 'ENOTFOUND' })
})

t.test('the system resolver is the default', async (t) => {
  const { port, seen } = await protectedListener(t)
  const { dispatcher } = guarded(t, {})
  await t.rejects(request(`http://localhost:${port}/`, { dispatcher }), BLOCKED)
  t.equal(seen.hits, 0)
})

t.test('a runtime whose undici connects wherever it likes, as Bun’s does, is refused', async (t) => {
  Object.defineProperty(Agent.prototype, 'dispatch', { value: undefined, configurable: true })
  t.teardown(() => Reflect.deleteProperty(Agent.prototype, 'dispatch'))
  t.throws(() => new EgressGuard({ allowPrivateNetworks: true }), {
    code: 'SG_ERR_OPTION',
    message: /run it with Node/,
  })
})
