import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { createClient } from '../../client/index.js'
import { hashToken } from '../../src/daemon/tokens.js'
import { until } from '../fixtures/build.js'
import { DEMO, startDaemon, TOKEN } from '../fixtures/daemon-process.js'
import { script } from '../fixtures/demo.js'
import { runPlain } from '../fixtures/terminal.js'

const DEPLOY = { name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }

/** A gateway, and the command line of somebody who may do everything there. */
async function world(t: Test) {
  const { url, cwd, daemon } = await startDaemon(t, {
    auth: { tokens: [{ name: 'ada', sha256: hashToken(TOKEN), canManageProfiles: true }] },
    queue: { maxConcurrency: 2 },
    profileStore: true,
    storage: 'memory',
    executions: { tools: [DEPLOY] },
  })
  const work = join(cwd, 'work')
  const env = {
    SESSION_GATEWAY_URL: url,
    SESSION_GATEWAY_TOKEN: TOKEN,
    SESSION_GATEWAY_CONFIG: join(cwd, 'login', 'client.json'),
  }
  const run = (args: string[], input?: string, more: NodeJS.ProcessEnv = {}) =>
    runPlain(args, { cwd: work, env: { ...env, ...more } }, input)
  return { url, cwd, work, env, run, daemon, client: createClient({ baseUrl: url, token: TOKEN }) }
}

t.test(
  'run says the answer on standard output, everything else beside it, and how it went by its exit code',
  async (t) => {
    const { run, work, client } = await world(t)
    const done = await run(['run', script({ text: 'One **bold** word.\n\u001b]0;owned\u0007' })])
    t.same([done.code, done.stdout], [0, 'One **bold** word.\n]0;owned\n'], 'nothing that a terminal would obey')
    t.match(done.stderr, /^Session .*\n✓ done .*\nTo go on: session-gateway sessions attach /)
    const [session] = await client.sessions.list().toArray()
    t.equal(session?.cwd, work)

    t.match(await run(['run'], script({ text: 'From a pipe.' })), { code: 0, stdout: 'From a pipe.\n' })
    t.match(await run(['run'], ''), { code: 2, stderr: /There is no prompt/ })
    t.match(await run(['run', script({ fail: 'upstream is down' })]), {
      code: 1,
      stderr: /✖ failed.*\n.*upstream is down/,
    })
    const asking = script({ tools: [{ tool: 'fs_write', input: { path: 'a', content: '' } }] }, { text: 'Well.' })
    t.match(await run(['run', asking]), {
      code: 3,
      stdout: 'Well.\n',
      stderr: /● fs_write a\n.*Nobody is at a terminal/,
    })
    t.match(await run(['run', '--mode', 'bypassPermissions', asking]), { code: 0 })
    const cutShort = run(['run', '--wait', asking])
    const followed = async () =>
      (await client.sessions.list({ status: 'awaiting_approval' }).toArray()).find((one) => one.attachedClients > 0)
    await until(async () => (await followed()) !== undefined)
    await client.sessions.remove((await followed())!.id)
    t.match(await cutShort, { code: 1, stderr: /The session was closed\.\n$/ })
    t.match(await run(['run', 'x', '--url', 'http://127.0.0.1:1/v1']), {
      code: 4,
      stderr: /No answer from .*\nIs it running/,
    })
    for (const follow of [
      ['jobs', 'watch'],
      ['jobs', 'watch', session!.id],
      ['sessions', 'attach', session!.id],
    ])
      t.match(await run([...follow, '--url', 'http://127.0.0.1:1/v1']), {
        code: 4,
        stderr: /^session-gateway: No answer/,
      })
    const unfit = await run(['run', 'x', '--mode', 'none'])
    t.match(unfit, { code: 2, stderr: /^session-gateway: permissionMode: Expected one of .*\n$/ }, 'said once')
    t.match(await run(['run', 'x', '--profile', 'none']), {
      code: 2,
      stderr: /^session-gateway: There is no such profile\.\n$/,
    })
    t.match(await run(['run', 'x', '--cwd', '/']), { code: 3, stderr: /outside the allowed roots\.\n.* --cwd\.$/m })
    t.match(await run(['run', '--nonsense']), { code: 2 })

    const last = join(work, 'last.txt')
    const lines = await run(['run', '--json', '--output-last-message', last, script({ text: 'In lines.' })])
    const events = lines.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    t.equal(events.at(-1).type, 'turn_completed')
    t.equal(lines.stderr, '')
    t.equal(readFileSync(last, 'utf8'), 'In lines.\n')
    const before = (await client.sessions.list().toArray()).length
    for (const nowhere of [join(work, 'none', 'last.txt'), work])
      t.match(await run(['run', '--output-last-message', nowhere, 'Hello.']), {
        code: 2,
        stderr: /cannot be written: .*--output-last-message\.\n$/,
      })
    t.match(await run(['run', '--detach', '--output-last-message', last, 'Hello.']), { code: 2, stderr: /--detach/ })
    t.equal((await client.sessions.list().toArray()).length, before, 'no turn was begun whose last words would be lost')
    t.match(await run(['run', '--output-last-message', last, '--cwd', '/', 'x']), { code: 3 })
    t.equal(readFileSync(last, 'utf8'), 'In lines.\n', 'what the file had stays')
    const never = join(work, 'never.txt')
    t.match(await run(['run', '--output-last-message', never, '--cwd', '/', 'x']), { code: 3 })
    t.notOk(existsSync(never), 'and what was not there is not')
    const pipe = join(work, 'pipe')
    execFileSync('mkfifo', [pipe])
    const reader = promisify(execFile)('cat', [pipe])
    t.match(await run(['run', '--output-last-message', pipe, script({ text: 'To a pipe.' })]), { code: 0 })
    t.equal((await reader).stdout, 'To a pipe.\n', 'whoever reads a pipe reads to its end once')

    const detached = await run(['run', '--detach', script({ text: 'Later.' })])
    t.match(detached, { code: 0, stdout: /^[0-9a-f-]{36}\n$/ })
  },
)

