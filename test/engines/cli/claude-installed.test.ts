import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { failureOf } from '../../../src/engines/cli/claude/failure.js'
import { assertInstalled } from '../../../src/engines/cli/index.js'

const PROFILE = { name: 'a', engine: 'cli' } as const
const LACKS = /needs the program of its SDK.*npm i --include=optional @anthropic-ai\/claude-agent-sdk/

t.test('an SDK that npm has installed without its program is no agent', async (t) => {
  // outside of the checkout, where one may be installed
  const scope = join(realpathSync(mkdtempSync(join(tmpdir(), 'claude-sdk-'))), 'node_modules/@anthropic-ai')
  mkdirSync(join(scope, 'claude-agent-sdk'), { recursive: true })
  const entry = join(scope, 'claude-agent-sdk/sdk.mjs')
  writeFileSync(entry, 'export const query = () => {}')
  const claudeSdk = pathToFileURL(entry).href
  await t.rejects(assertInstalled({ claudeSdk }, PROFILE), { code: 'SG_ERR_ENGINE_START', message: LACKS })
  const agents = [{ name: 'claude', command: process.execPath }]
  await t.resolves(assertInstalled({ claudeSdk, agents }, PROFILE), 'with a program of its own it is one')
  const platform = join(scope, `claude-agent-sdk-${process.platform}-${process.arch}`)
  mkdirSync(platform)
  writeFileSync(join(platform, process.platform === 'win32' ? 'claude.exe' : 'claude'), '')
  await t.resolves(assertInstalled({ claudeSdk }, PROFILE))
})

t.test('a session that meets it says so in the same words', async (t) => {
  const said = 'Native CLI binary for linux-x64 not found. Reinstall it, or set options.pathToClaudeCodeExecutable.'
  t.match(failureOf(new Error(said)), LACKS)
})

t.test('what only says that the agent has ended is left to what the agent said', async (t) => {
  for (const said of ['process exited with code 3', 'process terminated by signal SIGABRT'])
    t.equal(failureOf(new Error(`Claude Code ${said}`)), '')
  t.equal(failureOf(new Error('Query closed before response received')), '')
  t.equal(failureOf(new Error('Failed to spawn Claude Code process: spawn /a/claude EAGAIN')), '')
})
