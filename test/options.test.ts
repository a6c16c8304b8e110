import t from 'tap'
import { createGateway } from '../src/gateway.js'
import {
  createFileProfileStore,
  createFileSessionStore,
  createPostgresStorage,
  createSqliteStorage,
  providerEngine,
} from '../src/index.js'
import type { WorkerServerOptions } from '../src/options.js'
import { createWorkerServer } from '../src/server.js'

const open = { allowUnauthenticated: true, profiles: [] }

const refusals: [string, WorkerServerOptions | object | undefined, RegExp][] = [
  ['no options', undefined, /^authenticate: is required/],
  ['options that are null', null as never, /^options: must be an object, not null/],
  ['options that are a list', [], /^options: must be an object, not a list/],
  ['nobody decides who may enter', {}, /^authenticate: is required.*allowUnauthenticated/],
  ['authenticate is no function', { authenticate: 'yes' }, /^authenticate: /],
  ['allowUnauthenticated: false', { allowUnauthenticated: false }, /^authenticate: is required/],
  [
    'a root that does not exist',
    { ...open, allowedCwdRoots: ['/does/not/exist'] },
    /^allowedCwdRoots: .*\/does\/not\/exist/,
  ],
  ['a root that is relative', { ...open, allowedCwdRoots: ['here'] }, /^allowedCwdRoots: .*here/],
  ['roots that are no list', { ...open, allowedCwdRoots: '/srv' }, /^allowedCwdRoots: /],
  ['a base path without a slash', { ...open, basePath: 'v1' }, /^basePath: "v1"/],
  ...['/..', '/.', '/a/../b', '/../v1/'].map((basePath): [string, object, RegExp] => [
    `the base path ${basePath}, which no client asks for`,
    { ...open, basePath },
    /^basePath: .* no part of it is \. or \.\.$/,
  ]),
  ...['https://a.example/', 'HTTPS://A.example', 'https://a.example:443', 'a.example', '*', 'null'].map(
    (origin): [string, object, RegExp] => [
      `the origin ${origin}, which no page has`,
      { ...open, allowedOrigins: ['https://ok.example', 'app://ok', origin] },
      /^allowedOrigins: no page has the origin .*; write /,
    ],
  ),
  ...['https://a.example', 'a.example/', '::1', '*:*', '*', '*.a.example', 'a.example,b.example', ''].flatMap(
    (host): [string, object, RegExp][] => [
      [`the host ${host}`, { ...open, allowedHosts: ['ok.example:8443', '[::1]', host] }, /^allowedHosts/],
      [`the receiver ${host}`, { ...open, webhookPolicy: { allowedHosts: [host] } }, /^webhookPolicy\.allowedHosts/],
    ],
  ),
  ['a body limit of nothing', { ...open, maxBodyBytes: 0 }, /^maxBodyBytes: /],
  ['a profile store without its methods', { ...open, profileStore: {} }, /^profileStore\.(list|save|delete): Required/],
  [
    'a queue adapter without its methods',
    { ...open, queue: { adapter: { add() {} } } },
    /^queue\.adapter\.\w+: Required/,
  ],
  ['a store of parks without its methods', { ...open, parking: { store: {} } }, /^parking\.store\.\w+: Required/],
  ['a misspelt event log limit', { ...open, eventLog: { maxEvent: 1 } }, /^eventLog\.maxEvent: Unknown property/],
  [
    'a mode of an agent that there is not',
    { ...open, agents: [{ name: 'mine', command: 'mine', modes: { acceptEdit: 'edit' } }] },
    /^agents\.0\.modes\.acceptEdit: Unknown property/,
  ],
  ['a fractional session limit', { ...open, maxSessions: 1.5 }, /^maxSessions: /],
  [
    'an unknown notification type',
    { ...open, notifications: { webhook: { url: 'http://x', events: ['?'] } } },
    /^notifications\.webhook\.events\.0: /,
  ],
  ['a queue without concurrency', { ...open, queue: { maxConcurrency: 0 } }, /^queue\.maxConcurrency: /],
  [
    'a misspelt limit',
    { ...open, allowedCwdRoot: ['/srv'] },
    /^allowedCwdRoot: unknown option; did you mean allowedCwdRoots\?$/,
  ],
  ['a profile that is none', { ...open, profiles: [null] }, /^profiles: profile number 1: /],
  ['a logger that cannot say everything', { ...open, logger: { info() {}, error() {} } }, /^logger\.warn: Required/],
  ['an option that is none', { ...open, colour: 'red' }, /^colour: unknown option\.$/],
  [
    'a tool without a name',
    { ...open, executions: { tools: [{ description: '', inputSchema: {} }] } },
    /^executions\.tools\.0\.name: Required/,
  ],
  [
    'a provider profile without an engine',
    { allowUnauthenticated: true, profiles: [{ name: 'p', engine: 'provider', provider: { id: 'x' } }] },
    /createEngineRunner/,
  ],
]

