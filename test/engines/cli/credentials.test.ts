import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { apiKeySourceOf, type CredentialCheck, type CredentialVerdict } from '../../../src/engines/cli/credentials.js'
import { type AgentDeclaration, agentTable, checkCredentials, cliSubject } from '../../../src/engines/cli/index.js'
import { until } from '../../fixtures/build.js'

const noSdk = 'file:///no/such/sdk.mjs'

/** A home in which the profiles `in`, `out`, `odd` and `slow` have directories, and an agent whose command tells which it was asked about. */
function build(t: Test) {
  const home = t.testdir({ in: {}, out: {}, odd: {}, slow: {} })
  const command = join(home, 'agent')
  writeFileSync(
    command,
    `#!/bin/sh
echo "$@" >> ${home}/asked
pwd >> ${home}/asked-in
case "$CLAUDE_CONFIG_DIR" in */in) exit 0;; */out) exit 1;; */slow) sleep 600;; *) exit 2;; esac
`,
  )
  chmodSync(command, 0o755)
  const agents: AgentDeclaration[] = [{ name: 'claude', command }]
  const subject = (name: string) =>
    cliSubject(
      { agents, env: { PATH: process.env.PATH, HOME: home } },
      { name, engine: 'cli' },
      { AGENT_CONFIG_DIR: join(home, name) },
    )
  return { home, subject }
}

/** Checks and tells what came of it. */
async function check(
  options: Pick<CredentialCheck, 'subjects'> & Partial<Pick<CredentialCheck, 'probe' | 'timeoutMs' | 'signal'>>,
) {
  const verdicts: Record<string, CredentialVerdict> = {}
  const warned: unknown[] = []
  const logger = { info() {}, error() {}, warn: (fields: object) => void warned.push(fields) }
  await checkCredentials({
    ...{ logger, claudeSdk: noSdk, timeoutMs: 10_000, signal: new AbortController().signal, ...options },
    onVerdict: ({ name }, verdict) => {
      verdicts[name] = verdict
    },
  })
  return { verdicts, warned }
}

t.test('one warning per profile that is logged out; what cannot tell is silent', async (t) => {
  const { subject } = build(t)
  const { verdicts, warned } = await check({
    subjects: ['in', 'out', 'odd', 'gone'].map(subject),
    timeoutMs: 600_000,
  })
  t.strictSame(verdicts, { in: 'logged_in', out: 'logged_out', odd: 'unknown', gone: 'unknown' })
  t.match(warned, [{ profile: 'out', agent: 'claude' }])
  t.equal(warned.length, 1)
})

t.test('an agent is asked where nobody else writes what it could take for a project’s', async (t) => {
  const { home, subject } = build(t)
  await check({ subjects: [subject('in')], timeoutMs: 600_000 })
  const [place] = readFileSync(join(home, 'asked-in'), 'utf8').split('\n')
  t.equal(statSync(place!).mode & 0o777, 0o700)
})

t.test('an agent that does not answer is not waited for', async (t) => {
  const { subject } = build(t)
  const { verdicts, warned } = await check({ subjects: [subject('slow')], timeoutMs: 50 })
  t.strictSame(verdicts, { slow: 'unknown' })
  t.strictSame(warned, [])
})

t.test('an agent may take as long as any number says', async (t) => {
  const { subject } = build(t)
  for (const timeoutMs of [2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER])
    t.strictSame((await check({ subjects: [subject('in')], timeoutMs })).verdicts, { in: 'logged_in' }, `${timeoutMs}`)
})

t.test('an agent is not asked any more when nobody waits for its answer', async (t) => {
  const { subject, home } = build(t)
  const late = new AbortController()
  const timeout = t.intercept(AbortSignal, 'timeout', { value: () => late.signal })
  const out = subject('out')
  const get = (env: Record<string, string>, name: string) => {
    // its command is looked for
    if (name === 'PATH') late.abort()
    return env[name]
  }
  await check({ subjects: [{ ...out, env: new Proxy(out.env, { get }) }] })
  timeout.restore()
  // what comes to its command after the other one is asked after it
  await check({ subjects: [subject('in')], timeoutMs: 600_000 })
  t.equal(readFileSync(join(home, 'asked'), 'utf8'), 'auth status\n')
})

