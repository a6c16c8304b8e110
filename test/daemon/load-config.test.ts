// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is what config files hold
import { chmodSync, copyFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { ConfigError } from '../../src/daemon/config-problem.js'
import { type ConfigFlags, loadConfig } from '../../src/daemon/load-config.js'
import { hashToken } from '../../src/daemon/tokens.js'

const SHA256 = hashToken('x')

interface World {
  files?: Record<string, string | Buffer>
  env?: NodeJS.ProcessEnv
  flags?: ConfigFlags
}

/** Loads a config file that stands in a folder of its own. */
function load(t: Test, content: object | string, { files = {}, env = {}, flags }: World = {}) {
  const text = typeof content === 'string' ? content : JSON.stringify(content, undefined, 2)
  const folder = t.testdir({ 'gateway.json': text, ...files })
  for (const name of ['gateway.json', ...Object.keys(files)]) chmodSync(join(folder, name), 0o600)
  return { folder, ...loadConfig(join(folder, 'gateway.json'), flags, env) }
}

/** What a config file is refused for. */
function refusal(t: Test, content: object | string, world: World = {}): ConfigError {
  try {
    load(t, content, world)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('it was accepted')
}

t.test('what is left out has its default', async (t) => {
  const { config, folder } = load(t, {})
  t.match(config, {
    listen: { host: '127.0.0.1', port: 8787 },
    basePath: '/v1',
    checkCredentials: true,
    webhookPolicy: { allowPrivateNetworks: false },
    sessionRetentionMs: 86_400_000,
    shutdownTimeoutMs: 30_000,
    parking: { parkDelayMs: 2_000, expiredGraceMs: 60_000 },
    maxSessions: 100_000,
    maxSocketsPerSession: 1_000,
    eventLog: { maxEvents: 100_000, maxBytes: 16 * 1024 * 1024 },
    storage: { sqlite: join(folder, 'session-gateway.db') },
    log: { level: 'info', pretty: process.stdout.isTTY === true },
  })
  t.match(load(t, { listen: { port: 1 }, log: { pretty: true }, queue: {} }).config, {
    listen: { host: '127.0.0.1', port: 1 },
    log: { level: 'info', pretty: true },
    queue: { maxConcurrency: 1, webhookAttempts: 3 },
  })
  t.notOk('queue' in load(t, {}).config, 'a section that turns something on is not there by itself')
})

t.test('the database goes where the service manager says, unless the file says otherwise', async (t) => {
  const env = { STATE_DIRECTORY: '/var/lib/gateway:/var/lib/other' }
  t.same(load(t, {}, { env }).config.storage, { sqlite: '/var/lib/gateway/session-gateway.db' })
  t.equal(load(t, { storage: 'memory' }, { env }).config.storage, 'memory')
  const { file, config } = load(t, {}, { env: { STATE_DIRECTORY: '' } })
  t.same(config.storage, { sqlite: join(dirname(file), 'session-gateway.db') }, 'a variable that is empty says nothing')
})

t.test('flags win over the file', async (t) => {
  const flags: ConfigFlags = { host: '::1', port: 0, logLevel: 'debug' }
  const { config } = load(t, { listen: { host: '127.0.0.1', port: 1 }, log: { level: 'warn' } }, { flags })
  t.match(config, { listen: { host: '::1', port: 0 }, log: { level: 'debug' } })
})

t.test('paths are relative to the file, commands only when they contain a slash', async (t) => {
  const { config, folder } = load(t, {
    allowedCwdRoots: ['work', '/srv', '../other'],
    profiles: [{ name: 'a', configDir: './conf' }],
    profileStore: { file: 'profiles.json' },
    storage: { sqlite: 'state/x.db' },
    hooks: 'hooks.mjs',
    agents: [
      { name: 'one', command: 'agent' },
      { name: 'two', command: 'bin/agent', args: ['relative/stays'] },
    ],
  })
  t.match(config, {
    allowedCwdRoots: [join(folder, 'work'), '/srv', join(folder, '..', 'other')],
    profiles: [{ configDir: join(folder, 'conf') }],
    profileStore: { file: join(folder, 'profiles.json') },
    storage: { sqlite: join(folder, 'state/x.db') },
    hooks: join(folder, 'hooks.mjs'),
    agents: [{ command: 'agent' }, { command: join(folder, 'bin/agent'), args: ['relative/stays'] }],
  })
})

t.test('strings may name environment variables', async (t) => {
  const env = { ROOT: '/srv/agents', HOST: 'hooks.example', LEVEL: 'debug' }
  const { config } = load(
    t,
    {
      allowedCwdRoots: ['${ROOT}/a'],
      notifications: { webhook: { url: 'https://${HOST}/x' } },
      log: { level: '${LEVEL}' },
      profiles: [{ name: 'a', description: '$${ROOT} $5' }],
    },
    { env },
  )
  t.match(config, {
    allowedCwdRoots: ['/srv/agents/a'],
    notifications: { webhook: { url: 'https://hooks.example/x' } },
    log: { level: 'debug' },
    profiles: [{ description: '${ROOT} $5' }],
  })
  t.match(refusal(t, { allowedHosts: ['${NOPE}'], basePath: '${NO PE}' }).problems, [
    { path: 'allowedHosts[0]', message: 'the environment variable NOPE is not set' },
    { path: 'basePath', message: /is no environment variable/ },
  ])
})

t.test(
  'the variables that hold the gateway’s own secrets are known by name, those of agents are not among them',
  async (t) => {
    const env = { SIGNING: 'x', TOKEN: 'y', HOST: 'hooks.example', KEY: 'z', LEVEL: 'debug' }
    const { secretEnv } = load(
      t,
      {
        notifications: {
          webhook: {
            url: 'https://${HOST}/x',
            headers: { authorization: 'Bearer ${TOKEN}' },
            secret: '${SIGNING}$${NOT}',
          },
        },
        log: { level: '${LEVEL}' },
        agents: [{ name: 'opencode', env: { KEY: '${KEY}' } }],
      },
      { env },
    )
    t.strictSame([...secretEnv].sort(), ['HOST', 'SIGNING', 'TOKEN'])
  },
)

t.test('secrets may stand in files', async (t) => {
  const content = {
    auth: { tokens: [{ name: 'a', sha256: { file: 'token.sha256' } }] },
    notifications: {
      webhook: { url: { file: 'url' }, headers: { 'x-key': { file: 'key' } }, secret: [{ file: 'key' }, 'b'] },
    },
    queue: { webhookSecret: { file: '${DIR}/key' } },
  }
  const files = { 'token.sha256': `${SHA256}\n`, url: 'https://example.com/x', key: ' spaces stay \r\n' }
  const { config, warnings } = load(t, content, { files, env: { DIR: '.' } })
  t.match(config, {
    auth: { tokens: [{ sha256: SHA256 }] },
    notifications: {
      webhook: { url: 'https://example.com/x', headers: { 'x-key': ' spaces stay ' }, secret: [' spaces stay ', 'b'] },
    },
    queue: { webhookSecret: ' spaces stay ' },
  })
  t.strictSame(warnings, [])
  const marked = { files: { key: '\ufeffas an editor writes it\n' } }
  const { queue } = load(t, { queue: { webhookSecret: { file: 'key' } } }, marked).config
  t.equal(queue?.webhookSecret, 'as an editor writes it')
})

t.test('a secret that cannot be read is named by its place and file, never by what it holds', async (t) => {
  const problems = (secret: unknown, files = {}) => refusal(t, { queue: { webhookSecret: secret } }, { files }).problems
  t.match(problems({ file: 'nope' }), [{ path: 'queue.webhookSecret', message: /nope: there is no such file$/ }])
  t.match(problems({ file: '.' }), [{ message: /this is a directory/ }])
  t.match(problems({ file: 'empty' }, { empty: '\n' }), [{ message: /the file is empty/ }])
  t.match(problems({ file: 'big' }, { big: 'x'.repeat(70_000) }), [{ message: /larger than 65536 bytes/ }])
  const notText = [{ path: 'queue.webhookSecret', message: /key: it is not text in UTF-8/ }]
  t.match(problems({ file: 'key' }, { key: Buffer.from('canary', 'utf16le').fill(0xff, 0, 1) }), notText)
  const unset = [{ path: 'queue.webhookSecret', message: 'the environment variable NOPE is not set' }]
  t.strictSame(problems({ file: '${NOPE}/key' }), unset, 'and a file that nobody has named is not looked for')
  t.match(problems({ file: '~/key' }), { length: 1, 0: { message: /^~ means nothing/ } })
  t.match(problems({ env: 'X' }), [{ message: 'expected a string or { "file": path }' }])
  t.match(problems(5), [{ path: 'queue.webhookSecret', message: /^expected a string or \{ "file": path \}/ }])
  t.match(
    refusal(t, { basePath: { file: 'x' } }).problems,
    [{ message: 'expected a string, not an object' }],
    'not a secret',
  )
})

t.test('two places for one storage are told as such, and not as a key that nobody knows', async (t) => {
  const storage = { sqlite: 'gateway.db', postgres: { url: 'postgres://localhost/gateway' } }
  t.match(refusal(t, { storage }).problems, [
    { path: 'storage.postgres', message: 'not together with sqlite; leave out one of them' },
  ])
  t.match(refusal(t, { storage: { sqlite: 'gateway.db', postgre: 1 } }).problems, [
    { path: 'storage.postgre', message: /^unknown key/ },
  ])
})

t.test('an origin with more than a browser sends is refused in words', async (t) => {
  t.match(refusal(t, { cors: { origins: ['https://a.example/'] } }).problems, [
    { path: 'cors.origins[0]', message: /scheme and host.*nothing behind/ },
  ])
})

t.test('a key in the place of the variable that holds it is refused, and not said', async (t) => {
  const key = 'sk-canary'
  const managedProfiles = { apiKeyEnvs: [key], endpoints: [{ baseUrl: 'https://models.example/v1', apiKeyEnv: key }] }
  const agents = [{ name: 'mine', command: 'mine', auth: { method: 'key', apiKeyEnv: key } }]
  const error = refusal(t, { managedProfiles, agents })
  t.match(error.problems, [
    { path: 'managedProfiles.apiKeyEnvs[0]', message: /does not match/ },
    { path: 'managedProfiles.endpoints[0].apiKeyEnv' },
    { path: 'agents[0].auth.apiKeyEnv' },
  ])
  t.notMatch(error.message, 'canary')
})

t.test('files that everybody may read are warned about when they hold secrets', async (t) => {
  const folder = t.testdir({
    'open.json': JSON.stringify({ queue: { webhookSecret: { file: 'key' } } }),
    'inline.json': JSON.stringify({ queue: { webhookSecret: 'canary' } }),
    key: 'canary',
  })
  for (const name of ['open.json', 'inline.json', 'key']) chmodSync(join(folder, name), 0o644)
  t.match(loadConfig(join(folder, 'open.json'), {}, {}).warnings, [
    { path: 'queue.webhookSecret', message: /chmod 600 .*key/ },
  ])
  t.match(loadConfig(join(folder, 'inline.json'), {}, {}).warnings, [{ path: '', message: /chmod 600 .*inline\.json/ }])
  copyFileSync(join(folder, 'inline.json'), join(folder, 'my own.json'))
  t.match(loadConfig(join(folder, 'my own.json'), {}, {}).warnings, [{ message: /chmod 600 '.*\/my own\.json'$/ }])
})

t.test('certificates may be read by everybody, their key may not', async (t) => {
  const file = { file: 'pem' }
  const cluster = { node: 'a', url: 'https://a:1', listen: { host: 'a', port: 1 }, secret: '${SECRET}' }
  const env = { SECRET: 'a secret of nodes that is long enough for them', KEY: 'canary' }
  const folder = t.testdir({
    'open.json': JSON.stringify({ cluster: { ...cluster, tls: { cert: file, key: file, ca: file } } }),
    'inline.json': JSON.stringify({ cluster: { ...cluster, tls: { cert: 'PEM', key: '${KEY}', ca: 'PEM' } } }),
    pem: 'canary',
  })
  for (const name of ['open.json', 'inline.json', 'pem']) chmodSync(join(folder, name), 0o644)
  const { warnings } = loadConfig(join(folder, 'open.json'), {}, env)
  t.strictSame(
    warnings.map(({ path }) => path),
    ['cluster.tls.key'],
  )
  t.strictSame(loadConfig(join(folder, 'inline.json'), {}, env).warnings, [])
})

t.test('everything that is wrong is told at once, in the order of the file, with line, column and path', async (t) => {
  const error = refusal(
    t,
    `{
  "listen": { "prot": 1, "host": 5 },
  "auth": { "tokens": [{ "name": "a", "sha256": "abc", "allowedProfile": [] }] },
  "storage": { "sqlit": "x" },
  "profiles": [{ "engine": "clii" }],
  "queue": { "maxConcurrency": 0, "retention": {} },
  "allowUnauthenticated": "yes",
  "log": { "level": "loud" },
  "__proto__": {}
}`,
  )
  const lines = error.message.split('\n').map((line) => line.replace(/^ {2}.*?(gateway\.json)/, '$1'))
  t.strictSame(lines, [
    'the configuration has 13 problems',
    'gateway.json:2:15  listen.prot: unknown key; did you mean port?',
    'gateway.json:2:26  listen.host: expected a string, not a number',
    'gateway.json:3:39  auth.tokens[0].sha256: does not match ^[0-9a-f]{64}$ (SHA-256 of the token, 64 lower-case hexadecimal digits. `session-gateway init` writes one.)',
    'gateway.json:3:56  auth.tokens[0].allowedProfile: unknown key; did you mean allowedProfiles?',
    'gateway.json:4:3  storage.sqlite: missing; expected a string',
    'gateway.json:4:16  storage.sqlit: unknown key; did you mean sqlite?',
    'gateway.json:5:16  profiles[0].name: missing; expected a string',
    'gateway.json:5:18  profiles[0].engine: expected "cli" or "provider"',
    'gateway.json:6:14  queue.maxConcurrency: must be at least 1',
    'gateway.json:6:35  queue.retention.maxAgeMs: missing; expected an integer',
    'gateway.json:7:3  allowUnauthenticated: expected true or false, not a string',
    'gateway.json:8:12  log.level: expected "trace", "debug", "info", "warn", "error", "fatal" or "silent"',
    'gateway.json:9:3  __proto__: unknown key',
  ])
})

t.test('messages help with the usual mistakes', async (t) => {
  const of = (content: object) => refusal(t, content).problems
  t.match(of({ listen: { port: '${PORT}' } }), [{ path: 'listen.port', message: /not set/ }])
  t.match(of({ listen: { port: '80' } }), [{ message: /not a string; write it without quotes/ }])
  const whole = [{ path: 'queue.maxConcurrency', message: 'expected an integer; write a whole number' }]
  t.strictSame(of({ queue: { maxConcurrency: 1.5 } }), whole)
  t.match(of({ allowedCwdRoots: ['~/work'] }), [{ path: 'allowedCwdRoots[0]', message: /~ means nothing/ }])
  t.match(of({ auth: { tokens: [] } }), [{ path: 'auth.tokens', message: /at least 1/ }])
  const cluster = { node: 'a', url: 'http://a:1', listen: { host: 'a', port: 1 } }
  const short = { message: 'must have at least 32 characters' }
  t.match(of({ cluster: { ...cluster, secret: 'short' } }), [{ path: 'cluster.secret', ...short }])
  t.match(of({ cluster: { ...cluster, secret: ['short'] } }), [{ path: 'cluster.secret[0]', ...short }])
  t.match(of({ storage: 'disk' }), [
    { path: 'storage', message: 'expected "memory", { "sqlite": … } or { "postgres": … }' },
  ])
  t.match(of({ auth: { tokens: [{ name: 'a', sha256: SHA256, expiresAt: 'soon' }] } }), [
    { path: 'auth.tokens[0].expiresAt' },
  ])
})

t.test('a file that cannot be read, or is no JSON, says so and what to do', async (t) => {
  const folder = t.testdir({ 'gateway.json': '{\n  "listen": {}\n  "auth": {}\n}' })
  t.throws(() => loadConfig(join(folder, 'nope.json')), {
    message: /nope\.json: there is no such file; `session-gateway init`/,
  })
  t.throws(() => loadConfig(folder), { message: /this is a directory/ })
  t.throws(() => loadConfig(join(folder, 'gateway.json')), {
    message: /gateway\.json:3:3: not valid JSON: expected a comma or }/,
  })
  t.match(refusal(t, '[]').problems, [{ path: '', message: 'expected an object, not an array' }])
})

t.test('no message quotes a value', async (t) => {
  const canary = { headers: { a: ['canary'] }, url: 5, secret: [{ canary: 'canary' }], extra: 'canary' }
  const content = { auth: { tokens: [{ name: 'canary', sha256: 'canary' }] }, notifications: { webhook: canary } }
  t.notMatch(refusal(t, content).message, /canary/)
})
