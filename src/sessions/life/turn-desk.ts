import type { SessionEventOf } from '../../../schemas/events.js'
import { GatewayError } from '../../errors.js'
import { caught } from '../../lib/caught.js'
import { graceUntil } from '../../lib/grace.js'
import { newId } from '../../lib/new-id.js'
import { wellFormed } from '../../lib/well-formed.js'
import { within } from '../../lib/within.js'
import { interruptedResult } from '../asks/deferred-executions.js'
import type { QueuedMessage } from '../kept/journal.js'
import { newsOf } from '../kept/news.js'
import { endInterrupted } from '../session-facts.js'
import type { SessionState } from '../session-state.js'
import type { RunnerLink } from './runner-link.js'

const MAX_WAITING = 100
/** How long an engine may take to end its turn when the process ends. */
const TURN_END_GRACE_MS = 5_000
const INTERRUPTED = 'The turn was interrupted.'
const SHUT_DOWN = 'The gateway was shut down.'
const HELD_BACK =
  'The storage takes nothing, and no more of what the agent says can be held back. Send the message again when /readyz says ready.'

/** How the turns of a session begin and end. */
export class TurnDesk {
  readonly #session: SessionState
  /** Called when the turn in progress is over. */
  onOver: (() => void) | undefined
  /** Called when what the session waited for outside of a turn is over: its engine has all of it, or a turn begins. */
  onAfterWait: (() => void) | undefined
  /** How much was held back for the storage when the turn was ended for it. */
  #heldBack: number | undefined
  /** Why the turn in progress is to end, where that is nobody's wish. */
  because: string | undefined
  /** Whether the turn is ended for the end of the process. */
  #shutsDown = false
  /** The message that the session was created with, as long as no engine was given it. Its turn has begun with the session. */
  #opening: { message: QueuedMessage; seq: number } | undefined

  constructor(session: SessionState) {
    this.#session = session
  }

  /**
   * Accepts a message for the agent and begins its turn when the earlier ones are over.
   * @throws SG_ERR_TOO_MANY when a hundred wait already
   */
  say(
    text: string,
    commandId: string | undefined,
    options: { first?: boolean; by?: string | undefined } = {},
  ): QueuedMessage {
    const session = this.#session
    const { first = false, by } = options
    const { queued = [] } = session
    if (queued.length >= MAX_WAITING)
      throw new GatewayError('SG_ERR_TOO_MANY', { detail: 'Too many messages wait for this session.', retryAfterS: 1 })
    const asked = { ...(commandId !== undefined && { commandId }), ...(by !== undefined && { askedBy: by }) }
    const message: QueuedMessage = { text, ...asked }
    session.queued = first ? [message, ...queued] : [...queued, message]
    session.rememberCommand(commandId)
    session.facts.onPrompt(text)
    // what was said before the message stands before it; an engine that cannot say it has it told later, or never
    if (!session.inTurn)
      caught(
        () => session.runner?.tellRest?.(),
        () => {},
      )
    session.append({
      type: 'user_message',
      message: { role: 'user', content: text },
      uuid: newId(),
      parentToolUseId: null,
      ...(commandId !== undefined && { commandId }),
    })
    session.showStatus()
    this.next()
    return message
  }

  /** Begins a session with its first turn: the engine that is being built for it is given the message as soon as it takes any. */
  open(text: string): void {
    this.say(text, undefined)
    this.#opening = { message: this.#begin()!, seq: this.#session.log.lastSeq }
  }

