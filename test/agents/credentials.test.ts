import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { checkCredentials, cliSubject } from '../../src/engines/cli/index.js'
import { processesOf } from '../fixtures/processes.js'
import { AGENTS, type AgentUnderTest, BINARIES, CLAUDE_SDK } from './installed.js'

/** Asks the real agent; nothing but loopback is in its environment, and nobody listens there. */
async function check(agent: AgentUnderTest, withKey: boolean) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), `${agent.name}-`)))
  for (const [path, text] of Object.entries(agent.files('http://127.0.0.1:9'))) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  const given = Object.entries(agent.env(home, 'http://127.0.0.1:9'))
  const env = {
    ...{ PATH: `${BINARIES}:${process.env.PATH}`, HOME: home },
    ...Object.fromEntries(given.filter(([name]) => withKey || !name.endsWith('_API_KEY'))),
  }
  const verdicts: string[] = []
  const warnings: object[] = []
  await checkCredentials({
    subjects: [cliSubject({ agents: [agent.declaration], env }, { name: 'p', engine: 'cli', agent: agent.name })],
    logger: { info() {}, error() {}, warn: (fields: object) => void warnings.push(fields) },
    claudeSdk: CLAUDE_SDK,
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    onVerdict: (_profile, verdict) => void verdicts.push(verdict),
  })
  return { verdicts, warnings }
}

for (const agent of [AGENTS.claude, AGENTS.codex])
  t.test(`the login of ${agent.name}`, { skip: agent.missing ?? false }, async (t) => {
    const { verdicts, warnings } = await check(agent, false)
    t.strictSame(verdicts, ['logged_out'])
    t.match(warnings, [{ profile: 'p', agent: agent.name }])
    t.equal(warnings.length, 1)
    t.strictSame(await check(agent, true), { verdicts: ['logged_in'], warnings: [] })
    t.strictSame(processesOf(), [])
  })
