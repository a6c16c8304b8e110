import type { MessageBlock, OtherBlock } from '../../../schemas/events.js'
import { toError } from '../../errors.js'
import { untilAborted } from '../../lib/aborted.js'
import { deferred } from '../../lib/deferred.js'
import type { Hold } from '../../lib/hold.js'
import { newId } from '../../lib/new-id.js'
import type { ExecutionResult, RunnerEvent, RunnerHost } from '../runner.js'
import { capped } from './capped-result.js'
import type { ProviderSession } from './runner.js'
import type { CallState } from './state.js'
import { failure, type ProviderTool, type RunTool, type ToolResult } from './tool.js'

export interface CallsContext extends Pick<ProviderSession, 'state' | 'tools' | 'clock'> {
  readonly host: RunnerHost
  /** No call begins while it holds. */
  readonly hold: Hold
  /** Ends the turn as an interrupt by the user does. */
  interrupt(): void
}

/**
 * Works off the tool calls of one answer. They start in the order the model gave; those that need nobody's leave run side by side, and
 * while somebody is asked or a deferred result is awaited, nothing runs: so that moment can be a snapshot.
 */
export class CallDesk {
  readonly #context: CallsContext
  readonly #emit: (event: RunnerEvent) => void
  #settled = deferred()

  constructor(context: CallsContext, emit: (event: RunnerEvent) => void) {
    this.#context = context
    this.#emit = emit
  }

  /** Resolves when each call has a result that was told. Rejects when the turn is aborted, or the gateway could not be reached. */
  async workOff(calls: CallState[], signal: AbortSignal): Promise<void> {
    const running: Promise<void>[] = []
    for (const call of calls) {
      signal.throwIfAborted()
      if (call.phase === 'done') this.#tell(call)
      else if (call.phase === 'deferred') await this.#defer(call, signal)
      else await this.#take(call, running, signal)
    }
    await untilAborted(Promise.all(running), signal)
    while (calls.some((call) => call.phase === 'deferred')) {
      this.#settled = deferred()
      this.#context.host.waitForExecutions()
      await untilAborted(this.#settled.promise, signal)
    }
  }

  /** Delivers the result of a deferred call; an id that waits for none is ignored. */
  settle(executionId: string, result: ExecutionResult): void {
    const call = this.#context.state.turn?.work?.calls.find((candidate) => candidate.executionId === executionId)
    if (call?.phase !== 'deferred') return
    this.#finish(call, executionOutput(result))
    this.#settled.resolve()
  }

  /** Gives every call that has no result the same one. */
  abandon(calls: CallState[], reason: string): void {
    for (const call of calls) {
      if (call.phase === 'done') this.#tell(call)
      else this.#finish(call, failure(reason))
    }
  }

  /** Decides about a call that nobody has decided about yet. */
  async #take(call: CallState, running: Promise<void>[], signal: AbortSignal): Promise<void> {
    const { tools, state, host } = this.#context
    const tool = tools.get(call.name)
    if (!tool) return this.#finish(call, failure(`There is no tool ${call.name}.`))
    const problem = call.problem ?? problemOf(tool, call.input)
    if (problem) return this.#finish(call, failure(problem))

    let input = call.input as object
    const leave = call.isAsked ? 'ask' : tools.leaveFor(tool, state.permissionMode)
    if (leave === 'refused') {
      return this.#finish(call, failure(`${call.name} is not allowed in permission mode ${state.permissionMode}.`))
    }
    if (leave === 'ask') {
      await untilAborted(Promise.all(running), signal)
      call.isAsked = true
      const title = tool.title?.(input)
      const ask = { toolName: call.name, toolUseId: call.id, input, ...(title && { title }) }
      const decision = await untilAborted(host.requestPermission(ask), signal)
      if (decision.behavior !== 'allow') {
        this.#finish(call, failure(decision.message || `The user did not allow ${call.name}.`))
        if (decision.interrupt) this.#context.interrupt()
        return
      }
      input = decision.updatedInput ?? input
      const changed = problemOf(tool, input)
      if (changed) return this.#finish(call, failure(changed))
    }
    call.input = input
    const { hold } = this.#context
    if (hold.over) {
      await hold.passed(signal)
      signal.throwIfAborted()
    }
    if (!tool.run) return this.#defer(call, signal)
    call.phase = 'started'
    running.push(this.#run(call, tool.run, input, signal))
  }

  async #run(call: CallState, run: RunTool, input: object, signal: AbortSignal): Promise<void> {
    const work = async () => run(input, { toolUseId: call.id, signal, emit: this.#emit })
    try {
      this.#finish(call, await untilAborted(work(), signal))
    } catch (thrown) {
      if (!signal.aborted) this.#finish(call, failure(toError(thrown).message))
    }
  }

  async #defer(call: CallState, signal: AbortSignal): Promise<void> {
    const { host, clock, tools } = this.#context
    const timeoutMs = tools.get(call.name)?.timeoutMs
    call.phase = 'deferred'
    call.executionId ??= newId()
    if (timeoutMs !== undefined) call.expiresAt ??= clock.now() + timeoutMs
    const { executionId, name: toolName, input, expiresAt } = call
    try {
      // After a restore the id is known already, which changes nothing.
      const deferral = host.deferExecution({
        executionId,
        toolName,
        input,
        ...(expiresAt !== undefined && { expiresAt }),
      })
      await untilAborted(deferral, signal)
    } catch (thrown) {
      if (signal.aborted) throw thrown
      this.#finish(call, failure(`${toolName} could not be handed over: ${toError(thrown).message}`))
    }
  }

  #finish(call: CallState, result: ToolResult): void {
    call.phase = 'done'
    call.result = capped(result)
    this.#tell(call)
  }

  #tell(call: CallState): void {
    if (call.told || !call.result) return
    call.told = true
    const block = { type: 'tool_result' as const, tool_use_id: call.id, ...resultBlock(call.result) }
    this.#emit({
      type: 'user_message',
      message: { role: 'user', content: [block] },
      uuid: newId(),
      parentToolUseId: null,
      synthetic: true,
    })
  }
}

const problemOf = (tool: ProviderTool, input: unknown): string | undefined => {
  const problem = tool.problemWith?.(input as object)
  return problem && `The input of ${tool.name} is not valid: ${problem}`
}

function resultBlock({ content, isError }: ToolResult): { content: string | MessageBlock[]; is_error?: true } {
  const shown =
    typeof content === 'string'
      ? content
      : content.map((part) => (part.type === 'text' ? part : (imageBlock(part) as unknown as OtherBlock)))
  return { content: shown, ...(isError && { is_error: true }) }
}

const imageBlock = ({ mediaType, data }: { mediaType: string; data: string }) => ({
  type: 'image',
  source: { type: 'base64', media_type: mediaType, data },
})

function executionOutput(result: ExecutionResult): ToolResult {
  if (result.status === 'ok') {
    const { output } = result
    return { content: output.type === 'text' ? output.value : (JSON.stringify(output.value) ?? 'null') }
  }
  const { status, reason, error } = result
  return failure(JSON.stringify({ status, reason, error }))
}
