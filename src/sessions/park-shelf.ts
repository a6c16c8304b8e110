import { GatewayError, toError } from '../errors.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Logger } from '../lib/logger.js'
import type { ParkedSessionRecord, SessionStore } from './store.js'

export type ParkingPhase = 'park' | 'wake' | 'adopt' | 'store'
export type OnParkingError = (error: Error, context: { sessionId?: string; phase: ParkingPhase }) => void

/** The store of parked sessions, whose failures are told: to the operator with the cause, to the caller as "come again". */
export class ParkShelf {
  readonly #store: SessionStore
  readonly #onError: OnParkingError | undefined
  readonly #logger: Logger
  /** Records that were just saved and that a wake is about to want, so that it need not read them again. */
  readonly #fresh = new Map<string, ParkedSessionRecord>()
  /** After the record of a session has changed. */
  readonly #onChanged: (record: ParkedSessionRecord) => void

  constructor(
    store: SessionStore,
    options: {
      onError: OnParkingError | undefined
      logger: Logger
      onChanged: (record: ParkedSessionRecord) => void
    },
  ) {
    this.#store = store
    this.#onError = options.onError
    this.#logger = options.logger
    this.#onChanged = options.onChanged
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE */
  async get(id: string): Promise<ParkedSessionRecord | undefined> {
    const fresh = this.#fresh.get(id)
    this.#fresh.delete(id)
    return fresh ?? this.#guarded(id, () => this.#store.get(id))
  }

  /**
   * Saves a record that has changed, to be asked for again at once.
   * @param key of the request that changed it
   * @throws SG_ERR_STORE_UNAVAILABLE
   */
  async saveForWake(record: ParkedSessionRecord, key?: KeptKey): Promise<void> {
    await this.save(record, key)
    this.#fresh.set(record.id, record)
  }

  /** Saves the record of a session that has just been parked. @throws what the store throws */
  add(record: ParkedSessionRecord): Promise<void> {
    this.#fresh.delete(record.id)
    return this.#store.save(record)
  }

  /** Saves a record that has changed. @throws SG_ERR_STORE_UNAVAILABLE */
  async save(record: ParkedSessionRecord, key?: KeptKey): Promise<void> {
    this.#fresh.delete(record.id)
    const { info, executions, permissions } = record
    if (info.parked)
      info.parked = { since: info.parked.since, executions, ...(permissions.length > 0 && { permissions }) }
    info.pendingPermissions = permissions.length
    await this.#guarded(record.id, () => this.#store.save(record, key))
    this.#onChanged(record)
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE */
  delete(id: string): Promise<void> {
    this.#fresh.delete(id)
    return this.#guarded(id, () => this.#store.delete(id))
  }

  /** Every record that can be read; the others are reported. */
  list(): Promise<ParkedSessionRecord[]> {
    return this.#store.list((error) => this.report(error, { phase: 'adopt' }))
  }

  async close(): Promise<void> {
    await this.#store.close?.()
  }

  report(error: unknown, context: { sessionId?: string; phase: ParkingPhase }): void {
    this.#logger.error({ err: toError(error), ...context }, 'parking: something failed')
    try {
      this.#onError?.(toError(error), context)
    } catch (thrown) {
      this.#logger.error({ err: toError(thrown) }, 'parking.onError threw')
    }
  }

  async #guarded<T>(sessionId: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.report(error, { sessionId, phase: 'store' })
      throw new GatewayError('SG_ERR_STORE_UNAVAILABLE', { cause: error, retryAfterS: 5 })
    }
  }
}
