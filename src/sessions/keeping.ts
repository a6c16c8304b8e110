import { GatewayError, toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import type { PlannedNotification } from '../notifications/planned.js'
import type { EventJournal } from './journal.js'
import type { JournalWriterParts } from './journal-writer.js'
import type { Session } from './session.js'

/** The journal as a registry uses it: what it refuses is told to the operator with the cause, to the caller as "come again". */
export class Keeping implements Omit<JournalWriterParts, 'clock'> {
  readonly journal: EventJournal
  readonly retryAfter: Clock['after']
  readonly backlog = { bytes: 0 }
  readonly #logger: Logger
  /** Sessions whose last write failed. */
  readonly #unwritable = new Set<string>()

  readonly oneWrite: boolean

  constructor(
    journal: EventJournal,
    { logger, retryAfter, oneWrite = false }: { logger: Logger; retryAfter: Clock['after']; oneWrite?: boolean },
  ) {
    this.journal = journal
    this.retryAfter = retryAfter
    this.oneWrite = oneWrite
    this.#logger = logger
  }

  /** Whether what happens to sessions can be written down. */
  get isWritable(): boolean {
    return this.#unwritable.size === 0
  }

  readonly onFault = (sessionId: string, error: unknown): void => {
    if (error === undefined) {
      this.#unwritable.delete(sessionId)
      return
    }
    this.#unwritable.add(sessionId)
    this.#logger.error({ sessionId, err: toError(error) }, 'a session cannot be written down; it is tried again')
  }

  /**
   * Removes a session, in memory or not; durable when it resolves.
   * @param ending what is to be told of its end
   * @throws SG_ERR_STORE_UNAVAILABLE; the session stays as it is then
   */
  async erase(id: string, session: Session | undefined, ending?: PlannedNotification): Promise<void> {
    try {
      await (session ? session.erase(ending) : this.journal.remove(id))
    } catch (error) {
      this.#logger.error({ sessionId: id, err: toError(error) }, 'a session could not be removed from the journal')
      throw new GatewayError('SG_ERR_STORE_UNAVAILABLE', { cause: error, retryAfterS: 5 })
    }
    this.#unwritable.delete(id)
  }
}
