import { toError } from '../../../errors.js'
import { whenAborted } from '../../../lib/aborted.js'
import { deferred } from '../../../lib/deferred.js'
import { wellFormedJson } from '../../../lib/well-formed.js'
import type { HostedTools } from '../../hosted-tools.js'
import {
  type DeferredTool,
  type ExecutionResult,
  NOT_ALLOWED,
  type PermissionDecision,
  type RunnerHost,
} from '../../runner.js'
import type { SdkCanUseTool, SdkHook, SdkHookInput, SdkHookOutput, SdkPermissionResult } from './sdk.js'

/** A call that waits for somebody elsewhere. Nothing of it has run, so it may wait without a process. */
export interface HeldCall {
  toolUseId: string
  /** Of a deferred tool. */
  execution?: { executionId: string; expiresAt?: number }
}

export interface GateOptions {
  readonly hostedTools: HostedTools | undefined
  /** The call that the session was parked at. */
  readonly restored: HeldCall | undefined
  /** The agent has come to it again. */
  readonly onReturned: () => void
  readonly host: () => RunnerHost
  /** Resolves when the session is open and what the agent said before the call is told. */
  readonly told: () => Promise<void>
  /** What is refused, whoever would allow it. */
  readonly guard: (call: SdkHookInput) => SdkHookOutput
  /** Whether a person is asked about this call, and may take as long as they like. */
  readonly isPatientAsk: (call: SdkHookInput) => Promise<boolean>
  readonly isInterrupted: () => boolean
  readonly interrupt: () => void
}

const INTERRUPTED = 'The turn was interrupted.'
/** Of all calls in one answer the agent can put off one. */
export const ONE_AT_A_TIME =
  'This was not run, because another call of the same message had to wait for its result. Call it again if it is still needed.'

const decided = (
  permissionDecision: 'allow' | 'deny' | 'defer',
  permissionDecisionReason: string,
  updatedInput?: object,
): SdkHookOutput => ({
  hookSpecificOutput: {
    hookEventName: 'PreToolUse',
    permissionDecision,
    permissionDecisionReason,
    ...(updatedInput && { updatedInput: updatedInput as Record<string, unknown> }),
  },
})

/**
 * What every call of the agent passes before it runs. A call of a deferred tool, and one that a person is asked about without a time
 * limit, waits here, where it can still be put off: then the agent ends, and its successor comes to the same call again.
 */
export class Gate {
  readonly #options: GateOptions
  /** Calls that the model has made, and of them those that are let through, until their results are told. */
  readonly #open = new Set<string>()
  readonly #running = new Set<string>()
  readonly #settled = new Map<string, ExecutionResult>()
  readonly #decisions = new Map<string, PermissionDecision>()
  /** Calls whose results have come: their work is done, whatever mode was chosen since. */
  readonly #answered = new Set<string>()
  #held: HeldCall | undefined
  #last: Promise<unknown> = Promise.resolve()
  /** Of the call that waits: its result, and that it is put off. */
  #delivered = deferred<ExecutionResult>()
  #deferral = deferred<undefined>()
  #isPuttingOff = false

  constructor(options: GateOptions) {
    this.#options = options
  }

  /** The call that waits, when nothing else is under way. */
  get held(): HeldCall | undefined {
    return this.#running.size === 0 ? this.#held : undefined
  }

