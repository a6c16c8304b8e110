import { resolve, sep } from 'node:path'
import type { SdkHookInput, SdkHookOutput } from './sdk.js'

/** Tools that cannot change anything but the agent's own notes. What the agent starts with them passes the same gate. */
const HARMLESS = new Set([
  ...['Read', 'Grep', 'Glob', 'LS', 'NotebookRead', 'WebFetch', 'WebSearch', 'ToolSearch', 'Skill'],
  ...['Task', 'Agent', 'TaskOutput', 'TaskStop', 'TodoWrite', 'TaskCreate', 'TaskUpdate', 'TaskGet', 'TaskList'],
  ...['AskUserQuestion', 'EnterPlanMode', 'ExitPlanMode', 'ListMcpResourcesTool', 'ReadMcpResourceTool'],
])
const EDITS = new Set(['Write', 'Edit', 'MultiEdit'])

/** One program with plain words behind it: no second command, redirection, substitution or line. */
const PLAIN_COMMAND = /^[\w\s./:=@%+,*?^'"|-]*$/
/** Programs that can only read, whatever their arguments; and `find`. The agent searches with them: it has no other way. */
const READERS = new Set(['ls', 'cat', 'head', 'tail', 'wc', 'grep', 'pwd', 'stat', 'du', 'find'])
const FIND_ACTION = /^-(exec|ok|delete|fprint|fls)/
/** What a shell leaves as it is; a quote that is left of a part has its other half elsewhere. */
const QUOTED = /'[^']*'|"[^"]*"/g
const MAY_BE_GLOB = /[*?'"]/

const PLAN_REFUSAL =
  'The session is in plan mode: nothing may be changed. Look around with read-only tools and present the plan.'

/** Before every call in plan mode, whatever rule allows it. */
export function guardPlan({ tool_name, tool_input }: SdkHookInput, plans: string | undefined): SdkHookOutput {
  if (changesNothing(tool_name, tool_input, plans)) return {}
  return {
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: 'deny',
      permissionDecisionReason: PLAN_REFUSAL,
    },
  }
}

/**
 * Whether a call leaves everything as it is. The agent's own plan mode does not: what was allowed before runs, and an allow really
 * writes.
 * @param plans the directory in which the agent itself keeps its plans
 */
function changesNothing(toolName: string, input: Record<string, unknown>, plans: string | undefined): boolean {
  if (HARMLESS.has(toolName)) return true
  if (toolName === 'Bash') return typeof input.command === 'string' && onlyReads(input.command)
  return EDITS.has(toolName) && plans !== undefined && isIn(plans, input.file_path)
}

function onlyReads(command: string): boolean {
  if (!PLAIN_COMMAND.test(command) || command.includes('\n')) return false
  return command.split('|').every((part) => {
    const [program = '', ...args] = part.trim().split(/\s+/)
    if (!READERS.has(program)) return false
    return program !== 'find' || !(args.some(isAction) || MAY_BE_GLOB.test(part.replace(QUOTED, '')))
  })
}

/** Quotes could hide an action of `find`, and a glob could become one: by a file of that name. */
const isAction = (arg: string): boolean => FIND_ACTION.test(arg.replace(/['"]/g, ''))

const isIn = (folder: string, path: unknown): boolean =>
  typeof path === 'string' && resolve(path).startsWith(resolve(folder) + sep)
