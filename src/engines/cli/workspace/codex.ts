import { realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tried } from '../../../lib/tried.js'
import { findExecutable } from '../environment.js'
import { privateFile } from './private-files.js'
import type { AgentPlace } from './trust.js'

/** Read by the adapter: what it starts in place of the agent. */
const PATH_ENV = 'CODEX_PATH'
const BEHIND_ENV = 'SESSION_GATEWAY_CODEX'

/**
 * The adapter tells the agent to trust every directory that a session is opened in. What stands between the two says the opposite in
 * the same place; all else goes through as it is.
 */
export async function distrustInCodex({ env, command = 'codex-acp' }: AgentPlace): Promise<Record<string, string>> {
  const behind = env[PATH_ENV] ? [env[PATH_ENV]] : (bundledWith(findExecutable(command, env)) ?? ['codex'])
  return {
    [PATH_ENV]: await privateFile('codex', `#!${process.execPath}\n(${between.toString()})()\n`, 0o700),
    [BEHIND_ENV]: JSON.stringify(behind),
  }
}

/** The agent that comes with the adapter. */
const bundledWith = (adapter: string | undefined): string[] | undefined =>
  tried(() => [process.execPath, createRequire(realpathSync(adapter!)).resolve('@openai/codex/bin/codex.js')])

/** A program of its own: it sees nothing of this module. */
function between(): void {
  const { spawn } = process.getBuiltinModule('node:child_process')
  const { StringDecoder } = process.getBuiltinModule('node:string_decoder')
  const [command, ...args] = JSON.parse(process.env.SESSION_GATEWAY_CODEX!) as [string, ...string[]]
  delete process.env.SESSION_GATEWAY_CODEX
  const agent = spawn(command, [...args, ...process.argv.slice(2)], { stdio: ['pipe', 'inherit', 'inherit'] })
  agent.on('error', (error) => {
    console.error(error.message)
    process.exit(127)
  })
  agent.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => agent.kill(signal))

  const distrusting = (line: string) => {
    if (!/"method"\s*:\s*"thread\//.test(line)) return line
    const message = JSON.parse(line)
    const { params } = message
    if (typeof params?.cwd !== 'string' && params?.config == null) return line
    const { projects = {}, ...config } = params.config ?? {}
    const named = [...Object.keys(projects), ...(typeof params.cwd === 'string' ? [params.cwd] : [])]
    const distrusted = Object.fromEntries(named.map((path) => [path, { trust_level: 'untrusted' }]))
    return JSON.stringify({ ...message, params: { ...params, config: { ...config, projects: distrusted } } })
  }
  const decoder = new StringDecoder('utf8')
  let begun = ''
  agent.stdin.on('error', () => {})
  process.stdin.on('data', (bytes) => {
    const lines = (begun + decoder.write(bytes)).split('\n')
    begun = lines.pop()!
    for (const line of lines) if (!agent.stdin.write(`${distrusting(line)}\n`)) process.stdin.pause()
  })
  agent.stdin.on('drain', () => process.stdin.resume())
  process.stdin.on('end', () => agent.stdin.end())
}
