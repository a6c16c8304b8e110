import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { hashToken } from '../../src/daemon/tokens.js'
import { QUEUE_DEFAULTS } from '../../src/jobs/options.js'
import { VERSION } from '../../src/lib/package-root.js'
import { compiledPackage } from '../fixtures/compiled.js'
import { DEMO, runDaemon } from '../fixtures/daemon-process.js'

/** Runs the command line to its end, in a folder that has the given files. */
async function run(t: Test, args: string[], files: Record<string, object> = {}, cwd = t.testdir()) {
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(cwd, name), JSON.stringify(content), { mode: 0o600 })
  const daemon = runDaemon(t, args, { cwd })
  const { code } = await daemon.exited
  return { code, stdout: daemon.stdout, stderr: daemon.stderr, cwd }
}

const OPEN = { allowUnauthenticated: true, profiles: [], listen: { port: 0 } }

t.test('--help tells the commands, flags and exit codes', async (t) => {
  const { code, stdout, stderr } = await run(t, ['--help'])
  t.equal(code, 0)
  t.equal(stderr, '')
  for (const word of [
    'init',
    'check',
    '--config',
    '--host',
    '--port',
    '--log-level',
    '--print-config',
    'Exit codes',
    'SIGTERM',
  ])
    t.match(stdout, word)
})

t.test('--version tells the version', async (t) => {
  t.match(await run(t, ['--version']), { code: 0, stdout: `${VERSION}\n` })
})

t.test('wrong usage exits with 2 and points at the help', async (t) => {
  const wrong: [args: string[], message: RegExp][] = [
    [['--nope'], /unknown option '--nope'/],
    [['launch'], /unknown command 'launch'/],
    [['--port', '99999'], /from 0 to 65535/],
    [['--host', ''], /Expected an address/],
    [['--log-level', 'loud'], /Allowed choices are trace, debug/],
    [['check', 'a', 'b'], /too many arguments/],
    [['--port', '80', 'check'], /--port is of the gateway itself, and does nothing for check/],
    [['--print-config', 'doctor'], /--print-config .* doctor/],
    [['--log-level', 'debug', 'sessions', 'ls'], /--log-level .* ls/],
  ]
  for (const [args, message] of wrong) {
    const { code, stdout, stderr } = await run(t, args)
    t.equal(code, 2, args.join(' '))
    t.equal(stdout, '')
    t.match(stderr, message)
    t.match(stderr, '--help')
  }
})

t.test('whoever stands in a directory that was removed is told that', async (t) => {
  const bin = join(compiledPackage(), 'bin/session-gateway.js')
  const config = join(t.testdir({ 'gateway.json': JSON.stringify(OPEN) }), 'gateway.json')
  for (const words of [['run', 'hi'], ['check', config], ['--config', config], ['check']]) {
    const line = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    const ended = spawnSync('/bin/sh', ['-c', line, 'sh', process.execPath, bin, ...words], { cwd: t.testdirName })
    const status = words[0] === '--config' ? 3 : 1
    const said = { status, stderr: 'session-gateway: The working directory is gone: change to one that is there.\n' }
    t.match({ ...ended, stderr: String(ended.stderr) }, said, words.join(' '))
  }
})

t.test('without a configuration it says how to get one', async (t) => {
  for (const args of [[], ['check']])
    t.match(await run(t, args), {
      code: 2,
      stdout: '',
      stderr: /gateway\.json: there is no such file; `session-gateway init`/,
    })
})

t.test('check tells everything that is wrong at once', async (t) => {
  const content = { ...OPEN, listen: { prot: 1 }, profiles: [{ name: 'no good' }] }
  const { code, stdout, stderr } = await run(t, ['check', '--config', 'x.json'], { 'x.json': content })
  t.equal(code, 2)
  t.equal(stdout, '')
  t.match(stderr, /^session-gateway: the configuration has 2 problems\n/)
  t.match(stderr, /x\.json:1:\d+ {2}listen\.prot: unknown key; did you mean port\?/)
  t.match(stderr, /x\.json:1:\d+ {2}profiles\[0\]\.name: does not match/)
})

