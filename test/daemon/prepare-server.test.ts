import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { certificateWarnings, watchCertificates } from '../../src/daemon/certificate-warnings.js'
import type { ConfigError } from '../../src/daemon/config-problem.js'
import { prepareServer, start } from '../../src/daemon/daemon.js'
import { isLoopbackHost } from '../../src/daemon/listen-rules.js'
import { type EffectiveConfig, loadConfig } from '../../src/daemon/load-config.js'
import { firstCommands, greeting } from '../../src/daemon/next-steps.js'
import { redactConfig, secretsOf } from '../../src/daemon/redact.js'
import { hashToken } from '../../src/daemon/tokens.js'
import { EXPIRED_TLS, NODE_TLS, STRANGERS_TLS } from '../fixtures/tls.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const TOKENS = { tokens: [{ name: 'a', sha256: hashToken('x') }] }
const DEMO = { name: 'demo', engine: 'provider', provider: { id: 'demo' } }

function build(t: Test, config: object, hooks?: string) {
  const folder = t.testdir({ work: {}, conf: {}, 'gateway.json': '' })
  const file = join(folder, 'gateway.json')
  if (hooks !== undefined) writeFileSync(join(folder, 'hooks.mjs'), hooks)
  const content = {
    profiles: [],
    log: { pretty: false },
    ...(hooks !== undefined && { hooks: 'hooks.mjs' }),
    ...config,
  }
  writeFileSync(file, JSON.stringify(content), { mode: 0o600 })
  const loaded = loadConfig(file, {}, {})
  const lines: string[] = []
  const prepare = () => prepareServer(loaded, { write: (line) => void lines.push(line) })
  return { loaded, prepare, log: () => lines.map((line) => JSON.parse(line) as { msg: string; path?: string }) }
}

async function problems(t: Test, config: object, hooks?: string) {
  const error = await build(t, config, hooks)
    .prepare()
    .then(async ({ server }) => server.close())
    .catch((error: ConfigError) => error)
  return error?.problems ?? []
}

async function running(t: Test, config: object, hooks?: string) {
  const { loaded, prepare, log } = build(t, { listen: { port: 0 }, ...config }, hooks)
  const prepared = await prepare()
  t.teardown(() => prepared.server.close())
  const url = await start(prepared, loaded)
  return { url, log, get: (path: string, headers = {}) => fetch(url + path, { headers }) }
}

t.test('profiles whose provider no session could have are all named, unless a hook builds the runners', async (t) => {
  const profiles = [
    { name: 'none', engine: 'provider' },
    { name: 'unknown', engine: 'provider', provider: { id: 'mine' } },
  ]
  const config = { allowUnauthenticated: true, storage: 'memory', profiles }
  t.match(await problems(t, config), [
    { path: 'profiles[0].provider', message: /missing/ },
    { path: 'profiles[1].provider.id', message: /unknown provider; known are/ },
  ])
  t.same(await problems(t, config, 'export const createEngineRunner = () => { throw new Error() }'), [])
})

t.test('of a hooks module that cannot be read no profile is held to what it may decide', async (t) => {
  const profiles = [{ name: 'p', engine: 'provider', provider: { id: 'mine' } }]
  const found = await problems(
    t,
    { allowUnauthenticated: true, storage: 'memory', profiles },
    'throw new Error("away")',
  )
  t.match(found, [{ message: /away/ }])
  t.equal(found.length, 1)
})

t.test('loopback is told by the address, not by how it is written', async (t) => {
  for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]', '::ffff:127.0.0.1', 'LOCALHOST'])
    t.ok(isLoopbackHost(host), host)
  for (const host of [
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '',
    'localhost.example',
    '127.0.0.1.example',
    'myhost',
    '127.evil.com',
  ])
    t.notOk(isLoopbackHost(host), host)
})

t.test('who may be let in where', async (t) => {
  t.match(await problems(t, {}), [{ path: '', message: /nobody could be let in: add auth\.tokens/ }])
  t.match(await problems(t, { allowUnauthenticated: true, listen: { host: '0.0.0.0' } }), [
    { path: 'allowUnauthenticated', message: /loopback only, and 0\.0\.0\.0 can be reached/ },
  ])
  t.strictSame(await problems(t, { allowUnauthenticated: true }), [])
  t.strictSame(await problems(t, { auth: TOKENS, allowUnauthenticated: true, listen: { host: '0.0.0.0' } }), [])
  t.strictSame(await problems(t, { listen: { host: '0.0.0.0' } }, 'export const authenticate = () => undefined'), [])
})

t.test('everything that this machine does not have is told at once, at its place', async (t) => {
  const found = await problems(
    t,
    {
      auth: TOKENS,
      allowedCwdRoots: ['work', 'nope'],
      allowedConfigDirRoots: ['gateway.json'],
      profiles: [
        DEMO,
        { name: 'a', configDir: 'nowhere' },
        { name: 'demo', engine: 'provider', provider: { id: 'demo' }, defaults: { permissionMode: 'plan' } },
        { name: 'b', agent: 'nobody', configDir: 'conf' },
      ],
    },
    'export const onEvent = () => {}',
  )
  t.match(
    found.map(({ path }) => path),
    [
      'hooks',
      'allowedCwdRoots[1]',
      'allowedConfigDirRoots[0]',
      'profiles[1].configDir',
      'profiles[2].defaults.permissionMode',
      'profiles[2].name',
      'profiles[3].agent',
    ],
  )
})

