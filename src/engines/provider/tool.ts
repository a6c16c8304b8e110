import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { PermissionMode } from '../../../schemas/permissions.js'
import { toError } from '../../errors.js'
import type { RunnerEvent } from '../runner.js'

export type ToolContentPart = { type: 'text'; text: string } | { type: 'image'; data: string; mediaType: string }

/** What the model is told about a call; `data` of an image is base64. */
export interface ToolResult {
  content: string | ToolContentPart[]
  isError?: boolean
}

export interface ToolCallContext {
  toolUseId: string
  /** Aborted when the turn is interrupted or the session ends; the result is then of no use any more. */
  signal: AbortSignal
  emit(event: RunnerEvent): void
}

export type RunTool = (input: object, context: ToolCallContext) => Promise<ToolResult> | ToolResult

/** A tool as the loop sees it, wherever it comes from. */
export interface ProviderTool {
  readonly name: string
  readonly description: string
  /** A name that stands for this tool and its siblings in `allowedTools` and `disallowedTools`. */
  readonly group?: string
  /** JSON Schema of an object. */
  readonly inputSchema: Record<string, unknown>
  /** `unless-allowed`: a person is asked in mode `default`; `always`: in every mode, because the answer is the result. */
  readonly asks: 'never' | 'unless-allowed' | 'always'
  /** What the call would do, in a few words, for the person who is asked. */
  title?(input: object): string | undefined
  /** Why this input cannot be run. */
  problemWith?(input: object): string | undefined
  /** Absent on a deferred tool: its work happens elsewhere and its result is delivered later. */
  readonly run?: RunTool
  /** Milliseconds that a deferred tool may take. */
  readonly timeoutMs?: number | undefined
}

export const text = (content: string): ToolResult => ({ content })
export const failure = (content: string): ToolResult => ({ content, isError: true })

/** A tool of this package: its input is checked against its schema before anybody is asked, and again after an allow. */
export function bundledTool<S extends TSchema>(tool: {
  name: string
  description: string
  input: S
  asks: ProviderTool['asks']
  title?: (input: Static<S>) => string
  /** Throws what else makes an input of the right shape one that cannot be run. */
  check?: (input: Static<S>) => unknown
  run: (input: Static<S>, context: ToolCallContext) => Promise<ToolResult> | ToolResult
}): ProviderTool {
  const { name, description, input: schema, asks, title, check, run } = tool
  const checked = (input: object) => input as Static<S>
  return {
    name,
    description,
    asks,
    inputSchema: JSON.parse(JSON.stringify(schema)) as Record<string, unknown>,
    ...(title && { title: (input: object) => title(checked(input)) }),
    problemWith(input) {
      const error = Value.Errors(schema, input).First()
      if (error) return `${error.path.slice(1).replaceAll('/', '.') || 'input'}: ${error.message}`
      try {
        check?.(checked(input))
      } catch (thrown) {
        return toError(thrown).message
      }
      return undefined
    },
    run: (input, context) => run(checked(input), context),
  }
}

export type Leave = 'granted' | 'ask' | 'refused'

/** A session's tools by name, and what may run without asking. */
export class ToolBox {
  readonly #tools: ReadonlyMap<string, ProviderTool>
  readonly #allowed: ReadonlySet<string>

  /**
   * @param allowed names of tools, or groups, that need no leave in any mode
   * @param disallowed names of tools, or groups, that are left out
   */
  constructor(tools: readonly ProviderTool[], allowed: readonly string[] = [], disallowed: readonly string[] = []) {
    const leftOut = new Set(disallowed)
    this.#tools = new Map(tools.filter((tool) => !isNamed(tool, leftOut)).map((tool) => [tool.name, tool]))
    this.#allowed = new Set(allowed)
  }

  get names(): string[] {
    return [...this.#tools.keys()]
  }

  all(): ProviderTool[] {
    return [...this.#tools.values()]
  }

  get(name: string): ProviderTool | undefined {
    return this.#tools.get(name)
  }

  leaveFor(tool: ProviderTool, mode: PermissionMode): Leave {
    if (tool.asks === 'never') return 'granted'
    const isFree = mode === 'bypassPermissions' || isNamed(tool, this.#allowed)
    if (tool.asks === 'unless-allowed' && isFree) return 'granted'
    return mode === 'dontAsk' ? 'refused' : 'ask'
  }
}

const isNamed = (tool: ProviderTool, names: ReadonlySet<string>) =>
  names.has(tool.name) || (tool.group !== undefined && names.has(tool.group))
