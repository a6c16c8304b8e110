import type { ServerResponse } from 'node:http'
import { Passing } from '../src/lib/passing.js'

/** Requests that are being answered. */
export class UnderWay {
  readonly #responses = new Passing<ServerResponse>()

  add(response: ServerResponse): void {
    response.once('close', this.#responses.add(response))
  }

  /** Resolves when those are over whose answer has not begun by now: that of a stream ends with what the gateway tells it. */
  readonly answered = async (): Promise<void> => {
    const unanswered = [...this.#responses].filter(({ headersSent }) => !headersSent)
    // a host's server would wait for the next request on that connection for as long as Fastify keeps it
    for (const response of unanswered) response.shouldKeepAlive = false
    await Promise.all(unanswered.map((response) => new Promise((resolve) => response.once('close', resolve))))
  }
}
