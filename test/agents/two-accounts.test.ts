import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { register } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { SdkSession } from '../../schemas/sdk-sessions.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { cliEngine } from '../../src/engines/cli/index.js'
import { createWorkerServer } from '../../src/server.js'
import { attach } from '../fixtures/client.js'
import { processesOf, whenGone } from '../fixtures/processes.js'
import { AGENTS, CLAUDE_SDK } from './installed.js'
import { startVendors } from './vendors.js'

const { claude } = AGENTS

/** The built-in lister takes the SDK from beside the gateway, where a user installs it; here it lies apart from the dependencies. */
const SDK_BESIDE_THE_GATEWAY = `export const resolve = (specifier, context, next) =>
  specifier === '@anthropic-ai/claude-agent-sdk' ? { url: ${JSON.stringify(CLAUDE_SDK)}, shortCircuit: true } : next(specifier, context)`

const ACCOUNTS = [
  { name: 'work', key: 'key-of-work', prompt: 'said to the account for work' },
  { name: 'home', key: 'key-of-home', prompt: 'said to the account at home' },
]

/** A gateway with a profile per account; all that the accounts do not share lies in their directories, the credential too. */
async function build(t: Test) {
  const vendors = await startVendors(t)
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'two-accounts-')))
  // one for both, so that nothing but the profile can keep their sessions apart
  const cwd = join(home, 'project')
  mkdirSync(cwd)
  const profiles = ACCOUNTS.map(({ name, key }) => {
    const configDir = join(home, 'accounts', name)
    mkdirSync(configDir, { recursive: true })
    writeFileSync(join(configDir, 'settings.json'), JSON.stringify({ env: { ANTHROPIC_API_KEY: key } }))
    return { name, configDir }
  })
  const { CLAUDE_CONFIG_DIR: _dir, ANTHROPIC_API_KEY: _key, ...shared } = claude.env(home, vendors.url)
  const env = { PATH: process.env.PATH!, HOME: home, ...shared }
  const engine = cliEngine({ agents: [claude.declaration], claudeSdk: CLAUDE_SDK, env, maxConcurrentStarts: 1 })
  const worker = createWorkerServer(
    { allowUnauthenticated: true, profiles, agents: [claude.declaration] },
    { createCliRunner: engine, env },
  )
  t.teardown(() => worker.close())
  const { url } = await worker.listen(0)
  const api = `${url}/v1`
  const call = async <T>(path: string, body?: object): Promise<T> => {
    const how = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(`${api}${path}`, body && how)
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
  return { vendors, home, cwd, profiles, api, call }
}

/** Every file below a directory, by its path; the agent may remove a directory while this looks into it. */
function filesBelow(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
      const path = join(directory, entry.name)
      if (entry.isDirectory()) return filesBelow(path)
      return entry.isFile() ? [path] : []
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** The agent is alive, and replaces and removes files of its own meanwhile. */
const read = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '')

