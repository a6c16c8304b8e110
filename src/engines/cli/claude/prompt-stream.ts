import type { SdkUserMessage } from './sdk.js'

/** The prompts of a session, as the stream that the SDK reads for as long as it runs. */
export class PromptStream implements AsyncIterable<SdkUserMessage> {
  readonly #waiting: SdkUserMessage[] = []
  #ended = false
  #wake: () => void = () => {}

  push(message: SdkUserMessage): void {
    this.#waiting.push(message)
    this.#wake()
  }

  end(): void {
    this.#ended = true
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SdkUserMessage, void> {
    while (true) {
      yield* this.#waiting.splice(0)
      if (this.#ended) return
      if (this.#waiting.length === 0) await new Promise<void>((wake) => (this.#wake = wake))
    }
  }
}