for (const [name, options, message] of refusals)
  t.test(`construction throws: ${name}`, async (t) => {
    t.throws(() => createGateway(options as WorkerServerOptions), { code: 'SG_ERR_OPTION', message })
    t.throws(() => createWorkerServer(options as WorkerServerOptions), { message })
  })

t.test('a host to listen on is one, and not every address by an empty text', async (t) => {
  const server = createWorkerServer({ ...open, basePath: '/..v1/...' } as WorkerServerOptions)
  t.teardown(() => server.close())
  const refused: [host: string, message: RegExp][] = [
    ['', /listen\(port, host\): host must not be empty.* every address/],
    ['[::1]', /write ::1\.$/],
  ]
  for (const [host, message] of refused) await t.rejects(server.listen(0, host), { code: 'SG_ERR_OPTION', message })
  t.match(await server.listen(0), { host: '127.0.0.1' })
})

t.test('authenticate decides, also beside allowUnauthenticated', async (t) => {
  const { options } = createGateway({ ...open, authenticate: () => null })
  t.type(options.authenticate, 'function')
})

t.test('an option that is given as undefined is one that is not given', async (t) => {
  t.ok(createGateway({ ...open, maxSesions: undefined } as WorkerServerOptions))
})

t.test('what builds a part says which argument it takes', async (t) => {
  const builders: [(given: never) => unknown, unknown, RegExp][] = [
    [createFileSessionStore, '/srv/parked', /^createFileSessionStore\(\{ dir \}\): takes an object, not a string/],
    [createFileSessionStore, undefined, /takes an object, not undefined/],
    [createFileSessionStore, { path: '/srv/parked' }, /: dir: Required/],
    [createFileSessionStore, { dir: '' }, /: dir: /],
    [createFileProfileStore, { path: 'profiles.json' }, /^createFileProfileStore\(path\): .*not an object/],
    [createFileProfileStore, '', /not an empty one/],
    [createSqliteStorage, 'gateway.db', /^createSqliteStorage\(\{ path \}\): takes an object/],
    [createSqliteStorage, { path: 'a\u0000b.db' }, /: path: has a NUL character/],
    [createSqliteStorage, { path: 5 }, /: path: Expected string/],
    [createSqliteStorage, { path: 'gateway.db', synchronus: 'normal' }, /: synchronus: Unknown property/],
    [createPostgresStorage, 'postgres://db.example/gateway', /^createPostgresStorage\(\{ url \}\): takes an object/],
    [createPostgresStorage, {}, /: url: Required/],
    [providerEngine, null, /^providerEngine\(options\): takes an object, not null/],
    [providerEngine, { prices: { fake: { input: 3 } } }, /: prices\.fake\.output: Required/],
    [providerEngine, { webSeach: async () => [] }, /: webSeach: Unknown property/],
  ]
  for (const [build, given, message] of builders)
    t.throws(() => build(given as never), { code: 'SG_ERR_OPTION', message }, `${build.name} ${JSON.stringify(given)}`)
})

t.test('a host may leave its sessions no room for files', async (t) => {
  t.ok(providerEngine({ files: { maxFiles: 0, maxBytes: 0 } }))
  t.throws(() => providerEngine({ files: { maxFiles: -1 } }), { code: 'SG_ERR_OPTION', message: /files\.maxFiles: / })
})

t.test('an engine that is handed over in place of what it builds fails the session, not the gateway', async (t) => {
  const gateway = createGateway({
    allowUnauthenticated: true,
    profiles: [{ name: 'one', engine: 'provider', provider: { id: 'demo' } }],
    createEngineRunner: providerEngine as never,
  })
  await gateway.start()
  t.teardown(() => gateway.close())
  await t.rejects(gateway.registry.create({ cwd: '/tmp', prompt: 'Hello' }), { code: 'SG_ERR_ENGINE_START' })
})
