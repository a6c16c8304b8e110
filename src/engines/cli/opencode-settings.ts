import { startError } from '../../errors.js'
import { isRecord } from '../../lib/json-value.js'
import { tried } from '../../lib/tried.js'
import type { Environment } from './environment.js'

/** Asked for in plan mode, where the gateway refuses what is asked; other tools are the agent's reading ones, or those of servers. */
const ACTING = ['bash', 'edit', 'task', 'webfetch', 'websearch']
const PLAN = { permission: Object.fromEntries(ACTING.map((tool) => [tool, 'ask'])) }
/** Both start programs of the repository's, the one as soon as a file is read. */
const NO_PROGRAMS = { lsp: false, formatter: false }
/** Its turn ends with the first call that is denied otherwise, as one that went well, and its model is not told. */
const GOES_ON = { continue_loop_on_deny: true }

/**
 * What opencode and its kin are told over the settings of their user: in plan mode nothing acts unasked though their rules allow it,
 * a call that is denied does not end the turn, and where the working directory is not trusted no language server and no formatter starts.
 * @param variable what holds such settings, as JSON; what it holds already is kept
 * @throws SG_ERR_ENGINE_START when that is no JSON object
 */
export const opencodeSettings =
  (variable: string) =>
  (env: Environment, trusted: boolean): Record<string, string> => {
    const given = settingsIn(variable, env[variable])
    const { agent = {}, experimental } = given as {
      agent?: Record<string, { permission?: object | string }>
      experimental?: object
    }
    const plan = { ...agent.plan, permission: { ...rulesOf(agent.plan?.permission), ...PLAN.permission } }
    const settings = {
      ...given,
      agent: { ...agent, plan },
      experimental: { ...GOES_ON, ...experimental },
      ...(!trusted && NO_PROGRAMS),
    }
    return { [variable]: JSON.stringify(settings) }
  }

/** Without those that ours take the place of: of the rules that fit the last one holds, and so ours come last. One word is about every tool. */
function rulesOf(permission: object | string = {}): object {
  const rules = typeof permission === 'string' ? { '*': permission } : permission
  return Object.fromEntries(Object.entries(rules).filter(([tool]) => !ACTING.includes(tool)))
}

function settingsIn(variable: string, text: string | undefined): object {
  if (!text) return {}
  const found: unknown = tried(() => JSON.parse(text))
  if (isRecord(found)) return found
  throw startError(`${variable} must hold a JSON object, without comments.`)
}