t.test('what only the gateway itself refuses is a problem of the file too', async (t) => {
  const config = { auth: TOKENS, allowedCwdRoots: ['work'], profiles: [{ name: 'a', configDir: 'work' }] }
  t.match(await problems(t, config), [{ path: 'profiles', message: /overlaps allowedCwdRoots/ }])
})

t.test('tokens and the hook let in, each its own callers', async (t) => {
  const hooks = 'export const authenticate = ({ headers }) => headers["x-me"] && { allowedProfiles: [] }'
  const { get } = await running(t, { auth: TOKENS, profiles: [DEMO] }, hooks)
  const profiles = async (headers: object) => {
    const answer = await get('/profiles', headers)
    return answer.ok ? ((await answer.json()) as { profiles: unknown[] }).profiles.length : answer.status
  }
  t.equal(await profiles({}), 401)
  t.equal(await profiles({ authorization: 'Bearer wrong' }), 401)
  t.equal(await profiles({ authorization: 'Bearer x' }), 1)
  t.equal(await profiles({ 'x-me': '1' }), 0)
})

t.test('the log says where it listens and how to begin', async (t) => {
  const { url, log, get } = await running(t, { allowUnauthenticated: true, basePath: '/api', profiles: [DEMO] })
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/api$/)
  t.match(
    log().find(({ msg }) => msg === 'listening'),
    { url, level: 'info', try: /^ID=\$\(curl/ },
  )
  t.equal((await get('/sessions')).status, 200)
  for (const path of ['/healthz', '/readyz', '/metrics']) t.equal((await fetch(new URL(path, url))).status, 200, path)
})

t.test('a port that is taken is told with what to do', async (t) => {
  const { url } = await running(t, { allowUnauthenticated: true, storage: 'memory' })
  const { loaded, prepare } = build(t, { allowUnauthenticated: true, listen: { port: Number(new URL(url).port) } })
  await t.rejects(start(await prepare(), loaded), { name: 'StartError', message: /another process does; .*--port/ })
})

t.test('a url that is none of PostgreSQL is a problem of the file: trying again does not mend it', async (t) => {
  for (const [url, message] of [
    ['postgres://gateway:some-secret@one,two/postgres', /^the url names several hosts/],
    ['postgres://gateway:some/secret@one/postgres', /^the url is not one of PostgreSQL: .*percent-encoded/],
  ] as const) {
    const { loaded, prepare } = build(t, { allowUnauthenticated: true, storage: { postgres: { url } } })
    const refused = start(await prepare(), loaded)
    await t.rejects(refused, { name: 'ConfigError', problems: [{ path: 'storage.postgres', message }] })
  }
})

t.test('the first commands are words that a shell takes as they are', async (t) => {
  const { loaded } = build(t, {
    allowUnauthenticated: true,
    allowedCwdRoots: ["it's here"],
    profiles: [{ name: 'x' }, DEMO],
  })
  const commands = firstCommands(loaded.config, 'http://h/v1', true)
  t.match(commands, `it'\\''s here`)
  t.match(commands, '"profile":"demo"')
  t.match(commands, '-H "authorization: Bearer $TOKEN"')
  t.notMatch(firstCommands(loaded.config, 'http://h/v1', false), 'TOKEN')
  t.match(greeting(loaded.config, 'http://h/v1', true), 'in a browser: http://h/v1/console/\n')
  t.notMatch(greeting({ ...loaded.config, console: false }, 'http://h/v1', true), 'browser')
})

t.test('the configuration is shown without its secrets', async (t) => {
  const { loaded } = build(t, {
    auth: TOKENS,
    notifications: {
      webhook: { url: 'https://hooks.example:1/canary-url', headers: { 'x-a': 'canary-h' }, secret: ['canary-s'] },
    },
    executions: {
      tools: [{ name: 't', description: '', inputSchema: {}, dispatch: { url: 'http://h', secret: 'canary-d' } }],
    },
    agents: [{ name: 'a', env: { KEY: 'canary-e' } }],
    profiles: [
      { ...DEMO, provider: { id: 'demo', apiKeyEnv: 'SOME_KEY' } },
      { name: 'usual', engine: 'provider', provider: { id: 'openai' } },
    ],
    managedProfiles: { apiKeyEnvs: ['MADE_LATER'], endpoints: [{ baseUrl: 'http://m', apiKeyEnv: 'THERE' }] },
  })
  const shown = redactConfig(loaded.config)
  t.notMatch(JSON.stringify(shown), /canary/)
  t.match(shown, {
    auth: { tokens: [{ name: 'a', sha256: '[redacted]' }] },
    notifications: { webhook: { url: 'https://hooks.example:1/[redacted]', headers: { 'x-a': '[redacted]' } } },
    executions: { tools: [{ dispatch: { url: 'http://h' } }] },
    agents: [{ env: { KEY: '[redacted]' } }],
    sessionRetentionMs: 86_400_000,
  })
  const keys = { SOME_KEY: 'canary-k', OPENAI_API_KEY: 'canary-o', MADE_LATER: 'canary-m', THERE: 'canary-t' }
  t.same(
    secretsOf(loaded.config, keys)
      .filter((secret) => secret.startsWith('canary'))
      .sort(),
    ['canary-d', 'canary-e', 'canary-h', 'canary-k', 'canary-m', 'canary-o', 'canary-s', 'canary-t'],
  )
})