  /** Calls that are refused when the one that waits is put off. */
  get refusedThen(): string[] {
    return [...this.#open].filter((id) => id !== this.#held?.toolUseId)
  }

  /** The model has made a call. */
  onCall(toolUseId: string): void {
    this.#open.add(toolUseId)
  }

  onToolResult(toolUseId: string): void {
    this.#open.delete(toolUseId)
    this.#running.delete(toolUseId)
  }

  onTurnEnd(): void {
    this.#open.clear()
    this.#running.clear()
    this.#decisions.clear()
    this.#answered.clear()
    this.#held = undefined
    this.#deferral.resolve(undefined)
  }

  settle(executionId: string, result: ExecutionResult): void {
    const isHeld = this.#held?.execution?.executionId === executionId
    if (isHeld || this.#options.restored?.execution?.executionId === executionId) this.#settled.set(executionId, result)
    if (isHeld) this.#delivered.resolve(result)
  }

  /** Has the agent end its turn at the call that waits, and refuses whatever it comes to then. */
  putOff(): void {
    this.#isPuttingOff = true
    this.#deferral.resolve(undefined)
  }

  /** The hook before each call. */
  readonly before: SdkHook = async (call, _toolUseId, { signal }) => {
    // whoever decides about it now
    if (this.#options.restored?.toolUseId === call.tool_use_id) this.#options.onReturned()
    if (this.#isPuttingOff) return decided('deny', ONE_AT_A_TIME)
    const guarded = this.#options.guard(call)
    if (guarded.hookSpecificOutput && !this.#wasDispatched(call)) return guarded
    const tool = this.#options.hostedTools?.find(call.tool_name)
    // a helper's call cannot be put off
    if (call.agent_id !== undefined) return this.#pass(call, tool ? decided('allow', 'Declared by the operator.') : {})
    if (tool) return this.#inTurn(() => this.#awaitResult(call, tool, signal))
    if (this.#wasAsked(call) || (await this.#options.isPatientAsk(call)))
      return this.#inTurn(() => this.#awaitPerson(call, signal))
    return this.#pass(call, {})
  }

  /** What the agent asks after its own rules; the call waits in the agent then, which cannot be parked. */
  readonly ask: SdkCanUseTool = async (...ask): Promise<SdkPermissionResult> => {
    await this.#options.told()
    const [tool_name, input, { toolUseID: tool_use_id }] = ask
    if (this.#answered.has(tool_use_id)) return { behavior: 'allow', updatedInput: input }
    const answer: SdkPermissionResult = this.#decisions.has(tool_use_id)
      ? { behavior: 'allow', updatedInput: input }
      : await askPerson(this.#options.host(), ...ask)
    if (answer.behavior === 'deny') return answer
    // the mode may be another one since, and the input, too
    const { hookSpecificOutput } = this.#options.guard({ tool_name, tool_input: answer.updatedInput, tool_use_id })
    return hookSpecificOutput ? { behavior: 'deny', message: hookSpecificOutput.permissionDecisionReason } : answer
  }

  /** Before the session was parked: whatever mode was chosen since, it is for a person to say. */
  #wasAsked({ tool_use_id }: SdkHookInput): boolean {
    const { restored } = this.#options
    return restored?.toolUseId === tool_use_id && !restored.execution
  }

  /** Before the session was parked: its result is for the agent, whatever mode was chosen since. */
  #wasDispatched({ tool_use_id }: SdkHookInput): boolean {
    const { restored } = this.#options
    return restored?.toolUseId === tool_use_id && restored.execution !== undefined
  }

  #pass({ tool_use_id }: SdkHookInput, output: SdkHookOutput): SdkHookOutput {
    this.#running.add(tool_use_id)
    return output
  }

  /** One call waits at a time: only one of a message can be put off. */
  #inTurn(wait: () => Promise<SdkHookOutput>): Promise<SdkHookOutput> {
    const mine = this.#last.then(async () => {
      await this.#options.told()
      if (this.#isPuttingOff) return decided('deny', ONE_AT_A_TIME)
      if (this.#options.isInterrupted()) return decided('deny', INTERRUPTED)
      try {
        return await wait()
      } catch (error) {
        return decided('deny', toError(error).message)
      } finally {
        this.#held = undefined
      }
    })
    this.#last = mine
    return mine
  }

  async #awaitResult(call: SdkHookInput, tool: DeferredTool, takenBack: AbortSignal): Promise<SdkHookOutput> {
    const { hostedTools, host, restored } = this.#options
    const toolUseId = call.tool_use_id
    const earlier = restored?.toolUseId === toolUseId ? restored.execution : undefined
    const execution = earlier ?? hostedTools!.execution(tool)
    const { executionId } = execution
    const putOff = this.#hold({ toolUseId, execution })
    let isOver = false
    void putOff.then(() => {
      isOver = true
    })
    this.#delivered = deferred()
    const { promise: delivered } = this.#delivered
    if (!this.#settled.has(executionId)) {
      await host().deferExecution({ ...execution, toolName: tool.name, input: call.tool_input }, takenBack)
      // the turn may have ended while that was written down
      if (!isOver && !this.#settled.has(executionId)) host().waitForExecutions()
    }
    const result = this.#settled.get(executionId) ?? (await Promise.race([delivered, putOff]))
    if (!result) return decided('defer', 'Its result comes later.')
    this.#settled.delete(executionId)
    // it is not made then, and nothing would tell that it is over
    if (takenBack.aborted) return decided('deny', INTERRUPTED)
    hostedTools!.answer({ toolUseId, toolName: tool.name, result })
    this.#answered.add(toolUseId)
    return this.#pass(call, decided('allow', 'Its result has come.'))
  }

  async #awaitPerson(call: SdkHookInput, takenBack: AbortSignal): Promise<SdkHookOutput> {
    const { host, interrupt } = this.#options
    const { tool_use_id: toolUseId, tool_name: toolName, tool_input: input } = call
    const putOff = this.#hold({ toolUseId })
    const asked = host().requestPermission({ toolName, toolUseId, input }, takenBack)
    const answer = await Promise.race([asked, putOff])
    const decision = answer && wellFormedJson(answer)
    if (!decision) return decided('defer', 'Somebody answers later.')
    if (decision.behavior === 'deny') {
      if (decision.interrupt) interrupt()
      return decided('deny', decision.message ?? NOT_ALLOWED)
    }
    const allowed = decision.updatedInput ?? input
    const guarded = this.#options.guard({ ...call, tool_input: allowed as Record<string, unknown> })
    if (guarded.hookSpecificOutput) return guarded
    this.#decisions.set(toolUseId, decision)
    return this.#pass(call, decided('allow', 'The user allows it.', allowed))
  }

  #hold(call: HeldCall): Promise<undefined> {
    this.#held = call
    this.#deferral = deferred()
    return this.#deferral.promise
  }
}

/** Hands a question of the agent to a person, and the answer back. */
async function askPerson(
  host: RunnerHost,
  ...[toolName, input, { signal, toolUseID, title, description, decisionReason, agentID }]: Parameters<SdkCanUseTool>
): Promise<SdkPermissionResult> {
  const ask = {
    toolName,
    toolUseId: toolUseID,
    input,
    ...(title && { title }),
    ...(description && { description }),
    ...(decisionReason && { decisionReason }),
    ...(agentID && { agentId: agentID }),
  }
  // the agent hears no answer to what it has taken back
  const asked = signal.aborted ? undefined : host.requestPermission(ask, signal)
  const answer = await Promise.race([asked, whenAborted(signal)])
  const decision = wellFormedJson(answer ?? { behavior: 'deny' as const, message: 'Interrupted.' })
  if (decision.behavior === 'allow')
    return { behavior: 'allow', updatedInput: (decision.updatedInput ?? input) as Record<string, unknown> }
  return {
    behavior: 'deny',
    message: decision.message ?? NOT_ALLOWED,
    ...(decision.interrupt && { interrupt: true }),
  }
}
