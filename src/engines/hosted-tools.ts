import { type Clock, newId } from '../lib/clock.js'
import type { CreateEngineRunner, ExecutionResult, Runner, RunnerHost } from './runner.js'
import type { ToolAccess, ToolEndpoint } from './tool-endpoint.js'

/** Name under which agents know the gateway's tools. */
const SERVER = 'session-gateway'

/**
 * Gives the agents of an engine the operator's deferred tools as an MCP server. An agent waits for a result in the middle of its call, so
 * it keeps its process meanwhile.
 */
export function withHostedTools(create: CreateEngineRunner, endpoint: ToolEndpoint, clock: Clock): CreateEngineRunner {
  return async (context) => {
    const { deferredTools: tools = [], config } = context
    if (tools.length === 0) return create(context)
    const calls = new HostedCalls(clock)
    const access = await endpoint.open({ tools, call: (tool, input) => calls.run(tool.name, input, tool.timeoutMs) })
    const server = { type: 'http' as const, url: access.url, headers: { authorization: `Bearer ${access.bearer}` } }
    try {
      const mcpServers = { ...config.mcpServers, [SERVER]: server }
      const runner = await create({ ...context, config: { ...config, mcpServers } })
      return hosted(runner, calls, access, new Set(tools.map(({ name }) => `mcp__${SERVER}__${name}`)))
    } catch (error) {
      access.close()
      throw error
    }
  }
}

/** The calls of one agent that wait for their results. */
class HostedCalls {
  readonly #clock: Clock
  readonly #waiting = new Map<string, (result: ExecutionResult) => void>()
  host: RunnerHost | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async run(toolName: string, input: unknown, timeoutMs: number | undefined): Promise<ExecutionResult> {
    if (!this.host) return { status: 'failed', reason: 'not_ready', error: 'The session has not started yet.' }
    const executionId = newId()
    const settled = new Promise<ExecutionResult>((resolve) => this.#waiting.set(executionId, resolve))
    const expiresAt = timeoutMs === undefined ? {} : { expiresAt: this.#clock.now() + timeoutMs }
    await this.host.deferExecution({ executionId, toolName, input, ...expiresAt })
    return settled
  }

  settle(executionId: string, result: ExecutionResult): boolean {
    const waiting = this.#waiting.get(executionId)
    this.#waiting.delete(executionId)
    waiting?.(result)
    return waiting !== undefined
  }
}

function hosted(runner: Runner, calls: HostedCalls, access: ToolAccess, granted: ReadonlySet<string>): Runner {
  return {
    capabilities: runner.capabilities,
    ...(runner.files && { files: runner.files }),
    start(host) {
      calls.host = host
      return runner.start(grantingHost(host, granted))
    },
    send: (text, options) => runner.send(text, options),
    interrupt: () => runner.interrupt(),
    ...(runner.setPermissionMode && { setPermissionMode: (mode) => runner.setPermissionMode!(mode) }),
    ...(runner.setModel && { setModel: (model) => runner.setModel!(model) }),
    settleExecution(executionId, result) {
      if (!calls.settle(executionId, result)) runner.settleExecution?.(executionId, result)
    },
    ...(runner.snapshot && { snapshot: () => runner.snapshot!() }),
    async close() {
      access.close()
      await runner.close()
    },
  }
}

/** Declaring a deferred tool grants it, as with every engine: what a call leads to is the operator's to decide. */
const grantingHost = (host: RunnerHost, granted: ReadonlySet<string>): RunnerHost => ({
  emit: (event) => host.emit(event),
  requestPermission: async (ask) =>
    granted.has(ask.toolName) ? { behavior: 'allow', updatedInput: ask.input } : host.requestPermission(ask),
  deferExecution: (execution) => host.deferExecution(execution),
  waitForExecutions: () => host.waitForExecutions(),
  get signal() {
    return host.signal
  },
})
