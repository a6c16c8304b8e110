import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { cliSubject, deleteSdkSession, listSdkSessions } from '../../../src/engines/cli/index.js'
import { type AgentSetup, beginLaunch, type Launch, SLOT_MS } from '../../../src/engines/cli/launch.js'
import { SpawnSlots } from '../../../src/engines/cli/spawn-slots.js'
import { systemClock } from '../../../src/lib/clock.js'
import { until } from '../../fixtures/build.js'
import { processesOf } from '../../fixtures/processes.js'
import { RAW_ACP } from '../../fixtures/scripted-acp.js'

const AGENT = new URL('../../fixtures/scripted-acp-agent.mjs', import.meta.url).pathname

const SDK = new URL('../../fixtures/scripted-claude-sdk.mjs', import.meta.url).href

t.test('each profile’s own directory is read, newest first, without a change to this process', async (t) => {
  const before = { ...process.env }
  const subject = (name: string, age: number) =>
    cliSubject(
      { env: { HOME: '/home/x' } },
      { name, engine: 'cli' },
      { AGENT_CONFIG_DIR: `/${name}`, AGE: String(age) },
    )
  const sources = [subject('old', 1), subject('new', 9), cliSubject({}, { name: 'c', engine: 'cli', agent: 'codex' })]
  const found = await listSdkSessions(sources, { dir: '/work', limit: 10, offset: 0 }, SDK)
  t.match(found, [
    { sessionId: 'in /new', lastModified: 9, profile: 'new', agent: 'claude' },
    { sessionId: 'in /old', lastModified: 1, profile: 'old' },
  ])
  t.equal(found.length, 2)
  t.match(found[0]?.summary, '"dir":"/work"')
  t.match(await listSdkSessions(sources, { limit: 1, offset: 1 }, SDK), [{ sessionId: 'in /old' }])
  t.strictSame({ ...process.env }, before)
})

t.test('an agent that lists its sessions only while it runs is asked where one profile is', async (t) => {
  const env = { PATH: process.env.PATH, ACP_LISTS: JSON.stringify(['one', 'two', 'three']) }
  const codex = { name: 'codex', command: process.execPath, args: [AGENT] }
  const subject = (name: string) => cliSubject({ agents: [codex] }, { name, engine: 'cli', agent: 'codex' }, env)
  const list = (names: string[]) => listSdkSessions(names.map(subject), { dir: '/work', limit: 2, offset: 1 }, SDK)
  t.match(await list(['c']), [{ sessionId: 'two', cwd: '/work', profile: 'c', agent: 'codex' }, { sessionId: 'three' }])
  t.strictSame(await list(['c', 'd']), [], 'nothing is started for a look at all')
  t.strictSame(processesOf(), [])
})

t.test(
  'an agent that does not answer is not waited for by whoever asks where others keep their sessions',
  async (t) => {
    const env = { PATH: process.env.PATH, ACP_LISTS: '["one"]' }
    const late = new AbortController()
    const timeout = t.intercept(AbortSignal, 'timeout', { value: () => late.signal })
    const ask = (args: string[], HOME: string) => {
      const codex = { name: 'codex', command: process.execPath, args }
      const subject = cliSubject({ agents: [codex] }, { name: 'c', engine: 'cli', agent: 'codex' }, { ...env, HOME })
      return listSdkSessions([subject], { limit: 1, offset: 0 }, SDK)
    }
    const hangs = ['-e', 'process.stdin.resume()']
    const refused = { code: 'SG_ERR_ENGINE_START', message: 'The agent codex did not answer in time.' }
    const hanging = t.rejects(ask(hangs, '/hangs'), refused)
    await until(() => processesOf().length === 1)
    const next = t.rejects(ask([AGENT], '/hangs'), refused)
    timeout.restore()
    t.match(await ask([AGENT], '/works'), [{ sessionId: 'one' }])
    late.abort()
    await hanging
    await next
    t.strictSame(processesOf(), [])
  },
)

