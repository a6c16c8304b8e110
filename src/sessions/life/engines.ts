import type { Runner } from '../../engines/runner.js'
import type { Executions } from '../../executions/executions.js'
import { caught } from '../../lib/caught.js'
import type { Logger } from '../../lib/logger.js'
import type { SessionTable } from '../session-table.js'
import type { Sleep } from './sleep.js'

interface EnginesParts {
  table: SessionTable
  sleep: Sleep
  executions: Executions
  logger: Logger
}

/** The engines of all sessions at once, and the sessions with them, of a node that may not go on. */
export class Engines {
  readonly #parts: EnginesParts

  constructor(parts: EnginesParts) {
    this.#parts = parts
  }

  /** Holds them up, as far as they can be. */
  pause(): void {
    this.#each((runner) => runner.pause?.())
  }

  resume(): void {
    this.#each((runner) => runner.resume?.())
  }

  /** Lets go of every session without a word and without a write: they are other nodes'. Their engines are ended. */
  async abandon(): Promise<void> {
    const { table, sleep, executions } = this.#parts
    const gone = table.all().map((session) => session.abandon())
    for (const id of table.ids()) {
      sleep.forget(id)
      executions.forget(id)
      table.remove(id)
    }
    await Promise.all(gone)
  }

  /** One that fails keeps no other from it. */
  #each(what: (runner: Runner) => unknown): void {
    const { table, logger } = this.#parts
    for (const { id, runner } of table.all())
      caught(
        () => runner && what(runner),
        (err) => logger.error({ sessionId: id, err }, 'an engine could not be held up, or let go on'),
      )
  }
}
