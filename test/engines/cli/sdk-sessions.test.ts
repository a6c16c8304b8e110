import t from 'tap'
import { cliSubject, listSdkSessions } from '../../../src/engines/cli/index.js'
import { processesOf } from '../../fixtures/processes.js'

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