const CLUSTER = {
  ...{ node: 'a', url: 'http://127.0.0.1:1', listen: { host: '127.0.0.1', port: 1 } },
  secret: 'of nobody else, and long enough for it',
}

t.test('the log may name a database that has no password in its url', async (t) => {
  const secretsWith = (url: string) => secretsOf({ storage: { postgres: { url } } }, {})
  t.strictSame(secretsWith('postgres://me@db.example:5432/gateway'), [])
  for (const url of ['postgres://me:canary@db.example/gateway', 'postgres://me@db.example/gateway?password=canary'])
    t.match(secretsWith(url), [url])
})

t.test('a node that is only looked at tells nobody that it leaves', async (t) => {
  const { prepare, log } = build(t, {
    auth: TOKENS,
    profiles: [DEMO],
    storage: { postgres: { url: 'postgres://localhost/none' } },
    cluster: CLUSTER,
  })
  const { server } = await prepare()
  await server.close()
  t.strictSame(
    log().filter(({ msg }) => !msg.startsWith('it holds secrets')),
    [],
  )
})

t.test('a directory of parked sessions that nothing is written to is told of', async (t) => {
  const parking = { store: { dir: 'parked' } }
  for (const [storage, warned] of [
    [{ sqlite: 'gateway.db' }, ['parking.store']],
    ['memory', []],
  ] as const) {
    const { prepare, log } = build(t, { allowUnauthenticated: true, profiles: [DEMO], storage, parking })
    const { server } = await prepare()
    await server.close()
    t.strictSame(
      log().map(({ path }) => path),
      warned,
    )
  }
})

t.test('a certificate of nodes that has expired, or soon will have, is told of', async (t) => {
  const { prepare, log } = build(t, {
    auth: TOKENS,
    profiles: [DEMO],
    storage: { postgres: { url: 'postgres://localhost/none' } },
    cluster: { ...CLUSTER, url: 'https://127.0.0.1:1', tls: EXPIRED_TLS },
  })
  const { server } = await prepare()
  await server.close()
  t.match(
    log().filter(({ msg }) => !msg.startsWith('it holds secrets')),
    [{ level: 'warn', path: 'cluster.tls.cert', msg: /^it has expired on 2021-01-01, and no node takes it; give/ }],
  )
  const at = (date: string) =>
    certificateWarnings({ cluster: { tls: NODE_TLS } } as EffectiveConfig, Date.parse(date)).map(
      ({ path, message }) => `${path}: ${message.split(',')[0]}`,
    )
  t.strictSame(at('2126-10-16'), [])
  t.strictSame(at('2126-10-17'), [
    'cluster.tls.cert: it expires on 2126-10-30',
    'cluster.tls.ca: it expires on 2126-10-30',
  ])
  t.match(at('2001-01-01'), [/^cluster\.tls\.cert: it is valid from 20/, /^cluster\.tls\.ca: it is valid from 20/])
})

t.test('it is told of each day by a node that runs on', async (t) => {
  const day = 86_400_000
  const clock = new VirtualClock(Date.parse('2126-10-15'))
  const told: string[] = []
  watchCertificates({ cluster: { tls: NODE_TLS } } as EffectiveConfig, ({ path }) => told.push(path), clock)
  await clock.advance(day)
  t.strictSame(told, [])
  const both = ['cluster.tls.cert', 'cluster.tls.ca']
  await clock.advance(day)
  t.strictSame(told, both)
  await clock.advance(day)
  t.strictSame(told, [...both, ...both])
})

t.test('so is one that other nodes take for somebody else’s', (t) => {
  const told = (tls: object, url = 'https://127.0.0.1:1') =>
    certificateWarnings({ cluster: { tls, url } } as EffectiveConfig).map(({ path, message }) => [path, message])
  const unsigned = ['cluster.tls.cert', /^it is not signed by cluster\.tls\.ca, and no node takes it; give/]
  t.strictSame(told(NODE_TLS), [])
  t.match(told(STRANGERS_TLS), [unsigned])
  t.strictSame(told({ ...STRANGERS_TLS, ca: STRANGERS_TLS.ca + STRANGERS_TLS.cert }), [], 'one of several')
  t.match(told({ ...STRANGERS_TLS, cert: STRANGERS_TLS.cert + NODE_TLS.cert }), [unsigned], 'with another behind it')
  t.match(told(NODE_TLS, 'https://node-1.example:1'), [
    ['cluster.tls.cert', /^it is not for node-1\.example, the host of cluster\.url, and no node asks this one; give/],
  ])
  t.end()
})
