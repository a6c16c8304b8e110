import { join, resolve, sep } from 'node:path'
import { ASK_USER_QUESTION, type PermissionMode } from '../../../../schemas/permissions.js'
import { readPlainFile } from '../../../lib/plain-file.js'
import type { SdkHookInput } from './sdk.js'

const EDITS = new Set(['Write', 'Edit', 'MultiEdit', 'NotebookEdit'])
/** Programs that the agent may take for harmless, with some of their arguments. */
const MAYBE_FREE = new Set([
  // look at files
  ...['ls', 'cat', 'head', 'tail', 'nl', 'tac', 'less', 'more', 'zcat', 'wc', 'stat', 'du', 'df', 'file', 'tree'],
  ...['find', 'fd', 'grep', 'rg', 'diff', 'cmp', 'comm', 'strings', 'hexdump', 'od', 'xxd', 'base64', 'cksum'],
  ...['md5sum', 'sha1sum', 'sha256sum', 'basename', 'dirname', 'realpath', 'readlink'],
  // make text of text
  ...['sort', 'uniq', 'cut', 'tr', 'sed', 'awk', 'jq', 'paste', 'column', 'rev', 'fold', 'echo', 'printf', 'seq'],
  // tell about the machine
  ...['date', 'cal', 'whoami', 'id', 'uname', 'hostname', 'uptime', 'free', 'nproc', 'ps', 'pgrep', 'lsof'],
  ...['netstat', 'ss'],
  // of the shell
  ...['pwd', 'cd', 'env', 'printenv', 'which', 'type', 'command', 'true', 'false', 'test', '[', 'expr', 'sleep'],
  ...['xargs', 'history', 'alias', 'man', 'help', 'info'],
  // with commands of their own
  ...['git', 'gh', 'docker'],
])
const HARMLESS_REDIRECTION = /\d?>\s*\/dev\/null|\d?>&\d/g
const ASKS_FOR_VERSION = /\s(--?version|-v|-V|--help|-h)$/
/** What else in a settings file may decide about a call. */
const OTHER_DECIDERS = ['hooks', 'sandbox', 'enabledPlugins', 'autoMode']

/** Where rules of a session may stand. */
export interface RulePlaces {
  cwd: string
  configDir: string | undefined
  /** `user`, `project`, `local`. */
  settingSources: readonly string[]
  /** What the request itself allows and denies. */
  rules: readonly string[]
}

/**
 * Whether the agent asks a person about this call for certain. It asks only after its hooks, when the call can no longer be put off;
 * so what is certain is asked before. Where a rule, a hook or the agent's own judgement might decide, the agent is left to it.
 */
export async function isCertainToAsk(call: SdkHookInput, mode: PermissionMode, places: RulePlaces): Promise<boolean> {
  const { tool_name: tool, tool_input: input } = call
  if (tool === ASK_USER_QUESTION) return mode !== 'dontAsk'
  if (tool === 'ExitPlanMode') return mode === 'plan'
  if (mode !== 'default' && mode !== 'acceptEdits') return false
  const asksWithoutRules =
    tool === 'WebSearch' ||
    tool.startsWith('mcp__') ||
    (mode === 'default' && EDITS.has(tool) && isIn(places.cwd, input.file_path ?? input.notebook_path)) ||
    (mode === 'default' && tool === 'Bash' && typeof input.command === 'string' && acts(input.command))
  return asksWithoutRules && !(await mayBeDecided(tool, places))
}

const isIn = (folder: string, path: unknown): boolean => {
  if (typeof path !== 'string') return false
  const inside = resolve(folder, path)
  // what the agent keeps about itself has rules of its own
  return inside.startsWith(resolve(folder) + sep) && !inside.includes(`${sep}.claude${sep}`)
}

function acts(command: string): boolean {
  const plain = command.replace(HARMLESS_REDIRECTION, '')
  if (plain.includes('>')) return true
  return plain.split(/\|\||&&|[|;&\n]/).some((part) => {
    const words = part.trim()
    const program = words.split(/\s+/)[0] ?? ''
    return program !== '' && !MAYBE_FREE.has(program) && !ASKS_FOR_VERSION.test(words)
  })
}

async function mayBeDecided(tool: string, { cwd, configDir, settingSources, rules }: RulePlaces): Promise<boolean> {
  if (rules.some((rule) => isAbout(rule, tool))) return true
  const files = [
    '/etc/claude-code/managed-settings.json',
    ...(settingSources.includes('user') && configDir ? [join(configDir, 'settings.json')] : []),
    ...(settingSources.includes('project') ? [join(cwd, '.claude/settings.json')] : []),
    ...(settingSources.includes('local') ? [join(cwd, '.claude/settings.local.json')] : []),
  ]
  const found = await Promise.all(files.map((file) => decides(file, tool)))
  return found.includes(true)
}

async function decides(file: string, tool: string): Promise<boolean> {
  try {
    const text = await readPlainFile(file)
    if (text === undefined) return false
    const settings = JSON.parse(text) as Record<string, unknown>
    if (OTHER_DECIDERS.some((key) => settings[key] !== undefined)) return true
    const { allow = [], deny = [], ask = [] } = (settings.permissions ?? {}) as Record<string, string[]>
    return [...allow, ...deny, ...ask].some((rule) => isAbout(rule, tool))
  } catch {
    return true
  }
}

/** A rule names a tool, all tools of a server, or some calls of a tool. */
const isAbout = (rule: string, tool: string): boolean => {
  const name = rule.split('(')[0]!.replace(/[*_]+$/, '')
  return (
    name === '' ||
    tool === name ||
    (name.startsWith('mcp__') && tool.startsWith(name)) ||
    (name === 'Edit' && EDITS.has(tool))
  )
}