t.test('a codex is asked once the first start of a session in its config directory is over', async (t) => {
  const codex = { name: 'codex', command: process.execPath, args: [AGENT] }
  const subject = (HOME: string) => {
    const env = { PATH: process.env.PATH, ACP_LISTS: '["one"]', HOME }
    return cliSubject({ agents: [codex] }, { name: 'c', engine: 'cli', agent: 'codex' }, env)
  }
  const ask = (home: string) => listSdkSessions([subject(home)], { limit: 1, offset: 0 }, SDK)
  const { row, env } = subject('/session')
  const setup: AgentSetup = {
    ...{ sessionId: 's', row, env, config: { cwd: t.testdir() }, trusted: false },
    ...{ slots: new SpawnSlots(), roots: undefined, clock: systemClock },
  }
  const session = await beginLaunch(setup, new AbortController().signal)
  let found: unknown
  const asked = ask('/session').then((sessions) => {
    found = sessions
  })
  t.match(await ask('/elsewhere'), [{ sessionId: 'one' }])
  t.notOk(found, 'one that makes its databases beside another fails')
  t.strictSame(processesOf(), [])
  await session.end()
  await asked
  t.match(found, [{ sessionId: 'one' }])
})

t.test(
  'a codex that is asked and does not answer keeps sessions from their start no longer than another start',
  async (t) => {
    const env = { PATH: process.env.PATH, HOME: '/asked' }
    const codex = { name: 'codex', command: process.execPath, args: ['-e', 'process.stdin.resume()'] }
    const subject = cliSubject({ agents: [codex] }, { name: 'c', engine: 'cli', agent: 'codex' }, env)
    const late = new AbortController()
    const timeout = t.intercept(AbortSignal, 'timeout', { value: () => late.signal })
    let letOthers = () => {}
    const start = setTimeout
    const timers = t.intercept(globalThis, 'setTimeout', {
      value: (run: () => void, ms: number) => {
        if (ms !== SLOT_MS) return start(run, ms)
        letOthers = run
        return { unref() {} }
      },
    })
    const hanging = listSdkSessions([subject], { limit: 1, offset: 0 }, SDK)
    const refused = t.rejects(hanging, { code: 'SG_ERR_ENGINE_START' })
    await until(() => processesOf().length === 1)
    timeout.restore()
    timers.restore()
    let session: Launch | undefined
    const setup: AgentSetup = {
      ...{ sessionId: 's', row: subject.row, env: subject.env, config: { cwd: t.testdir() }, trusted: false },
      ...{ slots: new SpawnSlots(), roots: undefined, clock: systemClock },
    }
    const begun = beginLaunch(setup, new AbortController().signal).then((launch) => {
      session = launch
    })
    const elsewhere = async (HOME: string) => (await beginLaunch({ ...setup, env: { HOME } }, late.signal)).end()
    await elsewhere('/not-asked')
    t.notOk(session)
    letOthers()
    await begun
    t.ok(session)
    late.abort()
    await refused
    await session?.end()
  },
)

t.test('an agent that cannot be spoken with is not said to have no sessions', async (t) => {
  const answer = { jsonrpc: '2.0', id: 0, result: { protocolVersion: 2, agentCapabilities: {} } }
  const program = `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) =>
    console.log(JSON.stringify({ ...${JSON.stringify(answer)}, id: JSON.parse(line).id })))`
  const later = { name: 'later', command: process.execPath, args: ['-e', program] }
  const env = { PATH: process.env.PATH }
  const subject = cliSubject({ agents: [later] }, { name: 'l', engine: 'cli', agent: 'later' }, env)
  await t.rejects(listSdkSessions([subject], { limit: 1, offset: 0 }, SDK), {
    code: 'SG_ERR_ENGINE_START',
    message: /speaks version 2 of the Agent Client Protocol/,
  })
})

t.test('an agent whose list has no end is not asked for ever', async (t) => {
  const answers = {
    initialize: {
      result: { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { list: {}, delete: {} } } },
    },
    'session/list': { result: { sessions: [], nextCursor: 'more' } },
  }
  const endless = { name: 'endless', command: process.execPath, args: [RAW_ACP] }
  const env = { PATH: process.env.PATH, ACP_ANSWERS: JSON.stringify(answers) }
  const subject = cliSubject({ agents: [endless] }, { name: 'e', engine: 'cli', agent: 'endless' }, env)
  const refused = { code: 'SG_ERR_ENGINE_START', message: /lists its sessions in more than 1000 pages/ }
  await t.rejects(listSdkSessions([subject], { limit: 1, offset: 0 }, SDK), refused)
  const deletion = { sessionId: 'x', assertUnused: () => Promise.resolve() }
  await t.rejects(deleteSdkSession(subject, deletion, SDK), refused)
})

