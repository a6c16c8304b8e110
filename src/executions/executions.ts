import type { SubmitExecutionResultResponse } from '../../schemas/executions.js'
import type { ExecutionResult } from '../engines/runner.js'
import { GatewayError, invalidField, toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import { deferred } from '../lib/deferred.js'
import { DueTimes } from '../lib/due-times.js'
import type { Logger } from '../lib/logger.js'

export interface ExecutionsOptions {
  clock: Clock
  logger: Logger
  /** Characters of an id that the routes take. */
  maxIdLength: number
}

/** Whoever has the sessions that results are for. */
export interface ResultTaker {
  /** Hands a result to its session; resolves when it is stored durably. False: the session has ended. */
  deliver(sessionId: string, executionId: string, result: ExecutionResult): Promise<boolean>
  /** Sees to it that a session which a result was stored for goes on; never rejects. */
  wake(sessionId: string): Promise<void>
  /** As `wake`, for a session whose result was stored earlier. */
  hasten(sessionId: string): Promise<void>
}

/** The session of an execution that is not known, and that is known by then unless it is settled. */
type LookUp = (executionId: string) => Promise<string | undefined>

interface Entry {
  readonly sessionId: string
  /** Epoch milliseconds; the watchdog fires then. */
  readonly deadline: number | undefined
  settled: boolean
  /** A result is being stored; resolves when it is, or could not be. */
  settling: Promise<void> | undefined
}

/** How soon a watchdog fires again when a result could not be stored. */
const RETRY_MS = 5_000
const TIMEOUT: ExecutionResult = { status: 'failed', reason: 'timeout', error: 'No result was delivered in time.' }

/** The result of an execution comes to a path that holds its id. @throws SG_ERR_VALIDATION */
function assertInUrl(executionId: unknown, maxLength: number): void {
  const refuse = (message: string) => invalidField('executionId', message)
  if (typeof executionId !== 'string' || executionId === '') throw refuse('must be a string that is not empty.')
  if (executionId.length > maxLength) throw refuse(`must have at most ${maxLength} characters, to fit into a path.`)
  // clients resolve both, in every spelling, and half a character has none
  if (executionId === '.' || executionId === '..' || /\p{Surrogate}/u.test(executionId))
    throw refuse('cannot stand in a path.')
}

/**
 * Every deferred execution, by id: which session waits for it, and whether it was settled. The first result wins, a caller's or the
 * watchdog's; settled ids are remembered for as long as their session exists.
 */
export class Executions {
  readonly #options: ExecutionsOptions
  #sessions: ResultTaker | undefined
  #lookUp: LookUp | undefined
  readonly #entries = new Map<string, Entry>()
  /** Ids by session, for when it is forgotten; most have one. */
  readonly #bySession = new Map<string, string | Set<string>>()
  /** Told of each that has a result, or that nobody waits for any more: whoever is to do its work need not begin. */
  onOver: ((sessionId: string, executionId: string) => void) | undefined
  /** When watchdogs fire: one timer, however many sleep. */
  readonly #due: DueTimes

  constructor(options: ExecutionsOptions) {
    this.#options = options
    this.#due = new DueTimes(options.clock, (fallen) => {
      for (const { id } of fallen) this.#timeOut(id)
    })
  }

  /** Says whose sessions the results are for; nothing is submitted before. @param lookUp absent: all executions are known */
  serve(sessions: ResultTaker, lookUp?: LookUp): void {
    this.#sessions = sessions
    this.#lookUp = lookUp
  }

  /** The session that an execution belongs to, settled or not. */
  async sessionOf(executionId: string): Promise<string | undefined> {
    const known = this.#entries.get(executionId)
    return (known ?? (this.#lookUp && (await this.#lookedUp(executionId))))?.sessionId
  }

  /**
   * Makes an id known and arms its watchdog.
   * @param deadline epoch milliseconds; absent: waits without limit
   * @returns false when this session has the id already, which changes nothing
   * @throws SG_ERR_EXECUTION_EXISTS when another session has it, SG_ERR_VALIDATION when no URL can carry it
   */
  defer(sessionId: string, executionId: string, deadline: number | undefined): boolean {
    assertInUrl(executionId, this.#options.maxIdLength)
    return this.register(sessionId, executionId, deadline)
  }

  /** As `defer`, for an execution that was deferred before. */
  register(sessionId: string, executionId: string, deadline: number | undefined): boolean {
    const known = this.#entries.get(executionId)
    if (known?.sessionId === sessionId) return false
    if (known) throw new GatewayError('SG_ERR_EXECUTION_EXISTS')
    const entry: Entry = { sessionId, deadline, settled: false, settling: undefined }
    this.#entries.set(executionId, entry)
    const ids = this.#bySession.get(sessionId)
    if (ids === undefined) this.#bySession.set(sessionId, executionId)
    else if (typeof ids === 'string') this.#bySession.set(sessionId, new Set([ids, executionId]))
    else ids.add(executionId)
    this.#arm(executionId, entry)
    return true
  }

  /** Makes an id known that was settled before this process began; one that is known stays as it is. */
  remember(sessionId: string, executionId: string): void {
    if (this.#entries.has(executionId)) return
    this.register(sessionId, executionId, undefined)
    this.#entries.get(executionId)!.settled = true
  }

  /**
   * Settles an execution; a duplicate, or one that came after the watchdog, is not applied.
   * @throws SG_ERR_EXECUTION_NOT_FOUND; what the store throws, and then nothing was settled
   */
  async submit(executionId: string, result: ExecutionResult): Promise<SubmitExecutionResultResponse> {
    for (;;) {
      const entry = this.#entries.get(executionId) ?? (this.#lookUp && (await this.#lookedUp(executionId)))
      if (!entry) throw new GatewayError('SG_ERR_EXECUTION_NOT_FOUND')
      const { sessionId, settling } = entry
      if (entry.settled) {
        await this.#sessions!.hasten(sessionId)
        return { applied: false, sessionId }
      }
      if (!settling) return { applied: await this.#settle(executionId, entry, result), sessionId }
      // whoever comes second is told "not applied" only once the first result is safe, and else takes its place
      await settling
    }
  }

  async #lookedUp(executionId: string): Promise<Entry | undefined> {
    const sessionId = await this.#lookUp?.(executionId)
    if (sessionId !== undefined) this.remember(sessionId, executionId)
    return this.#entries.get(executionId)
  }

  async #settle(executionId: string, entry: Entry, result: ExecutionResult): Promise<boolean> {
    const sessions = this.#sessions!
    const { promise, resolve: stored } = deferred()
    // both before the engine goes on: it may settle something itself
    entry.settling = promise
    this.#disarm(executionId, entry)
    try {
      const applied = await sessions.deliver(entry.sessionId, executionId, result)
      entry.settled = true
      if (applied) this.onOver?.(entry.sessionId, executionId)
      stored()
      if (!applied && this.#entries.get(executionId) !== entry) throw new GatewayError('SG_ERR_EXECUTION_NOT_FOUND')
      if (applied) await sessions.wake(entry.sessionId)
      return applied
    } catch (error) {
      if (this.#entries.get(executionId) !== entry) throw new GatewayError('SG_ERR_EXECUTION_NOT_FOUND')
      this.#arm(executionId, entry, RETRY_MS)
      throw error
    } finally {
      entry.settling = undefined
      stored()
    }
  }

  /** While its result is being stored: resolves when it is, or could not be. */
  settling(executionId: string): Promise<void> | undefined {
    return this.#entries.get(executionId)?.settling
  }

  /** Nobody waits for it any more, whoever was told so; one that is not known may be deferred again. */
  giveUp(sessionId: string, executionId: string): void {
    const entry = this.#entries.get(executionId)
    if (entry?.sessionId === sessionId) {
      entry.settled = true
      this.#disarm(executionId, entry)
    }
    this.onOver?.(sessionId, executionId)
  }

  /** Takes an execution that waits as settled, without a result of its own; false when it is, or is about to be. */
  claim(executionId: string): boolean {
    const entry = this.#entries.get(executionId)
    if (!entry || entry.settled || entry.settling) return false
    entry.settled = true
    this.#disarm(executionId, entry)
    return true
  }

  /** Takes a claim back. */
  unclaim(executionId: string): void {
    const entry = this.#entries.get(executionId)
    if (!entry) return
    entry.settled = false
    this.#arm(executionId, entry)
  }

  /** Makes an id unknown here that turned out to be a session's of another node: results are passed on to it. */
  disown(executionId: string): void {
    const entry = this.#entries.get(executionId)
    if (!entry) return
    this.#drop(executionId, entry)
    const ids = this.#bySession.get(entry.sessionId)
    if (ids === executionId) this.#bySession.delete(entry.sessionId)
    else if (ids instanceof Set) ids.delete(executionId)
  }

  /** Forgets a session's executions: a late result finds nothing. */
  forget(sessionId: string): void {
    const ids = this.#bySession.get(sessionId) ?? []
    for (const executionId of typeof ids === 'string' ? [ids] : ids)
      this.#drop(executionId, this.#entries.get(executionId)!)
    this.#bySession.delete(sessionId)
  }

  #drop(executionId: string, entry: Entry): void {
    this.#disarm(executionId, entry)
    this.#entries.delete(executionId)
  }

  /** Stops the watchdogs; what is parked keeps its deadlines in the store. */
  close(): void {
    this.#due.stop()
  }

  #arm(executionId: string, entry: Entry, atLeastMs = 0): void {
    if (entry.deadline === undefined) return
    this.#due.set(executionId, Math.max(entry.deadline, this.#options.clock.now() + atLeastMs))
  }

  /** Most wait without limit: there is no watchdog to look for. */
  #disarm(executionId: string, { deadline }: Entry): void {
    if (deadline !== undefined) this.#due.delete(executionId)
  }

  #timeOut(executionId: string): void {
    this.submit(executionId, TIMEOUT).catch((error) =>
      this.#options.logger.error({ err: toError(error), executionId }, 'a timeout could not be delivered'),
    )
  }
}