t.test('so many agents are asked at once as may start at once, and none once nobody wants to know', async (t) => {
  const { subject, home } = build(t)
  const most = Math.max(2, availableParallelism())
  writeFileSync(
    join(home, 'agent'),
    `#!/bin/sh
echo begun >> ${home}/log
while [ ! -e ${home}/go ]; do sleep 0.01; done
echo over >> ${home}/log
`,
  )
  const log = () => (existsSync(join(home, 'log')) ? readFileSync(join(home, 'log'), 'utf8').trim().split('\n') : [])
  const subjects = Array.from({ length: most + 12 }, () => subject('in'))
  const warnings: Error[] = []
  const onWarning = (warning: Error) => void warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const all = check({ subjects, timeoutMs: 600_000 })
  await until(() => log().length >= most, 'the first ones')
  writeFileSync(join(home, 'go'), '')
  t.strictSame((await all).verdicts, { in: 'logged_in' })
  let [atWork, peak] = [0, 0]
  for (const said of log()) {
    atWork += said === 'begun' ? 1 : -1
    peak = Math.max(peak, atWork)
  }
  t.equal(peak, most)
  t.equal(log().length, 2 * subjects.length)

  rmSync(join(home, 'go'))
  const closing = new AbortController()
  const left = check({ subjects, timeoutMs: 600_000, signal: closing.signal })
  await until(() => log().length >= 2 * subjects.length + most, 'the first ones')
  closing.abort()
  t.strictSame((await left).verdicts, {}, 'nothing is said of any')
  t.strictSame(warnings, [], 'the host is not warned of those that wait')
})

t.test('a logger that throws ends no process, and keeps no other agent from being asked', async (t) => {
  const { subject } = build(t)
  const warn = () => {
    throw new Error('the log is full')
  }
  const signal = new AbortController().signal
  const one = { logger: { info() {}, error() {}, warn }, claudeSdk: noSdk, timeoutMs: 600_000, signal }
  const most = Math.max(2, availableParallelism())
  for (let asked = 0; asked < most; asked++)
    // nobody waits for it, and its rejection would end the process
    await checkCredentials({ ...one, subjects: [subject('out')] })
  t.strictSame((await check({ subjects: [subject('in')] })).verdicts, { in: 'logged_in' })
})

t.test('the operator’s own probe is asked instead, with the environment of the sessions', async (t) => {
  const { subject, home } = build(t)
  const { verdicts } = await check({
    subjects: ['in', 'out', 'odd', 'gone'].map(subject),
    probe: ({ name }, env) => {
      t.equal(env.CLAUDE_CONFIG_DIR, join(home, name))
      if (name === 'odd') throw new Error('cannot')
      return name === 'out'
    },
  })
  t.strictSame(verdicts, { in: 'logged_out', out: 'logged_in', odd: 'unknown', gone: 'unknown' })

  for (const answer of ['logged_out', { loggedIn: false }, null, 0, 1]) {
    const told = await check({ subjects: [subject('in')], probe: () => answer as never })
    t.strictSame([told.verdicts, told.warned], [{ in: 'unknown' }, []], `${JSON.stringify(answer)} is no verdict`)
  }
})

t.test(
  'codex with a key in its environment is logged in, whatever its command says of the login on disk',
  async (t) => {
    const home = t.testdir({ '.codex': {} })
    const command = join(home, 'codex')
    writeFileSync(command, '#!/bin/sh\nexit 1\n')
    chmodSync(command, 0o755)
    const subject = (key: object) =>
      cliSubject(
        { env: { HOME: home, PATH: `${home}:/bin`, ...key } },
        { name: 'codex', engine: 'cli', agent: 'codex' },
      )
    t.strictSame((await check({ subjects: [subject({})] })).verdicts, { codex: 'logged_out' })
    t.strictSame((await check({ subjects: [subject({ OPENAI_API_KEY: 'k' })] })).verdicts, { codex: 'logged_in' })
  },
)

t.test('an agent that is not installed is silent', async (t) => {
  const home = t.testdir({ '.codex': {} })
  const subject = cliSubject(
    { env: { HOME: home, PATH: '/nowhere' } },
    { name: 'codex', engine: 'cli', agent: 'codex' },
  )
  const { verdicts, warned } = await check({ subjects: [subject] })
  t.strictSame([verdicts, warned], [{ codex: 'unknown' }, []])
})

t.test('where the credential of an agent comes from that does not say', async (t) => {
  const home = t.testdir({})
  const codex = agentTable().get('codex')!
  const login = (content: object) => {
    mkdirSync(join(home, '.codex'), { recursive: true })
    writeFileSync(join(home, '.codex/auth.json'), JSON.stringify(content))
  }
  const source = (env: Record<string, string> = {}) => apiKeySourceOf(codex, { HOME: home, ...env })
  t.equal(await source(), 'none')
  login({ OPENAI_API_KEY: 'k' })
  t.equal(await source(), 'login')
  login({ tokens: { refresh_token: 'r' } })
  t.equal(await source(), 'oauth')
  t.equal(await source({ OPENAI_API_KEY: 'k' }), 'OPENAI_API_KEY')
})
