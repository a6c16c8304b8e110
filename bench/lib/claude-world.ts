import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startVendors } from '../../test/agents/vendors.js'

/** Where `node test/agents/install.mjs claude` puts it, seen from `dist-bench/bench/lib`. */
const SDK = new URL('../../../.agents/claude/node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs', import.meta.url)

export const isClaudeInstalled = (): boolean => existsSync(fileURLToPath(SDK))

/** What a server process needs to drive the real agent. */
export interface ClaudeWorld {
  claudeSdk: string
  cwd: string
  /** The environment that agents get their share of; nothing of this machine's is in it. */
  env: Record<string, string>
}

/** A home for the agent, and its model on loopback. */
export async function openClaudeWorld(): Promise<{ world: ClaudeWorld; close(): void }> {
  const closing: (() => unknown)[] = []
  const { url } = await startVendors({ teardown: (close: () => unknown) => void closing.push(close) })
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'bench-claude-')))
  const cwd = join(home, 'work')
  mkdirSync(cwd)
  const env = {
    ...{ PATH: process.env.PATH!, HOME: home, CLAUDE_CONFIG_DIR: join(home, 'claude') },
    ...{ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'dummy', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    ...{ DISABLE_TELEMETRY: '1', DISABLE_ERROR_REPORTING: '1' },
  }
  mkdirSync(env.CLAUDE_CONFIG_DIR)
  return {
    world: { claudeSdk: SDK.href, cwd, env },
    close: () => {
      for (const close of closing) close()
      rmSync(home, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
