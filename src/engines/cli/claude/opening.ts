import { deferred } from '../../../lib/deferred.js'
import { within } from '../../../lib/within.js'
import type { PromptStream } from './prompt-stream.js'
import type { SdkInit, SdkInitialization, SdkMessage, SdkResult } from './sdk.js'
import type { Totals } from './totals.js'
import { isOfItsOwn } from './turn-watch.js'

/** How long an agent that tells nothing of its credentials may take to report by itself. */
const REPORT_MS = 3_000

/** What the agent says before the session is open. */
export class Opening {
  #init: SdkInit | undefined
  #isAsked = false
  readonly #reported = deferred()
  readonly #result = deferred<SdkResult>()

  receive(message: SdkMessage): void {
    if (message.type === 'system' && message.subtype === 'init') {
      this.#init = message
      this.#reported.resolve()
    }
    // one that takes over from an agent with work in the background tells first that it has ended
    if (message.type === 'result' && !message.is_error && !isOfItsOwn(message)) this.#result.resolve(message)
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
      totals.startFrom(await this.#result.promise)
    } else if (Object.keys(account).length === 0) {
      // Whose credentials it uses decides whether it may be given a prompt at all.
      await within(REPORT_MS, this.#reported.promise)
    } else {
      await new Promise(setImmediate)
    }
    return this.#init
  }
}