  /** The message whose turn begins now, if one waits and none is in progress. */
  #begin(): QueuedMessage | undefined {
    const session = this.#session
    if (session.inTurn || !session.queued) return undefined
    if (session.midTurn) this.onAfterWait?.()
    const [message, ...others] = session.queued
    session.queued = others.length > 0 ? others : undefined
    session.inTurn = true
    session.turnsBegun++
    session.askedBy = message!.askedBy ?? session.createdBy
    return message
  }

  /** Begins the turn of the message that waits, when there is one and an engine to take it. */
  next(): void {
    const session = this.#session
    const { link, log } = session
    const opening = this.#isReady ? this.#opening : undefined
    const message = this.#isReady ? (opening?.message ?? this.#begin()) : undefined
    if (!message || !link) {
      this.lookWhetherTaken()
      return
    }
    this.#opening = undefined
    link.handing = message
    if (!opening) session.touch()
    session.showStatus()
    if (opening && opening.seq <= log.visibleSeq) this.#handOver(link, message)
    else
      session.whenDurable(() => {
        if (link.handing === message && session.hears(link)) this.#handOver(link, message)
      })
  }

  /** No end of a turn tells that an engine has all that the session waited for outside of one; no start is to bring it again then. */
  lookWhetherTaken(): void {
    const session = this.#session
    const isOutside = () => session.midTurn !== undefined && !session.inTurn && session.serving
    const look = () => {
      const { executions, permissions, link } = session
      const isAwaited = executions.size + permissions.size + permissions.carried.length > 0 || permissions.handing
      if (isOutside() && !isAwaited && !link?.isAtWork) this.onAfterWait?.()
    }
    // a turn later: what the engine does about it at once belongs to that
    if (isOutside()) setImmediate(look)
  }

  /** Whether there is an engine that takes messages. */
  get #isReady(): boolean {
    return this.#session.life.is === 'live' && this.#provenanceKnown
  }

  /** Whether the engine was given the message of a turn that is in progress. */
  get isAtWork(): boolean {
    return this.#session.inTurn && !this.#opening
  }

  /** Whether its turn is that of a message which the engine was not given yet. */
  get isUnbegun(): boolean {
    return this.#session.link?.handing !== undefined || this.#opening !== undefined
  }

  #handOver(link: RunnerLink, { text, commandId }: QueuedMessage): void {
    const { permissions, executions, world } = this.#session
    link.handing = undefined
    link.begin()
    caught(
      () => link.runner.send(wellFormed(text), commandId === undefined ? undefined : { commandId }),
      ({ message }) => this.#session.hears(link) && this.#session.fail(message, 'SG_ERR_ENGINE_FAILED'),
    )
    // what it asked for earlier may have waited for the message with its parking
    if (permissions.size + executions.size > 0) world.sleep.consider(this.#session)
  }

  /** With `requireApiKey` no prompt reaches an engine before it said whose credentials it uses. */
  get #provenanceKnown(): boolean {
    const { world, facts } = this.#session
    return !world.requireApiKey || facts.apiKeySource !== undefined
  }

  /**
   * Ends the turn in progress; what it waited for elsewhere stays as it is.
   * @param message why, for what waits for an answer
   * @param options.next also that of the message that waits for an engine to begin with
   */
  async interrupt(message = this.because ?? INTERRUPTED, { next = false } = {}): Promise<void> {
    const { link } = this.#session
    this.denyWaits(message)
    if (this.isUnbegun || (next && !this.#isReady && this.#begin())) await this.#endUnbegun()
    else if (this.isAtWork || link?.isAtWork) await this.#interruptEngine(link)
  }

  /** A turn that was parked goes on once more when its process ends before it does: that engine is interrupted, too. */
  async #interruptEngine(link: RunnerLink | undefined): Promise<void> {
    const session = this.#session
    const { world, id, writer, midTurn } = session
    link?.end()
    if (!midTurn || midTurn.interrupted || !session.inTurn) return link?.runner.interrupt()
    midTurn.interrupted = true
    session.touch()
    try {
      await link?.runner.interrupt()
    } catch (error) {
      if (link && session.hears(link)) delete midTurn.interrupted
      session.touch()
      throw error
    }
    if (session.midTurn !== midTurn || !session.inTurn) return
    const kept = writer ? session.durable() : world.keeping.deposit(id, [newsOf({ type: 'interrupt' })])
    await kept.catch(() => {})
  }

  /** Whoever is asked for the turn in progress need not answer any more. */
  denyWaits(message = INTERRUPTED): void {
    const { permissions, bridge, midTurn } = this.#session
    const carried = permissions.denyAll(message)
    // an engine that takes its place after a crash asks again, too
    midTurn?.decisions.push(...carried)
    bridge.cancelAll('interrupted', INTERRUPTED)
  }

  /**
   * Ends the turn in progress, for the end of the process; its engine has a little time for it.
   * @param endsAt as `Sleep.sleepNow`
   */
  async endSoon(endsAt: number): Promise<void> {
    const session = this.#session
    const { clock } = session.world
    if (this.#putBack()) return
    const over = new Promise<void>((resolve) => {
      this.onOver = resolve
    })
    this.#shutsDown = true
    const ending = this.interrupt(SHUT_DOWN).then(
      () => (session.inTurn ? over : undefined),
      () => {},
    )
    await within(graceUntil(endsAt, TURN_END_GRACE_MS, clock), Promise.race([over, ending]), { clock })
  }

  /**
   * The engine is gone before it has ended its turn. Who ends this process may have ended it, too, as a service manager does: such a turn
   * is cut off as any other, and its session goes on with the next process.
   * @returns whether the turn was being ended for the end of the process
   */
  endWithoutEngine(): boolean {
    if (this.#shutsDown) this.onOver?.()
    return this.#shutsDown
  }

  /**
   * A message that the engine was not given yet waits for the one of the next process, as those behind it do. The run of a job is done
   * again as a whole.
   */
  #putBack(): boolean {
    const session = this.#session
    const { link, queued = [], jobId } = session
    if (!link?.handing || jobId !== undefined) return false
    session.queued = [link.handing, ...queued]
    link.handing = undefined
    session.inTurn = false
    session.touch()
    return true
  }

  /** The engine was not given the message yet, so that there is nothing for it to tell; nor is it given that after a crash. */
  async #endUnbegun(): Promise<void> {
    const session = this.#session
    if (session.link) session.link.handing = undefined
    this.#opening = undefined
    session.inTurn = false
    session.append(this.endOf(endInterrupted(session.facts, INTERRUPTED, false)))
    session.showStatus()
    setImmediate(() => this.next())
    await session.durable().catch(() => {})
  }

  /** The end of a turn as it is told: one that was ended for the storage's sake, for the end of the process or for a limit, says so. */
  endOf(event: SessionEventOf<'turn_completed'>): SessionEventOf<'turn_completed'> {
    const why = this.#shutsDown ? SHUT_DOWN : this.because
    const reason = this.#heldBack === undefined ? event.subtype !== 'success' && why : HELD_BACK
    this.because = undefined
    if (!reason) return event
    this.#heldBack = undefined
    return { ...event, subtype: 'interrupted', isError: true, errors: [...(event.errors ?? []), reason] }
  }

  /** What cannot be kept must not go on: the turn ends, and an engine that goes on all the same ends its session. */
  onBacklog(bytes: number): void {
    const session = this.#session
    if (session.ended) return
    if (this.#heldBack === undefined) {
      this.#heldBack = bytes
      session.world.logger.error({ sessionId: session.id, bytes }, 'a turn is ended: what is said in it cannot be kept')
      // not inside the event that was one too many
      if (this.isAtWork) setImmediate(() => this.interrupt(HELD_BACK).catch(() => {}))
      else
        session.whenDurable(() => {
          this.#heldBack = undefined
        })
    } else if (bytes > 2 * this.#heldBack) session.fail(HELD_BACK, 'SG_ERR_STORE_UNAVAILABLE')
  }

  /** Tells the answers and the results that came in while there was no engine, each once. */
  tellTakenIn(): void {
    const { midTurn, permissions, executions, world } = this.#session
    permissions.tellCarried()
    for (const one of midTurn?.results ?? []) {
      if (one.told) continue
      one.told = true
      this.#session.append(executions.settle(one.executionId, one.result, world.clock.now()))
    }
  }

  /** Tells what a session without an engine cannot go on with: a turn, questions, executions. */
  cutOff(message: string): void {
    const session = this.#session
    if (session.ended) return
    this.giveUpWaits(message)
    if (session.inTurn) {
      this.#opening = undefined
      session.inTurn = false
      session.append(endInterrupted(session.facts, message, true))
    }
    session.showStatus()
  }

  /** As `denyWaits`, of what no engine waits for any more. */
  giveUpWaits(message: string): void {
    const { executions, permissions, bridge } = this.#session
    permissions.denyAll(message)
    permissions.forgetCarried()
    for (const { executionId } of executions.list()) this.#giveUp(executionId, executions.waitOf(executionId), message)
    bridge.cancelAll('withdrawn', message)
  }

  /** What is being settled right now is told by its own result, unless that cannot be kept. */
  #giveUp(executionId: string, wait: object | undefined, message: string): void {
    const session = this.#session
    const { executions, world } = session
    const settling = world.executions.settling(executionId)
    if (settling)
      void settling.then(() => {
        if (session.ended || executions.waitOf(executionId) !== wait) return
        this.#giveUp(executionId, wait, message)
        session.showStatus()
      })
    else {
      world.executions.giveUp(session.id, executionId)
      session.append(executions.settle(executionId, interruptedResult(message), world.clock.now()))
    }
  }
}