t.test('of an agent that ends when it is asked it is told how it ended, and what it said', async (t) => {
  const mine = {
    name: 'mine',
    command: process.execPath,
    args: ['-e', 'console.error("no disk"); process.exitCode = 3'],
  }
  const subject = cliSubject(
    { agents: [mine] },
    { name: 'm', engine: 'cli', agent: 'mine' },
    { PATH: process.env.PATH },
  )
  await t.rejects(listSdkSessions([subject], { limit: 1, offset: 0 }, SDK), {
    code: 'SG_ERR_ENGINE_START',
    message: 'The agent mine could not be asked for its sessions: The agent exited with code 3. It said: no disk',
  })
})

t.test('a declared agent is asked, too, and one that lists none has none', async (t) => {
  const mine = { name: 'mine', command: process.execPath, args: [AGENT] }
  const subject = (env: object) =>
    cliSubject({ agents: [mine] }, { name: 'm', engine: 'cli', agent: 'mine' }, { PATH: process.env.PATH, ...env })
  const page = { dir: '/work', limit: 2, offset: 0 }
  t.match(await listSdkSessions([subject({ ACP_LISTS: '["one"]' })], page, SDK), [{ sessionId: 'one', agent: 'mine' }])
  t.strictSame(await listSdkSessions([subject({})], page, SDK), [])
})

t.test(
  'an agent that is asked runs nothing of the directory that it is asked about, nor of one where others write',
  async (t) => {
    const home = realpathSync(t.testdir({ repository: {} }))
    const command = join(home, 'opencode')
    const notes = join(home, 'notes')
    writeFileSync(command, `#!/bin/sh\nenv > ${notes}\nexec '${process.execPath}' '${AGENT}'\n`)
    chmodSync(command, 0o700)
    const ask = (trustWorkspace: boolean) =>
      listSdkSessions(
        [
          cliSubject(
            { agents: [{ name: 'opencode', command }] },
            { name: 'o', engine: 'cli', agent: 'opencode', trustWorkspace },
            { PATH: process.env.PATH, HOME: home, ACP_LISTS: '["one"]' },
          ),
        ],
        { dir: join(home, 'repository'), limit: 1, offset: 0 },
        SDK,
      )
    const told = () =>
      Object.fromEntries(
        readFileSync(notes, 'utf8')
          .split('\n')
          .map((line) => line.split(/=(.*)/s)),
      )
    t.match(await ask(false), [{ sessionId: 'one' }])
    const { OPENCODE_DISABLE_PROJECT_CONFIG, OPENCODE_PURE, OPENCODE_CONFIG_CONTENT, PWD } = told()
    t.match(
      { OPENCODE_DISABLE_PROJECT_CONFIG, OPENCODE_PURE },
      { OPENCODE_DISABLE_PROJECT_CONFIG: '1', OPENCODE_PURE: '1' },
    )
    t.match(JSON.parse(OPENCODE_CONFIG_CONTENT), { lsp: false, formatter: false })
    t.equal(statSync(PWD).mode & 0o777, 0o700)
    t.notOk(readdirSync(PWD).some((name) => /^(\.|opencode)/.test(name)))

    mkdirSync(join(home, 'repository/.opencode/plugin'), { recursive: true })
    writeFileSync(join(home, 'repository/.opencode/plugin/mine.js'), '')
    await t.rejects(ask(false), { code: 'SG_ERR_ENGINE_START', message: /would run the plugins/ })
    t.match(await ask(true), [{ sessionId: 'one' }])
    t.notOk('OPENCODE_PURE' in told())
  },
)

/** A profile of an agent that keeps these sessions, all of `/work`, and what it deleted of them. */
function keeper(t: Test, ids: string[] | undefined, deletes?: string) {
  const file = join(t.testdir({}), 'deleted')
  const env = {
    PATH: process.env.PATH,
    ...(ids && { ACP_LISTS: JSON.stringify(ids) }),
    ACP_DELETES: deletes ?? file,
  }
  const codex = { name: 'codex', command: process.execPath, args: [AGENT] }
  const subject = cliSubject({ agents: [codex] }, { name: 'c', engine: 'cli', agent: 'codex' }, env)
  const remove = (sessionId: string, dir?: string, assertUnused = async () => {}) =>
    deleteSdkSession(subject, { sessionId, dir, assertUnused }, SDK)
  return { remove, deleted: () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []) }
}

