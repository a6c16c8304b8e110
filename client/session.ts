import { type Attachment, type AttachOptions, SessionFollower } from './attachment.js'
import { type CommandOptions, Commands } from './commands.js'
import type { Http } from './http.js'
import type { PermissionMode, ResolvePermissionRequest, WhenBusy } from './types.js'

/** An answer to an approval or a question; `answers`: from the text of each question to the label that was chosen. */
export type Answer = 'allow' | 'deny' | ResolvePermissionRequest | { answers: Record<string, string> }

/** The answer in the words of the wire. */
export const decisionOf = (answer: Answer): ResolvePermissionRequest =>
  typeof answer === 'string'
    ? { behavior: answer }
    : 'answers' in answer
      ? { behavior: 'allow', updatedInput: { answers: answer.answers } }
      : answer

/**
 * One session: what happens in it, and what it is told. Commands resolve once the gateway has carried them out. They go over the socket of
 * an attachment of this object where there is one, and are sent again, under the same id, when the connection was lost before the answer.
 */
export class Session {
  readonly id: string
  readonly #http: Http
  readonly #path: string
  readonly #commands: Commands

  constructor(http: Http, id: string) {
    this.id = id
    this.#http = http
    this.#path = `/sessions/${encodeURIComponent(id)}`
    this.#commands = new Commands(http, this.#path)
  }

  /**
   * Follows the session: its log from `afterSeq`, then what happens. Survives lost connections, restarts of the gateway and blocked
   * sockets; no event comes twice. Ends when the session does; rejects when the gateway refuses, with a GatewayError.
   */
  attach(options: AttachOptions = {}): Attachment {
    const follower = new SessionFollower(this.#http, this.#path, this.#commands, options)
    const { stream } = follower
    return {
      get snapshot() {
        return follower.snapshot
      },
      get connection() {
        return stream.connection
      },
      onConnection: stream.onConnection,
      batches: () => stream.batches(),
      close: () => stream.close(),
      [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator](),
    }
  }

  /** Says something. While a turn is in progress it waits for its turn, unless `whenBusy` says otherwise. */
  send(text: string, { whenBusy, ...options }: CommandOptions & { whenBusy?: WhenBusy } = {}): Promise<void> {
    return this.#commands.run({ type: 'user_message', text, ...(whenBusy && { whenBusy }) }, options)
  }

  /** Answers an approval or a question. The first answer wins: `SG_ERR_PERMISSION_NOT_FOUND` when there was one. */
  answer(requestId: string, answer: Answer, options?: CommandOptions): Promise<void> {
    return this.#commands.run({ type: 'permission_decision', requestId, ...decisionOf(answer) }, options)
  }

  /** Ends the turn that is in progress. */
  interrupt(options?: CommandOptions): Promise<void> {
    return this.#commands.run({ type: 'interrupt' }, options)
  }

  setMode(mode: PermissionMode, options?: CommandOptions): Promise<void> {
    return this.#commands.run({ type: 'set_permission_mode', mode }, options)
  }

  /** Without a model: the default one. */
  setModel(model?: string, options?: CommandOptions): Promise<void> {
    return this.#commands.run({ type: 'set_model', ...(model !== undefined && { model }) }, options)
  }

  /** Ends the session; it stays listed until it is removed. */
  close(options?: CommandOptions): Promise<void> {
    return this.#commands.run({ type: 'close' }, options)
  }
}
