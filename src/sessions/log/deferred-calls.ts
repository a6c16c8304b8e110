import type { Message, MessageBlock, SessionEventOf } from '../../../schemas/events.js'

/**
 * The deferred calls of a turn that was cut off, by what was told of it. Which call an execution is no event tells: they are handed over in
 * the order of the calls, each once those of its tool before it were, or have a result.
 */
export class DeferredCalls {
  /** Names of the tools of calls that were neither handed over nor have a result. */
  readonly #open = new Map<string, string>()
  readonly #handedOver = new Map<string, string>()
  /** Results that came, and that their engine did not live to tell. */
  readonly #untold = new Map<string, MessageBlock>()

  said({ content }: Message): void {
    for (const block of typeof content === 'string' ? [] : content) {
      if (block.type === 'tool_use' && 'name' in block) this.#open.set(String(block.id), String(block.name))
      if (block.type !== 'tool_result' || !('tool_use_id' in block)) continue
      const call = String(block.tool_use_id)
      this.#open.delete(call)
      this.#untold.delete(call)
    }
  }

  handedOver({ executionId, toolName }: SessionEventOf<'execution_dispatched'>): void {
    const [call] = [...this.#open].find(([, name]) => name === toolName) ?? []
    if (call === undefined) return
    this.#open.delete(call)
    this.#handedOver.set(executionId, call)
  }

  came(event: SessionEventOf<'execution_result' | 'execution_failed'>): void {
    const call = this.#handedOver.get(event.executionId)
    // nobody brought that one
    const isCutOff = event.type === 'execution_failed' && event.reason === 'interrupted'
    if (call === undefined || isCutOff) return
    this.#untold.set(call, { type: 'tool_result', tool_use_id: call, ...contentOf(event) } as MessageBlock)
  }

  /** What the engine would have told. */
  get untold(): Message[] {
    return [...this.#untold.values()].map((block) => ({ role: 'user', content: [block] }))
  }
}

function contentOf(event: SessionEventOf<'execution_result' | 'execution_failed'>) {
  if (event.type === 'execution_failed') {
    const { reason, error } = event
    return { content: JSON.stringify({ status: 'failed', reason, error }), is_error: true }
  }
  const { output } = event
  return { content: output.type === 'text' ? output.value : (JSON.stringify(output.value) ?? 'null') }
}