t.test('an agent that deletes sessions deletes the one that was meant, and no other', async (t) => {
  const { remove, deleted } = keeper(t, ['one', 'two', 'three'])
  await remove('two', '/work')
  t.strictSame(deleted(), ['two'])
  await remove('three')
  t.strictSame(deleted(), ['two', 'three'])
  await t.rejects(remove('four'), { code: 'SG_ERR_SDK_SESSION_NOT_FOUND' })
  const used = () => {
    throw new Error('in use')
  }
  await t.rejects(remove('one', undefined, used), /in use/)
  t.strictSame(deleted(), ['two', 'three'])
  t.strictSame(processesOf(), [], 'what was started for it has gone')
})

t.test('a session of another directory than the one that was named is not there', async (t) => {
  const codex = { name: 'codex', command: process.execPath, args: [AGENT] }
  const file = join(t.testdir({}), 'deleted')
  const env = { PATH: process.env.PATH, ACP_LISTS: '["one"]', ACP_LISTS_IN: '/elsewhere', ACP_DELETES: file }
  const subject = cliSubject({ agents: [codex] }, { name: 'c', engine: 'cli', agent: 'codex' }, env)
  const remove = (dir: string) =>
    deleteSdkSession(subject, { sessionId: 'one', dir, assertUnused: async () => {} }, SDK)
  await t.rejects(remove('/work'), { code: 'SG_ERR_SDK_SESSION_NOT_FOUND' })
  t.notOk(existsSync(file))
  await remove('/elsewhere')
  t.ok(existsSync(file))
})

t.test('an agent that deletes none, or refuses, says so', async (t) => {
  await t.rejects(keeper(t, undefined).remove('one'), {
    code: 'SG_ERR_UNSUPPORTED',
    message: /codex deletes no sessions/,
  })
  await t.rejects(keeper(t, ['one'], '').remove('one'), { code: 'SG_ERR_UNSUPPORTED' })
  await t.rejects(keeper(t, ['one'], 'refused').remove('one'), { code: 'SG_ERR_ENGINE_REFUSED', message: /not now/ })
})

t.test('of claude it is a file that goes', async (t) => {
  const file = join(t.testdir({}), 'deleted')
  const subject = (env: object) =>
    cliSubject({ env: { HOME: '/home/x' } }, { name: 'a', engine: 'cli' }, { AGENT_CONFIG_DIR: '/d', ...env })
  const remove = (sessionId: string, env: object, dir?: string) =>
    deleteSdkSession(subject(env), { sessionId, dir, assertUnused: async () => {} }, SDK)
  const there = { CLAUDE_DELETED: file, CLAUDE_WORKED_IN: '/work' }
  await t.rejects(remove('in /other', there), { code: 'SG_ERR_SDK_SESSION_NOT_FOUND' })
  await t.rejects(remove('in /d', there, '/elsewhere'), { code: 'SG_ERR_SDK_SESSION_NOT_FOUND' })
  await t.rejects(remove('in /d', {}), { code: 'SG_ERR_ENGINE_REFUSED', message: /the disk refuses/ })
  t.notOk(existsSync(file))
  await remove('in /d', there, '/work')
  t.equal(readFileSync(file, 'utf8'), 'in /d\n')
})

t.test('a directory that two profiles share is listed once', async (t) => {
  const subject = (name: string) =>
    cliSubject({ env: { HOME: '/home/x' } }, { name, engine: 'cli' }, { AGENT_CONFIG_DIR: '/d' })
  t.equal((await listSdkSessions([subject('a'), subject('b')], { limit: 10, offset: 0 }, SDK)).length, 1)
})

t.test('without the SDK it says how to get it', async (t) => {
  const source = cliSubject({}, { name: 'a', engine: 'cli' })
  await t.rejects(listSdkSessions([source], { limit: 1, offset: 0 }, '@no-such/agent-sdk'), {
    code: 'SG_ERR_ENGINE_START',
    message: /npm i @anthropic-ai\/claude-agent-sdk/,
  })
})
