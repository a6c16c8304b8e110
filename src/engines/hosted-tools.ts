import { invalidField } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import { deferred } from '../lib/deferred.js'
import { Hold } from '../lib/hold.js'
import { newId } from '../lib/new-id.js'
import { ForwardingHost, ForwardingRunner } from './forwarding.js'
import type {
  CreateEngineRunner,
  DeferredTool,
  EngineRunnerContext,
  ExecutionResult,
  PermissionAsk,
  Runner,
  RunnerHost,
  SessionRunnerConfig,
} from './runner.js'
import type { ToolAccess, ToolCallFacts, ToolEndpoint } from './tool-endpoint.js'

/** Name under which agents know the gateway's tools. */
const SERVER = 'session-gateway'

/** The gateway's tools, for a driver that knows of a call before the agent makes it and can wait for the result then. */
export interface HostedTools {
  /** The name of their server in the session's configuration. */
  readonly server: string
  readonly tools: readonly DeferredTool[]
  /** Resolves when the agent has looked at the tools. */
  readonly listed: Promise<void>
  /** The tool that the agent knows by this name. */
  find(agentsName: string): DeferredTool | undefined
  /** A new execution of a tool. */
  execution(tool: DeferredTool): { executionId: string; expiresAt?: number }
  /** Answers the call that the agent is going to make next. */
  answer(call: AnsweredCall): void
}

export interface AnsweredCall {
  toolUseId: string
  toolName: string
  result: ExecutionResult
}

export interface HostedContext extends EngineRunnerContext {
  hostedTools?: HostedTools
}

/**
 * Gives the agents of an engine the operator's deferred tools as an MCP server. An agent whose driver does not wait before the call
 * waits for the result in the middle of it, and keeps its process meanwhile.
 */
export function withHostedTools(
  create: (context: HostedContext) => ReturnType<CreateEngineRunner>,
  endpoint: ToolEndpoint,
  clock: Clock,
): CreateEngineRunner {
  return async (context) => {
    const { deferredTools: tools = [], config } = context
    if (tools.length === 0) return create(context)
    refuseLookalikes(config, tools)
    const calls = new HostedCalls(clock)
    const listed = deferred()
    const access = await endpoint.open({
      tools,
      call: (...call) => calls.run(...call),
      onListed: listed.resolve,
    })
    const server = { type: 'http' as const, url: access.url, headers: { authorization: `Bearer ${access.bearer}` } }
    const byName = new Map(tools.map((tool) => [`mcp__${SERVER}__${tool.name}`, tool]))
    const hostedTools: HostedTools = {
      server: SERVER,
      tools,
      listed: listed.promise,
      find: (name) => byName.get(name),
      execution: (tool) => calls.execution(tool),
      answer: (call) => {
        calls.answered = call
      },
    }
    try {
      const mcpServers = { ...config.mcpServers, [SERVER]: server }
      const runner = await create({ ...context, config: { ...config, mcpServers }, hostedTools })
      return new HostedRunner(runner, calls, access, byName)
    } catch (error) {
      access.close()
      throw error
    }
  }
}

/**
 * Agents write names of servers and of their tools in their own ways: one that could be taken for the gateway's would have its tools
 * granted. That is also one whose name goes on as a tool of the gateway's begins, since some write one name behind the other.
 */
export function refuseLookalikes(
  { mcpServers: servers = {} }: SessionRunnerConfig,
  tools: readonly DeferredTool[],
): void {
  const granted = tools.map((tool) => `${plain(SERVER)}_${plain(tool.name)}`)
  const looksAlike = (name: string) =>
    plain(name).startsWith(plain(SERVER)) && granted.some((own) => own.startsWith(`${plain(name)}_`))
  const taken = Object.keys(servers).find(looksAlike)
  if (taken !== undefined) throw invalidField('mcpServers', `the name ${taken} is the gateway's own.`)
}

const plain = (name: string): string => name.replace(/[^A-Za-z0-9]+/g, '_').toLowerCase()

/** The calls of one agent that wait for their results. */
class HostedCalls {
  readonly #clock: Clock
  readonly #waiting = new Map<string, (result: ExecutionResult) => void>()
  host: RunnerHost | undefined
  /** Kept until the next one, for an agent that makes its call twice. */
  answered: AnsweredCall | undefined
  readonly hold = new Hold()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  execution({ timeoutMs }: DeferredTool): { executionId: string; expiresAt?: number } {
    const executionId = newId()
    return timeoutMs === undefined ? { executionId } : { executionId, expiresAt: this.#clock.now() + timeoutMs }
  }

  async run(tool: DeferredTool, input: unknown, { toolUseId, takenBack }: ToolCallFacts): Promise<ExecutionResult> {
    const { answered } = this
    if (answered && answered.toolName === tool.name && (toolUseId ?? answered.toolUseId) === answered.toolUseId)
      return answered.result
    if (this.hold.over) await this.hold.passed()
    if (!this.host) return { status: 'failed', reason: 'not_ready', error: 'The session has not started yet.' }
    const execution = this.execution(tool)
    const settled = new Promise<ExecutionResult>((resolve) => this.#waiting.set(execution.executionId, resolve))
    try {
      await this.host.deferExecution({ ...execution, toolName: tool.name, input }, takenBack)
    } catch (refusal) {
      // nobody settles what was not taken
      this.#waiting.delete(execution.executionId)
      throw refusal
    }
    return settled
  }

  settle(executionId: string, result: ExecutionResult): boolean {
    const waiting = this.#waiting.get(executionId)
    this.#waiting.delete(executionId)
    waiting?.(result)
    return waiting !== undefined
  }
}

class HostedRunner extends ForwardingRunner {
  readonly #calls: HostedCalls
  readonly #access: ToolAccess
  readonly #granted: ReadonlyMap<string, DeferredTool>

  constructor(inner: Runner, calls: HostedCalls, access: ToolAccess, granted: ReadonlyMap<string, DeferredTool>) {
    super(inner)
    this.#calls = calls
    this.#access = access
    this.#granted = granted
  }

  override start(host: RunnerHost): Promise<void> {
    this.#calls.host = host
    return super.start(new GrantingHost(host, this.#granted))
  }

  override settleExecution(executionId: string, result: ExecutionResult): void {
    if (!this.#calls.settle(executionId, result)) super.settleExecution(executionId, result)
  }

  override pause(): void {
    this.#calls.hold.put()
    super.pause()
  }

  override resume(): void {
    super.resume()
    this.#calls.hold.lift()
  }

  override async close(): Promise<void> {
    this.#access.close()
    await super.close()
  }
}

/** Declaring a deferred tool grants it, as with every engine: what a call leads to is the operator's to decide. */
class GrantingHost extends ForwardingHost {
  readonly #granted: ReadonlyMap<string, DeferredTool>

  constructor(host: RunnerHost, granted: ReadonlyMap<string, DeferredTool>) {
    super(host)
    this.#granted = granted
  }

  override async requestPermission(
    ask: PermissionAsk,
    takenBack?: AbortSignal,
  ): ReturnType<RunnerHost['requestPermission']> {
    if (this.#granted.has(ask.toolName)) return { behavior: 'allow', updatedInput: ask.input }
    return super.requestPermission(ask, takenBack)
  }
}
