import type { DeferredExecution, ExecutionResult } from '../../engines/runner.js'
import { GatewayError, hasCode, invalidField, toError } from '../../errors.js'
import { onceAborted } from '../../lib/aborted.js'
import { interruptedResult, WITHDRAWN } from '../asks/deferred-executions.js'
import type { SessionState } from '../session-state.js'
import type { RunnerLink } from './runner-link.js'

const isAnothers = (error: unknown): error is GatewayError => hasCode(error, 'SG_ERR_EXECUTION_EXISTS')

/** Takes the executions that an engine defers, and has them dispatched once they are written down. */
export class Deferring {
  readonly #session: SessionState

  constructor(session: SessionState) {
    this.#session = session
  }

  async take(link: RunnerLink, execution: DeferredExecution, takenBack?: AbortSignal): Promise<void> {
    const { id, world } = this.#session
    const { executionId, toolName, expiresAt } = execution
    if (typeof toolName !== 'string') throw invalidField('toolName', 'must be a string.')
    if (expiresAt !== undefined && !Number.isFinite(expiresAt))
      throw invalidField('expiresAt', 'must be a time, in milliseconds.')
    // one that was parked is deferred again by the next engine, which may give it up, too
    if (world.executions.defer(id, executionId, expiresAt)) await this.#dispatch(link, execution, takenBack)
    else if (!this.#session.executions.knows(executionId)) await this.#takeAgain(execution)
    if (takenBack) onceAborted(takenBack, () => this.giveUp(executionId, WITHDRAWN))
  }

  giveUp(executionId: string, result: ExecutionResult): void {
    const { id: sessionId, world } = this.#session
    world.executions
      .submit(executionId, result)
      .catch((error) => world.logger.error({ sessionId, err: toError(error) }, 'an execution goes on waiting'))
  }

  /** Of an execution dispatched for an engine whose start failed, which nobody waited for since. @throws SG_ERR_STORE_UNAVAILABLE */
  async #takeAgain(execution: DeferredExecution): Promise<void> {
    const session = this.#session
    session.executions.add(execution, session.world.clock.now())
    session.touch()
    await session.durable()
  }

  /** @throws when it could not be written down, or is another session's; nothing waits then, unless its engine was let go meanwhile */
  async #dispatch(link: RunnerLink, execution: DeferredExecution, takenBack?: AbortSignal): Promise<void> {
    const session = this.#session
    const { executions, world } = session
    const { executionId } = execution
    session.append(executions.add(execution, world.clock.now()))
    const dispatch = world.dispatcher.plan(session.id, execution)
    session.keepAlong(dispatch)
    try {
      await session.durable()
      const first = await world.sessionOf(executionId)
      if (first !== undefined && first !== session.id) throw new GatewayError('SG_ERR_EXECUTION_EXISTS')
    } catch (error) {
      // the engine that goes on with the turn finds it deferred
      if (!session.hears(link) && !session.ended && !isAnothers(error))
        session.whenDurable(() => {
          if (executions.has(executionId)) return dispatch.send()
          dispatch.withdraw()
          // the engine did not start: for the next one it is dispatched when that defers it
          if (!executions.knows(executionId)) world.executions.disown(executionId)
        })
      else {
        dispatch.withdraw()
        this.#takeBack(link, executionId, error)
      }
      throw error
    }
    // once the engine knows that it was taken, so that a result may come from inside the dispatch
    setImmediate(() => {
      // an engine that has ended its turn since, and a job's session with it, wants the work done all the same
      const isLeft = session.life.is === 'ended' && session.life.inTurn === false
      const isCutOff = session.writer?.removed || (!isLeft && !executions.has(executionId))
      // an agent that lost its patience with the storage may have called again
      if (isCutOff || takenBack?.aborted) dispatch.withdraw()
      else dispatch.send()
    })
  }

  /** The engine is told that it was not taken, so that nobody waits for it. */
  #takeBack(link: RunnerLink, executionId: string, error: unknown): void {
    const session = this.#session
    const { executions, world } = session
    if (!session.hears(link) || !world.executions.claim(executionId)) return
    const why = interruptedResult(isAnothers(error) ? error.message : 'It could not be written down.')
    const told = executions.settle(executionId, why, world.clock.now())
    if (isAnothers(error)) {
      executions.disown(executionId)
      world.executions.disown(executionId)
    }
    // one that goes on from an earlier snapshot defers it again, and is told by this
    else session.midTurn?.results.push({ executionId, result: why, told: true })
    session.append(told)
  }
}