t.test('sessions are listed, shown, talked to, renamed, fetched from and removed', async (t) => {
  const { run, cwd, work, url, client } = await world(t)
  t.match(await run(['sessions', 'ls']), { code: 0, stdout: '', stderr: /There are no sessions/ })
  t.match(await run(['sessions', 'ls', '--output', 'json']), { code: 0, stdout: '[]\n' })
  await run(['run', '--mode', 'bypassPermissions', '--title', 'The report', 'Please write a report.'])
  const [info] = await client.sessions.list().toArray()
  const id = info!.id
  const short = id.slice(0, 8)
  const listed = await run(['sessions', 'ls'])
  t.match(listed.stdout, /^ID +STATUS +PROFILE +ACTIVE +TITLE\n/)
  t.match(listed.stdout, RegExp(`^${short} +idle +demo +\\S+ ago +The report$`, 'm'))
  t.equal(JSON.parse((await run(['sessions', 'ls', '--output', 'jsonl'])).stdout).id, id)
  t.match(await run(['sessions', 'ls', '--status', 'failed']), { code: 0, stdout: '', stderr: /^None of the sessions/ })
  t.match((await run(['sessions', 'show', short])).stdout, RegExp(`^id +${id}\n`))
  t.equal(JSON.parse((await run(['sessions', 'show', short, '--output', 'json'])).stdout).title, 'The report')
  t.match(await run(['sessions', 'show', 'ffff']), { code: 1, stderr: /no session whose id begins with ffff/ })
  t.match(await run(['sessions', 'rename', short, 'Another', 'name']), { code: 0, stderr: /Another name/ })
  t.match((await run(['sessions', 'files', short])).stdout, /^report\.md +\d+/m)
  t.match(await run(['sessions', 'pull', short]), { code: 0, stdout: `${join(work, 'report.md')}\n` })
  t.match(readFileSync(join(work, 'report.md'), 'utf8'), /^# Demonstration report/)
  t.match(await run(['sessions', 'pull', short]), { code: 1, stderr: /exists already/ })
  t.match(await run(['sessions', 'pull', short, '--force', '--into', 'out']), { code: 0 })
  t.match(await run(['sessions', 'pull', short, '../evil', '--into', 'out']), { code: 1, stderr: /outside of/ })
  const inFile = await run(['sessions', 'pull', short, '--into', 'report.md'])
  t.match(inFile, { code: 1, stdout: '', stderr: /^session-gateway: ENOTDIR: .*report\.md.*\n$/ })
  // an agent that works on this machine may have laid links
  symlinkSync(join(cwd, 'elsewhere.md'), join(work, 'out', 'linked.md'))
  symlinkSync(cwd, join(work, 'out', 'links'))
  for (const path of ['linked.md', 'links/x.md'])
    t.match(await run(['sessions', 'pull', short, 'report.md', path, '--force', '--into', 'out']), {
      code: 1,
      stdout: '',
      stderr: /outside of/,
    })
  t.match(await run(['sessions', 'attach', short, '--from', '-1']), { code: 2, stderr: /Expected a number from 0/ })
  t.match(await run(['sessions', 'send', short, script({ text: 'Again.' })]), { code: 0 })
  await until(async () => (await client.sessions.get(id)).numTurns >= 2)
  t.equal((await run(['open', short])).stdout, `${url}/sessions/${id}\n`)
  await client.session(id).close()
  const log = await run(['sessions', 'attach', short])
  t.match(log.stdout, /Again\.\n/)
  t.match(log.stderr, /> Please write a report\.\n/)
  t.match(log.stderr, /The session was closed/)
  const beyond = await run(['sessions', 'attach', short, '--from', '999999'])
  t.match(beyond.stderr, /^… from its beginning\n> Please/, 'where there is no such event nothing is lost')
  const gone = await run(['sessions', 'rm', 'zz', short, 'zz'])
  t.equal(gone.code, 1)
  t.match(gone.stderr, /^session-gateway: There is no session whose id begins with zz.*\n/, 'said once')
  t.equal(gone.stderr.split('\n').slice(1).join('\n'), `Removed ${id}.\n`, 'and the others go')
  t.same(await client.sessions.list().toArray(), [])
})

t.test('what sessions ask is answered from anywhere', async (t) => {
  const { run, client, url } = await world(t)
  t.match(await run(['approvals', 'ls']), { code: 0, stderr: /Nothing waits/ })
  await run([
    'run',
    '--detach',
    script({ tools: [{ tool: 'fs_write', input: { path: 'a.txt', content: 'a' } }] }, { text: 'Written.' }),
  ])
  await run(['run', '--detach', 'ask me a question'])
  await until(async () => (await client.sessions.list({ status: 'awaiting_approval' }).toArray()).length === 2)
  const { stdout } = await run(['approvals', 'ls'])
  const write = /^(\w+) +\w+ +fs_write .*a\.txt$/m.exec(stdout)?.[1]
  const ask = /^(\w+) +\w+ +AskUserQuestion +Which colour .*\(Blue \/ Green\)$/m.exec(stdout)?.[1]
  t.ok(write && ask, stdout)
  t.match(await run(['approvals', 'allow', ask!]), {
    code: 2,
    stderr: /answer each in turn with --answer:\n.*Blue \/ Green/,
  })
  t.match(await run(['approvals', 'allow', ask!, '--answer', 'Green']), { code: 0 })
  t.match(await run(['approvals', 'allow', write!, '--answer', 'No']), { code: 2, stderr: /asks no question/ })
  t.match(await run(['approvals', 'deny', write!, '--message', 'Not on a Friday.']), { code: 0 })
  const late = /fs_write of “.*” does not wait any more\. It was denied by ada, over the API, who was first\.\n$/
  t.match(await run(['approvals', 'allow', write!]), { code: 1, stderr: late })
  t.match(await run(['approvals', 'allow', 'zz']), { code: 1, stderr: /Nothing that waits/ })
  await run(['run', '--detach', 'ask me a question'])
  await until(async () => (await client.inbox.count()).questions === 1)
  const [asked] = await client.inbox.list().toArray()
  /** Somebody else answers while the answer is on its way. */
  const slow = createServer(async ({ method, url: path }, answer) => {
    if (method === 'POST') await client.sessions.resolvePermission(asked!.session.id, asked!.request.id, 'deny')
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    const body = method === 'POST' ? '{"behavior":"allow"}' : null
    const given = await fetch(`${new URL(url).origin}${path}`, { method: method!, headers, body })
    answer.writeHead(given.status, { 'content-type': given.headers.get('content-type')! }).end(await given.text())
  }).listen(0, '127.0.0.1')
  t.teardown(() => slow.close())
  await once(slow, 'listening')
  const through = `http://127.0.0.1:${(slow.address() as AddressInfo).port}${new URL(url).pathname}`
  t.match(
    await run(['approvals', 'allow', asked!.request.id, '--answer', 'Green'], '', { SESSION_GATEWAY_URL: through }),
    { code: 1, stderr: /AskUserQuestion of “.*” does not wait any more\. It was denied by ada, over the API, who was/ },
  )
  await until(async () => (await client.sessions.list({ status: 'idle' }).toArray()).length === 3)

  await run(['run', '--detach', script({ tools: [{ tool: 'deploy', input: {} }] }, { text: 'Deployed.' })])
  let executionId: string | undefined
  await until(async () => {
    const [parked] = await client.sessions.list({ status: 'parked' }).toArray()
    executionId = parked?.parked?.executions[0]?.executionId
    return executionId
  })
  t.match(await run(['executions', 'resolve', executionId!, '--json', '{']), { code: 2, stderr: /no JSON/ })
  t.match(await run(['executions', 'resolve', executionId!, '--reason', 'timeout']), { code: 2, stderr: /--failed/ })
  t.match(await run(['executions', 'resolve', executionId!, '--text', 'ok']), { code: 0, stderr: /^Delivered\./ })
  t.match(await run(['executions', 'resolve', executionId!], 'late'), { code: 0, stderr: /had a result already/ })
  t.match(await run(['executions', 'resolve', 'nothing', '--failed', 'x']), { code: 1, stderr: /no such execution/ })
})

t.test('what others name is not obeyed by a terminal, also in errors and notes', async (t) => {
  const { run, client } = await world(t)
  const title = 'A\u001b]0;owned\u0007B'
  const asking = script({ tools: [{ tool: 'fs_write', input: { path: 'a.txt', content: 'a' } }] }, { text: 'Written.' })
  const id = (await run(['run', '--detach', '--title', title, asking])).stdout.trim()
  await until(async () => (await client.sessions.get(id)).status === 'awaiting_approval')
  const [item] = await client.inbox.list().toArray()
  for (const args of [
    ['approvals', 'allow', item!.request.id],
    ['sessions', 'rename', id, title],
    ['sessions', 'show', title],
  ]) {
    const { stderr } = await run(args)
    t.match(stderr, 'A]0;ownedB', args.join(' '))
    t.notMatch(stderr, '\u001b')
  }
})

t.test('an empty id means nothing, also where there is one thing only', async (t) => {
  const { run, client } = await world(t)
  const asking = script({ tools: [{ tool: 'fs_write', input: { path: 'a.txt', content: 'a' } }] }, { text: 'Written.' })
  const id = (await run(['run', '--detach', asking])).stdout.trim()
  await until(async () => (await client.sessions.get(id)).status === 'awaiting_approval')
  for (const command of [
    ['approvals', 'allow'],
    ['approvals', 'deny'],
    ['sessions', 'send'],
    ['sessions', 'rm'],
  ])
    t.match(await run([...command, '']), { code: 2, stderr: /is empty/ }, command.join(' '))
  t.equal((await client.sessions.get(id)).status, 'awaiting_approval')
  const job = (await run(['jobs', 'submit', script({ hang: true })])).stdout.trim()
  t.match(await run(['jobs', 'cancel', '']), { code: 2, stderr: /is empty/ })
  t.notMatch((await client.jobs.get(job)).status, 'canceled')
})

t.test('jobs are submitted, watched and canceled', async (t) => {
  const { run, client } = await world(t)
  const submitted = await run(['jobs', 'submit', script({ text: 'Worked.' })])
  const id = submitted.stdout.trim()
  t.match(await run(['jobs', 'watch', id.slice(0, 8)]), { code: 0 })
  t.equal((await client.jobs.get(id)).status, 'succeeded')
  for (const flags of [[], ['--output', 'jsonl']])
    t.match(
      await run(['jobs', 'watch', id, ...flags]),
      { code: 0, stdout: '', stderr: `The job has succeeded: session-gateway jobs show ${id}\n` },
      'of one that has ended that is said',
    )
  t.match(await run(['jobs', 'ls', '--status', 'failed']), { code: 0, stdout: '', stderr: /^None of the jobs/ })
  t.match(await run(['jobs', 'ls', '--limit', '0']), { code: 2, stderr: /Expected a number from 1/ })
  t.match((await run(['jobs', 'ls'])).stdout, RegExp(`^${id.slice(0, 8)} +succeeded +demo`, 'm'))
  t.match((await run(['jobs', 'show', id.slice(0, 8)])).stdout, /^result +Worked\.$/m)
  t.match(await run(['jobs', 'submit', '--wait', script({ text: 'Waited.' })]), { code: 0, stdout: 'Waited.\n' })
  t.match(
    await run(['jobs', 'submit', '--wait', script({ fail: 'no' })]),
    { code: 1, stdout: '', stderr: /^Job .*\nno\n$/ },
    'why it failed is no result',
  )
  t.match(
    await run(['jobs', 'submit', '--wait', '--max-tokens', '1', script({ text: 'Said before.' })]),
    { code: 1, stdout: 'Said before.\n', stderr: /^Job .*\n.*token/ },
    'why a job failed is told also where it has said something',
  )
  const hanging = (await run(['jobs', 'submit', script({ hang: true })])).stdout.trim()
  t.match(await run(['jobs', 'cancel', hanging]), { code: 0, stderr: /is canceled/ })
  t.match(await run(['jobs', 'watch', hanging]), { code: 130, stderr: /was canceled/ })
})

t.test('what is refused of a flag names the flag, whatever the field is called', async (t) => {
  const { run } = await world(t)
  const submit = (...flags: string[]) => run(['jobs', 'submit', 'Hello.', ...flags])
  for (const flag of ['--attempts', '--max-tokens', '--max-duration'])
    t.match(await submit(flag, '0'), { code: 2, stderr: RegExp(`'${flag} .* Expected a number from 1\\.`) })
  for (const [flags, told] of [
    [['--max-duration', '9'.repeat(15)], /^session-gateway: maxDurationMs: Expected .*\. See --max-duration\.\n$/],
    [['--mode', 'none'], /^session-gateway: session\.permissionMode: Expected .*\. See --mode\.\n$/],
    [['--webhook', ''], /^session-gateway: webhook\.url: Expected .*\. See --webhook\.\n$/],
    [['--attempts', '101'], /^session-gateway: attempts: Expected [^.]* 100\.\n$/],
  ] as const)
    t.match(await submit(...flags), { code: 2, stderr: told })
  const create = ['profiles', 'create', 'second']
  t.match(await run([...create, '--provider', '']), { code: 2, stderr: /provider\.id: .*\. See --provider\.\n$/ })
  const given = '{"engine":"provider","provider":{"id":""}}'
  const ofFile = await run([...create, '--from', '-'], given)
  t.match(ofFile, { code: 2, stderr: /provider\.id: / })
  t.notMatch(ofFile.stderr, /See --/, 'what a file says is no flag')
})

t.test('profiles are created, shown, changed and removed', async (t) => {
  const { run } = await world(t)
  t.match(await run(['profiles', 'create', 'second', '--provider', 'demo', '--description', 'One more']), {
    code: 0,
    stdout: /^name +second$/m,
  })
  t.match((await run(['profiles', 'ls'])).stdout, /^second +demo +yes +One more$/m)
  t.match(await run(['profiles', 'edit', 'second', '--clear', 'description']), { code: 0 })
  t.equal(
    JSON.parse((await run(['profiles', 'show', 'second', '--output', 'json'])).stdout).profile.description,
    undefined,
  )
  t.match(await run(['profiles', 'edit', 'second']), { code: 2, stderr: /Nothing is to be changed/ })
  t.match(await run(['profiles', 'edit', DEMO.name, '--description', 'x']), { code: 3, stderr: /declared at startup/ })
  t.match(await run(['profiles', 'create', 'third', '--from', '-'], '{"engine":"provider","provider":{"id":"demo"}}'), {
    code: 0,
  })
  const before = (await run(['profiles', 'show', 'third'])).stdout
  for (const json of ['[]', '"one"', 'null'])
    for (const command of ['create', 'edit'])
      t.match(await run(['profiles', command, 'third', '--from', '-'], json), {
        code: 2,
        stderr: /Standard input has no JSON object/,
      })
  const both = await run(['profiles', 'edit', 'third', '--description', 'x', '--clear', 'engine', 'description'])
  t.match(both, { code: 2, stderr: /description is both given and taken out/ })
  t.equal((await run(['profiles', 'show', 'third'])).stdout, before, 'neither is passed over')
  t.match(await run(['profiles', 'rm', 'second', 'none', 'third']), { code: 1, stderr: /second.*none.*third/s })
})

t.test('a flag changes what it names, and nothing beside it', async (t) => {
  const { run, client } = await world(t)
  const provider = { id: 'demo', model: 'offline', models: ['one', 'two'] }
  const file = { engine: 'provider', provider, defaults: { model: 'one' } }
  const is = async () => {
    const { provider, defaults } = (await client.profiles.get('trial')).profile
    return { provider, defaults }
  }
  t.match(
    await run(['profiles', 'create', 'trial', '--from', '-', '--mode', 'bypassPermissions'], JSON.stringify(file)),
    {
      code: 0,
    },
  )
  t.strictSame(await is(), { provider: file.provider, defaults: { model: 'one', permissionMode: 'bypassPermissions' } })
  t.match(await run(['profiles', 'edit', 'trial', '--mode', 'dontAsk']), { code: 0 })
  t.strictSame((await is()).defaults, { model: 'one', permissionMode: 'dontAsk' })
  t.match(await run(['profiles', 'edit', 'trial', '--model', 'two']), { code: 0 })
  t.strictSame((await is()).defaults, { model: 'two', permissionMode: 'dontAsk' })
  t.match(await run(['profiles', 'edit', 'trial', '--provider', 'demo', '--model', 'other']), { code: 0 })
  t.strictSame(await is(), {
    provider: { ...provider, model: 'other' },
    defaults: { model: 'two', permissionMode: 'dontAsk' },
  })
})

t.test('what is not offered, is elsewhere or cannot be sent is told of with what to do', async (t) => {
  const { url, cwd } = await startDaemon(t)
  const run = (args: string[]) => runPlain([...args, '--url', url], { cwd, env: { SESSION_GATEWAY_TOKEN: TOKEN } })
  for (const words of [
    ['create', 'x', '--provider', 'demo'],
    ['edit', 'x', '--description', 'y'],
    ['rm', 'x'],
  ])
    t.match(await run(['profiles', ...words]), { code: 1, stderr: /keeps no profiles of its callers.*"profileStore"/ })
  t.match(await run(['jobs', 'ls']), { code: 1, stderr: /no queue.*\nIs the base path/ })
  t.match(await runPlain(['sessions', 'ls', '--url', `${url}2`], { cwd }), {
    code: 1,
    stderr: /nothing at this path\.\nIs the base path.* A gateway that is older/,
  })
  for (const token of ['“pasted”', 'two\nlines'])
    for (const words of [['sessions', 'ls'], ['login']])
      t.match(await run([...words, '--token', token]), { code: 2, stderr: /The token has characters .* no header/ })
})

t.test('whoever has several profiles is told of the flag that names one', async (t) => {
  const { url, cwd } = await startDaemon(t, { profiles: [DEMO, { ...DEMO, name: 'other' }], queue: {} })
  const options = { cwd: join(cwd, 'work'), env: { SESSION_GATEWAY_TOKEN: TOKEN, SESSION_GATEWAY_URL: url } }
  for (const words of [['run'], ['jobs', 'submit']])
    t.strictSame(await runPlain([...words, 'Hello.'], options), {
      code: 2,
      stdout: '',
      stderr:
        'session-gateway: Several profiles are declared: name one with --profile. See them: session-gateway profiles ls\n',
    })
})

t.test('login keeps the token for its gateway alone, for its owner alone', async (t) => {
  const { url, cwd } = await startDaemon(t)
  const file = join(cwd, 'config', 'session-gateway', 'client.json')
  const env = { XDG_CONFIG_HOME: join(cwd, 'config') }
  const run = (args: string[], input = '', more = {}) => runPlain(args, { cwd, env: { ...env, ...more } }, input)
  t.match(await run(['login', url, '--token', 'wrong']), {
    code: 3,
    stderr: /Authentication is required.*\nName a token that this gateway takes/,
  })
  t.match(await run(['login', new URL(url).origin], `${TOKEN}\n`), { code: 0, stderr: /^Logged in to .*\/v1\./ })
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.same(JSON.parse(readFileSync(file, 'utf8')), { url, token: TOKEN })
  t.match(await run(['profiles', 'ls']), { code: 0 })
  t.match(await run(['profiles', 'ls', '--url', url]), { code: 0 })
  // another address of the same gateway is another gateway
  t.match(await run(['profiles', 'ls', '--url', url.replace('127.0.0.1', 'localhost')]), { code: 3 })
  t.match(await run(['profiles', 'ls'], '', { SESSION_GATEWAY_TOKEN: 'wrong' }), { code: 3 })
  t.match(await run(['logout']), { code: 0, stderr: /^Removed .*client\.json\.\n$/ })
  t.match(await run(['logout']), { code: 0, stderr: 'There is no login to forget.\n' })
  t.match(await run(['login', url, '--url', 'http://127.0.0.1:1/v1', '--token', TOKEN]), {
    code: 2,
    stderr: /name one of them/,
  })
  t.match(await run(['profiles', 'ls', '--url', url]), { code: 3 })
  mkdirSync(join(cwd, 'config', 'session-gateway'), { recursive: true })
  writeFileSync(file, 'nonsense')
  t.match(await run(['profiles', 'ls']), { code: 2, stderr: /is not what .* login writes.*login <url>.*logout/ })
  t.match(await run(['login', url], TOKEN), { code: 0 }, 'as it says')
  t.match(await run(['profiles', 'ls']), { code: 0 })
})

t.test('of a login without a token none is said to be kept', async (t) => {
  const { url, cwd } = await startDaemon(t, { auth: undefined, allowUnauthenticated: true, storage: 'memory' })
  const file = join(cwd, 'client.json')
  const { code, stderr } = await runPlain(['login', url], { cwd, env: { SESSION_GATEWAY_CONFIG: file } })
  t.equal(code, 0)
  t.match(stderr, / without a token\. The address is in /)
  t.strictSame(JSON.parse(readFileSync(file, 'utf8')), { url })
})
