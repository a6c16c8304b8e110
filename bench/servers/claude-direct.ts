import { claudeSettings } from '../../src/engines/cli/claude/options.js'
import { loadClaudeSdk, type SdkQuery } from '../../src/engines/cli/claude/sdk.js'
import { cliSubject } from '../../src/engines/cli/index.js'
import { answer } from '../lib/child.js'
import type { ClaudeWorld } from '../lib/claude-world.js'

/** The agent driven by its SDK alone: the same settings and environment, the prompt given at once, every message read and dropped. */
const { claudeSdk, cwd, env: given } = JSON.parse(process.argv[2]!) as ClaudeWorld
const { env } = cliSubject({ env: given }, { name: 'claude', engine: 'cli' })
const { query } = await loadClaudeSdk(claudeSdk)
const open = new Map<string, { session: SdkQuery; end(): void; ended: Promise<void> }>()

/** Resolves with the first streamed token. */
function begin({ id, prompt }: { id: string; prompt: string }): Promise<void> {
  let end = () => {}
  const untilEnd = new Promise<void>((done) => {
    end = done
  })
  async function* prompts() {
    yield { type: 'user' as const, message: { role: 'user' as const, content: prompt }, parent_tool_use_id: null }
    await untilEnd
  }
  const { spawnClaudeCodeProcess: _ours, ...options } = {
    ...claudeSettings({ config: { cwd }, trusted: false, command: undefined, resume: undefined }),
    env,
    canUseTool: () => Promise.resolve({ behavior: 'deny' as const, message: 'no' }),
    hooks: { PreToolUse: [] },
    spawnClaudeCodeProcess: undefined,
  }
  const session = query({ prompt: prompts(), options: options as never })
  return new Promise((spoke, failed) => {
    const read = async () => {
      for await (const message of session)
        if (message.type === 'stream_event' && message.event.delta?.type === 'text_delta') spoke()
    }
    open.set(id, { session, end, ended: read().catch(failed) })
  })
}

answer({
  begin,
  async finish(id: string) {
    const { session, end, ended } = open.get(id)!
    open.delete(id)
    end()
    session.close()
    await ended
  },
})
