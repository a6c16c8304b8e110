import { startError } from '../../../errors.js'
import type { Clock } from '../../../lib/clock.js'
import { deferred } from '../../../lib/deferred.js'
import { within } from '../../../lib/within.js'
import { asSentence } from '../control.js'
import type { PromptStream } from './prompt-stream.js'
import type { SdkInit, SdkInitialization, SdkMessage, SdkResult } from './sdk.js'
import type { Totals } from './totals.js'
import { errorsOf } from './translate.js'
import { isOfItsOwn } from './turn-watch.js'

/** How long an agent that tells nothing of its credentials may take to report by itself. */
const REPORT_MS = 3_000

/** How long one that cannot work has to end by itself. */
export const ENDING_MS = 5_000

/** What the agent says before the session is open. */
export class Opening {
  readonly #clock: Clock
  #init: SdkInit | undefined
  #isAsked = false
  readonly #reported = deferred()
  readonly #result = deferred<SdkResult>()
  readonly #refusal = deferred<SdkResult>()
  readonly #over = deferred<undefined>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  receive(message: SdkMessage): void {
    if (message.type === 'system' && message.subtype === 'init') {
      this.#init = message
      this.#reported.resolve()
    }
    // one that takes over from an agent with work in the background tells first that it has ended
    if (message.type === 'result' && !isOfItsOwn(message))
      (message.is_error ? this.#refusal : this.#result).resolve(message)
  }

  /**
   * Makes the agent report. It does so when it is first spoken to, so it gets a message that asks nothing of the model and leaves no
   * trace. One that does not tell its version may not know such messages; it may report by itself.
   */
  ask(prompts: PromptStream): void {
    this.#isAsked = true
    prompts.push({ type: 'user', message: { role: 'user', content: [] }, parent_tool_use_id: null, shouldQuery: false })
  }

  /** @returns undefined when the agent does not report before its first prompt */
  async report(
    { claude_code_version, account = {} }: SdkInitialization,
    prompts: PromptStream,
    totals: Totals,
  ): Promise<SdkInit | undefined> {
    if (claude_code_version && !this.#isAsked) this.ask(prompts)
    if (this.#isAsked) {
      totals.startFrom(await this.#answer())
    } else if (Object.keys(account).length === 0) {
      // Whose credentials it uses decides whether it may be given a prompt at all.
      await within(REPORT_MS, this.#reported.promise)
    } else {
      await new Promise(setImmediate)
    }
    return this.#init
  }

  /** One that cannot work says so, and mostly ends then: how, and what it said, tells more. */
  async #answer(): Promise<SdkResult> {
    const first = await Promise.race([this.#result.promise, this.#refusal.promise])
    if (!first.is_error) return first
    const better = Promise.race([this.#result.promise, this.#over.promise])
    const answer = await within(ENDING_MS, better, { clock: this.#clock })
    if (!answer) throw startError(asSentence(errorsOf(first).join(' ')))
    return answer
  }

  /** Nothing of it is waited for any more. */
  end(): void {
    this.#over.resolve(undefined)
  }
}
