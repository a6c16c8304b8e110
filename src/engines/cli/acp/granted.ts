import type { DeferredTool } from '../../runner.js'
import type { AcpSetup } from './setup.js'
import type { KnownCall } from './tool-calls.js'

const CANONICAL = (server: string, tool: string) => `mcp__${server}__${tool}`
/** What agents of which nothing is known may call a tool of a server. */
const FORMS = [
  CANONICAL,
  (server: string, tool: string) => `mcp_${server}_${tool}`,
  (server: string, tool: string) => `${server}__${tool}`,
  (server: string, tool: string) => `${server}_${tool}`,
  (server: string, tool: string) => `${server}/${tool}`,
]

/** The deferred tools of a session, which declaring has granted: nobody is asked for a call of theirs, in no mode. */
export class GrantedTools {
  readonly #names: ReadonlySet<string>
  /** What the agent is started with, beyond its arguments. */
  readonly args: readonly string[]

  constructor({ hostedTools, row }: Pick<AcpSetup, 'hostedTools' | 'row'>) {
    const { server = '', tools = [] } = hostedTools ?? {}
    const forms = row.acp?.serverToolName ? [row.acp.serverToolName] : FORMS
    const namesOf = ({ name }: DeferredTool) => forms.map((form) => form(server, name))
    this.#names = new Set(tools.flatMap(namesOf))
    this.args = tools.length > 0 ? (row.acp?.grantArgs?.(tools.map(({ name }) => CANONICAL(server, name))) ?? []) : []
  }

  has({ name }: KnownCall): boolean {
    return this.#names.has(name)
  }
}
