import type { SessionClosedReason, SessionEventOf } from '../../schemas/events.js'
import { type ErrorCode, toError } from '../errors.js'
import { newId } from '../lib/clock.js'
import type { PlannedNotification } from '../notifications/planned.js'
import type { QueuedMessage } from './life/turns.js'
import { interruptedTurn } from './session-facts.js'
import { SessionState } from './session-state.js'

const REMEMBERED_MESSAGES = 100

/** How turns begin and end, and how the session does. */
export abstract class SessionTurns extends SessionState {
  /** A message whose turn has begun and that the engine is not given before that is durable. */
  protected handing: QueuedMessage | undefined

  /** Once, when the session became terminal. */
  protected abstract onEnded(): void

  /** Accepts a message for the agent and begins its turn when the earlier ones are over. */
  say(text: string, commandId: string | undefined, options: { first?: boolean; by?: string | undefined } = {}): void {
    const { first = false, by } = options
    const asked = { ...(commandId !== undefined && { commandId }), ...(by !== undefined && { askedBy: by }) }
    this.turns.add({ text, ...asked }, first)
    if (commandId !== undefined) this.messageIds = [...(this.messageIds ?? []), commandId].slice(-REMEMBERED_MESSAGES)
    this.facts.onPrompt(text)
    this.append({
      type: 'user_message',
      message: { role: 'user', content: text },
      uuid: newId(),
      parentToolUseId: null,
      ...(commandId !== undefined && { commandId }),
    })
    this.showStatus()
    this.nextTurn()
  }

  /** Ends the turn in progress; what it waited for elsewhere stays as it is. */
  async endTurn(): Promise<void> {
    this.permissions.denyAll('Interrupted by the user.')
    this.bridge.cancelAll('interrupted', 'The turn was interrupted.')
    if (this.handing) this.#endUnbegun()
    else if (this.turns.active) await this.link?.runner.interrupt()
  }

  /** The engine was not given the message yet, so that there is nothing for it to tell. */
  #endUnbegun(): void {
    this.handing = undefined
    this.turns.complete()
    this.append(interruptedTurn(this.facts, 'The turn was interrupted.'))
    this.showStatus()
    setImmediate(() => this.nextTurn())
  }

  protected nextTurn(): void {
    const isReady = this.started && this.serving && this.#provenanceKnown
    const message = isReady ? this.turns.begin() : undefined
    if (!message) return
    const { link } = this
    this.handing = message
    this.askedBy = message.askedBy ?? this.createdBy
    this.touch()
    this.showStatus()
    this.whenDurable(() => {
      if (this.handing === message && link && this.hears(link)) this.#handOver(message)
    })
  }

  #handOver({ text, commandId }: QueuedMessage): void {
    this.handing = undefined
    try {
      this.link?.runner.send(text, commandId === undefined ? undefined : { commandId })
    } catch (error) {
      this.fail(toError(error).message, 'SG_ERR_ENGINE_FAILED')
    }
  }

  /** With `requireApiKey` no prompt reaches an engine before it said whose credentials it uses. */
  get #provenanceKnown(): boolean {
    return !this.world.requireApiKey || this.facts.apiKeySource !== undefined
  }

  /** Ends the session as failed. */
  fail(message: string, code?: ErrorCode): void {
    if (this.ended) return
    this.facts.statusDetail = message
    this.#finish('failed', 'error', { type: 'session_error', message, ...(code && { code }) })
  }

  /** Ends the session unless it has ended; resolves when its runner is gone or was given up on. */
  end(reason: SessionClosedReason): Promise<void> {
    this.#finish(reason === 'error' ? 'failed' : 'closed', reason)
    return this.engineGone ?? Promise.resolve()
  }

  /** The number of its last event, when that was told ahead of it. */
  closingSeq: number | undefined
  /** What was told of that ahead. */
  ending: PlannedNotification | undefined

  /** @param told what is said before everything else that follows from the end */
  #finish(as: 'failed' | 'closed', reason: SessionClosedReason, told?: SessionEventOf<'session_error'>): void {
    if (this.ended) return
    const { link } = this
    this.become({ is: 'ended', as })
    if (this.writer) this.midTurn = undefined
    this.turns.clear()
    if (told) this.append(told)
    this.permissions.denyAll('The session ended.')
    this.bridge.close()
    const ts = this.world.clock.now()
    this.showStatus(ts)
    if (this.closingSeq !== undefined) this.log.skipTo(this.closingSeq - 1)
    this.append({ type: 'session_closed', reason }, ts)
    if (link) this.engineGone = link.close(this.world, this.id)
    this.onEnded()
  }
}
