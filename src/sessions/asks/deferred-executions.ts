import type { SessionEventBody, SessionEventOf } from '../../../schemas/events.js'
import type { PendingExecution } from '../../../schemas/executions.js'
import type { ExecutionResult } from '../../engines/runner.js'
import { LazyMap } from '../../lib/lazy-map.js'
import type { CarriedResult } from '../kept/journal.js'

/** What an execution comes to when its turn is cut off. */
export const interruptedResult = (error: string): ExecutionResult => ({
  status: 'failed',
  reason: 'interrupted',
  error,
})
export const INTERRUPTED = interruptedResult('The turn was interrupted.')
export const WITHDRAWN: ExecutionResult = {
  status: 'failed',
  reason: 'withdrawn',
  error: 'The agent does not wait for the result any more.',
}
const SESSION_ENDED: ExecutionResult = {
  status: 'failed',
  reason: 'closed',
  error: 'The session has ended.',
}

/** The deferred executions of one session: what it waits for, and what was settled in its life. */
export class DeferredExecutions {
  readonly #pending = new LazyMap<string, PendingExecution & { since: number }>()
  /** Since when those were waited for whose results are told later. */
  #takenOff: Map<string, number> | undefined
  #settled: Set<string> | undefined
  /** Deferred by an engine that is gone, whose turn goes on from before that. */
  #lost: string[] | undefined

  get size(): number {
    return this.#pending.size
  }

  list(): PendingExecution[] {
    return [...this.#pending.values()].map(({ since: _since, ...execution }) => execution)
  }

  has(executionId: string): boolean {
    return this.#pending.has(executionId)
  }

  /** What stands on the list for it, another thing each time that it is put there. */
  waitOf(executionId: string): object | undefined {
    return this.#pending.get(executionId)
  }

  /** Whether an execution is on the list, or was taken off it for its result. */
  knows(executionId: string): boolean {
    const isOff = this.#takenOff?.has(executionId) || this.isSettled(executionId)
    return isOff || this.#pending.has(executionId)
  }

  isSettled(executionId: string): boolean {
    return this.#settled?.has(executionId) ?? false
  }

  get settled(): string[] {
    return [...(this.#settled ?? [])]
  }

  /** Puts an execution on the list; the event that tells it was dispatched. */
  add({ executionId, toolName, expiresAt }: PendingExecution, now: number): SessionEventBody {
    const pending = { executionId, toolName, ...(expiresAt !== undefined && { expiresAt }) }
    this.#pending.set(executionId, { ...pending, since: now })
    return { type: 'execution_dispatched', ...pending, backend: 'remote', deferred: true }
  }

  /** Puts one on the list that an earlier process left. @param isKnown false: the engine that goes on does not know of it */
  restore(execution: PendingExecution, at: number, isKnown: boolean): void {
    if (isKnown) this.add(execution, at)
    else this.#lost = [...(this.#lost ?? []), execution.executionId]
  }

  /** Events that tell of what the engine does not know of that it failed, but for what came in all the same. It may defer the same id again. */
  endLost(error: string, came: readonly CarriedResult[]): SessionEventOf<'execution_failed'>[] {
    const lost = this.#lost ?? []
    this.#lost = undefined
    return lost
      .filter((executionId) => !came.some((one) => one.executionId === executionId))
      .map((executionId) => ({ type: 'execution_failed', executionId, reason: 'interrupted', error }))
  }

  /** Leaves only those that are listed, by their ids. */
  retain(ids: ReadonlySet<string>): void {
    for (const executionId of this.#pending.keys()) if (!ids.has(executionId)) this.#pending.delete(executionId)
  }

  /** Takes an execution off the list whose result is told later. */
  takeOff(executionId: string): void {
    const pending = this.#pending.get(executionId)
    if (!pending) return
    this.#takenOff ??= new Map()
    this.#takenOff.set(executionId, pending.since)
    this.#pending.delete(executionId)
  }

  remember(settled: readonly string[]): void {
    for (const executionId of settled) this.#settle(executionId)
  }

  #settle(executionId: string): void {
    this.#settled ??= new Set()
    this.#settled.add(executionId)
  }

  /** Forgets one that turned out to be another session's: its results are that one's. */
  disown(executionId: string): void {
    this.#settled?.delete(executionId)
  }

  /** Takes an execution off the list; the event that tells its result. */
  settle(executionId: string, result: ExecutionResult, now: number): SessionEventBody {
    const since = this.#pending.get(executionId)?.since ?? this.#takenOff?.get(executionId)
    this.#pending.delete(executionId)
    this.#takenOff?.delete(executionId)
    this.#settle(executionId)
    // a clock may have been set back
    const durationMs = since === undefined ? undefined : Math.max(0, now - since)
    const rest = { ...(result.logs && { logs: result.logs }), ...(durationMs !== undefined && { durationMs }) }
    return result.status === 'ok'
      ? { type: 'execution_result', executionId, output: result.output, ...rest }
      : { type: 'execution_failed', executionId, reason: result.reason, error: result.error, ...rest }
  }

  /**
   * The session ends: events that tell what came in and was not told, and of the rest that nobody waits for it.
   * @param results that came in
   */
  end(results: readonly CarriedResult[], now: number): SessionEventBody[] {
    const untold = results.filter(({ told }) => !told)
    const cameIn = untold.map(({ executionId, result }) => this.settle(executionId, result, now))
    return [...cameIn, ...this.list().map(({ executionId }) => this.settle(executionId, SESSION_ENDED, now))]
  }
}