t.test('two accounts of claude as two profiles', { skip: claude.missing ?? false }, async (t) => {
  register(`data:text/javascript,${encodeURIComponent(SDK_BESIDE_THE_GATEWAY)}`)
  const { vendors, home, cwd, profiles, api, call } = await build(t)

  // both live at once, so that an environment shared by mistake would show
  const sessions: SessionInfo[] = []
  for (const { name: profile, prompt } of ACCOUNTS) {
    const { id } = await call<SessionInfo>('/sessions', { cwd, profile, prompt })
    const client = await attach(t, api, id)
    await client.untilEvent('turn_completed')
    const end = client.events.find((event) => event.type === 'turn_completed')
    t.match(end, { subtype: 'success', isError: false, result: /pong/ }, profile)
    sessions.push(await call<SessionInfo>(`/sessions/${id}`))
  }
  const sdkIds = sessions.map(({ sdkSessionId }) => sdkSessionId!)
  t.equal(new Set(sdkIds).size, 2)
  t.same(
    sessions.map(({ profile }) => profile),
    ['work', 'home'],
  )

  t.test('the vendor saw the key of each with what was said to it', async (t) => {
    for (const { key, prompt } of ACCOUNTS) {
      const keys = vendors.asked.filter(({ text }) => text.includes(prompt)).map((call) => call.key)
      t.ok(keys.length > 0)
      t.same([...new Set(keys)], [key])
    }
    const known = ACCOUNTS.map(({ key }) => key)
    t.same(
      vendors.asked.filter(({ key }) => !known.includes(key!)),
      [],
      'nor did a call come with any other key',
    )
  })

  t.test('each keeps its transcripts below its own directory, and nothing of the other', async (t) => {
    for (const [index, { configDir, name }] of profiles.entries()) {
      const files = filesBelow(configDir)
      const transcripts = files.filter(
        (path) => path.startsWith(join(configDir, 'projects')) && path.endsWith('.jsonl'),
      )
      t.equal(transcripts.length, 1, name)
      t.ok(transcripts[0]!.endsWith(`${sdkIds[index]}.jsonl`))
      t.match(read(transcripts[0]!), ACCOUNTS[index]!.prompt)
      const foreign = [sdkIds[1 - index]!, ACCOUNTS[1 - index]!.prompt, ACCOUNTS[1 - index]!.key]
      const leaks = files.filter((path) => foreign.some((text) => path.includes(text) || read(path).includes(text)))
      t.same(leaks, [], `${name} holds nothing of the other`)
    }
    const elsewhere = filesBelow(home).filter(
      (path) => path.endsWith('.jsonl') && !path.startsWith(join(home, 'accounts')),
    )
    t.same(elsewhere, [], 'the home directory of the operator has no transcript')
  })

  t.test('GET /sdk-sessions lists each for its profile only', async (t) => {
    const listed = async (query: string) =>
      (await call<SdkSession[]>(`/sdk-sessions${query}`)).map(({ sessionId, profile }) => ({ sessionId, profile }))
    const expected = profiles.map(({ name }, index) => ({ sessionId: sdkIds[index], profile: name }))
    for (const [index, { name }] of profiles.entries()) {
      t.strictSame(await listed(`?profile=${name}`), [expected[index]])
      t.strictSame(await listed(`?profile=${name}&dir=${encodeURIComponent(cwd)}`), [expected[index]])
    }
    t.strictSame(await listed(''), [...expected].reverse(), 'and without a profile both, newest first')
  })

  t.test('a session goes on under its own account, and not under the other', async (t) => {
    const [work, other] = profiles
    const first = sessions[0]!
    const pids = processesOf(first.id)
    t.ok(pids.length > 0)
    t.equal((await fetch(`${api}/sessions/${first.id}`, { method: 'DELETE' })).status, 200)
    for (const pid of pids) await whenGone(pid)

    const before = vendors.asked.length
    const resumed = { cwd, resume: first.sdkSessionId, prompt: 'and once more' }
    const { id } = await call<SessionInfo>('/sessions', { ...resumed, profile: work!.name })
    const client = await attach(t, api, id)
    await client.until(({ events }) => events.some((event) => event.type === 'turn_completed'))
    t.same([...new Set(vendors.asked.slice(before).map(({ key }) => key))], [ACCOUNTS[0]!.key])
    t.match(vendors.asked.at(-1)?.text, ACCOUNTS[0]!.prompt, 'with its history')

    const since = vendors.asked.length
    const refused = await call<SessionInfo>('/sessions', { ...resumed, profile: other!.name })
    const stranger = await attach(t, api, refused.id)
    await stranger.until(({ events }) =>
      events.some(({ type }) => type === 'session_error' || type === 'turn_completed'),
    )
    const [error] = stranger.events.filter(({ type }) => type === 'session_error')
    t.match(error, { code: 'SG_ERR_ENGINE_START', message: /No conversation found/ })
    t.equal(vendors.asked.length, since, 'nothing of one account was said with the key of the other')
  })
})