t.test('check tells as a start does that there is no SQLite, also where no database is there yet', async (t) => {
  const content = JSON.stringify({ ...OPEN, storage: { sqlite: 'none.db' } })
  const cwd = t.testdir()
  writeFileSync(join(cwd, 'gateway.json'), content, { mode: 0o600 })
  const check = runDaemon(t, ['check'], { cwd, loaders: ['no-sqlite'] })
  t.match(await check.exited, { code: 2 })
  t.match(check.stderr, /storage\.sqlite: Node \S+ has no SQLite\. Use Node 22\.13 or later, or run `npm i/)
  const env = { NODE_OPTIONS: '--no-addons' }
  const refused = runDaemon(t, ['check'], { cwd, env, loaders: ['no-built-in-sqlite'] })
  t.match(await refused.exited, { code: 2 })
  t.match(
    refused.stderr,
    /has no SQLite\. @photostructure\/sqlite is installed and cannot be loaded: .*addons is disabled\. /,
  )
})

t.test('check says ok and what will be served', async (t) => {
  const auth = { tokens: [{ name: 'ada', sha256: hashToken('x') }] }
  const files = { 'gateway.json': { profiles: [DEMO], auth, storage: { sqlite: 'x.db' } } }
  const { code, stdout, stderr } = await run(t, ['check'], files)
  t.equal(code, 0)
  t.match(stdout, /^ok: gateway\.json can be served\n/)
  t.match(stdout, 'lets in     tokens ada')
  t.match(stdout, /storage +\S*x\.db/)
  t.equal(stderr, '')
})

t.test('--config is understood before and after the command, and as its argument', async (t) => {
  for (const args of [
    ['--config', 'x.json', 'check'],
    ['check', '--config', 'x.json'],
    ['check', 'x.json'],
  ])
    t.match(await run(t, args), { code: 2, stderr: /x\.json: there is no such file/ }, args.join(' '))
  for (const command of ['check', 'init']) {
    const both = await run(t, [command, 'x.json', '--config', 'y.json'], { 'y.json': OPEN })
    t.match(both, { code: 2, stdout: '', stderr: /x\.json .*y\.json; name one/ }, 'neither is passed over')
  }
})

t.test('--print-config shows what is in effect, without secrets, and does not listen', async (t) => {
  const content = {
    ...OPEN,
    listen: { host: '127.0.0.1', port: 1 },
    notifications: { webhook: { url: 'https://h.example/canary', secret: 'canary' } },
  }
  const args = ['--print-config', '--port', '4242', '--log-level', 'debug']
  const { code, stdout } = await run(t, args, { 'gateway.json': content })
  t.equal(code, 0)
  t.notMatch(stdout, /canary/)
  t.match(JSON.parse(stdout), {
    listen: { host: '127.0.0.1', port: 4242 },
    log: { level: 'debug' },
    notifications: { webhook: { url: 'https://h.example/[redacted]', secret: '[redacted]', events: undefined } },
    sessionRetentionMs: 86_400_000,
  })
})

t.test('--print-config shows the bounds of a queue that the file does not name', async (t) => {
  const { code, stdout } = await run(t, ['--print-config'], { 'gateway.json': { ...OPEN, queue: {} } })
  t.equal(code, 0)
  t.match(JSON.parse(stdout).queue, { maxQueuedJobs: QUEUE_DEFAULTS.maxQueuedJobs, maxConcurrency: Number })
})

t.test('without authentication no flag opens it to other machines', async (t) => {
  const { code, stdout, stderr } = await run(t, ['--host', '0.0.0.0'], { 'gateway.json': OPEN })
  t.equal(code, 2)
  t.equal(stdout, '')
  t.match(stderr, /allowUnauthenticated: .*loopback only, and 0\.0\.0\.0 can be reached/)
})

t.test('a port that is taken exits with 3', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1')
  t.teardown(() => holder.close())
  await new Promise((resolve) => holder.once('listening', resolve))
  const { port } = holder.address() as AddressInfo
  const { code, stderr } = await run(t, ['--port', String(port)], { 'gateway.json': OPEN })
  t.equal(code, 3)
  t.match(
    stderr,
    `session-gateway: cannot listen on 127.0.0.1:${port}: another process does; stop it, or choose another port`,
  )
})

t.test('a module of hooks that waits for what never comes is told, and ends nothing in silence', async (t) => {
  const cwd = t.testdir({ 'hooks.mjs': 'await new Promise(() => {})' })
  const said = await run(t, ['check'], { 'gateway.json': { ...OPEN, hooks: 'hooks.mjs' } }, cwd)
  t.match(said, { code: 2, stderr: /hooks: .*hooks\.mjs could not be imported: .*never comes/ })
})

t.test('a module of hooks that goes on by itself keeps neither check nor --print-config from ending', async (t) => {
  const cwd = t.testdir({ 'hooks.mjs': 'setInterval(() => {}, 60_000); export const authenticate = () => null' })
  const files = { 'gateway.json': { listen: { port: 0 }, profiles: [DEMO], storage: 'memory', hooks: 'hooks.mjs' } }
  t.match(await run(t, ['check'], files, cwd), { code: 0, stdout: /^ok: .*\n {2}hooks {7}authenticate\n$/s })
  const printed = await run(t, ['--print-config'], files, cwd)
  t.equal(printed.code, 0)
  t.match(JSON.parse(printed.stdout), { storage: 'memory' })
})

t.test('init writes once, shows the token once, and what comes next', async (t) => {
  const { code, stdout, cwd } = await run(t, ['init'])
  t.equal(code, 0)
  const token = /export TOKEN=(sgw_\S+)/.exec(stdout)?.[1] ?? ''
  t.match(readFileSync(join(cwd, 'gateway.json'), 'utf8'), hashToken(token))
  t.match(stdout, /Next:\n\n {2}session-gateway\n/)
  t.match(stdout, /\n {2}session-gateway login --token "\$TOKEN"\n {2}session-gateway run --cwd workspace "/)
  t.match(await run(t, ['check'], {}, cwd), { code: 0 })
  const again = await run(t, ['init'], {}, cwd)
  t.match(again, { code: 2, stdout: '', stderr: /gateway\.json: there is a file already/ })
  t.match(await run(t, ['init', 'other.json'], {}, cwd), { code: 0, stdout: /session-gateway --config other\.json/ })
  const spaced = await run(t, ['init', "it's mine/gateway.json"], {}, cwd)
  const [, next = ''] = / {2}session-gateway (.*)/.exec(spaced.stdout) ?? []
  t.equal(execFileSync('sh', ['-c', `printf '%s|' ${next}`], { encoding: 'utf8' }), "--config|it's mine/gateway.json|")
})
