import { CLOSE } from '../../schemas/close-codes.js'
import { toError } from '../errors.js'
import { KeyedLock } from '../lib/keyed-lock.js'
import { persistently } from '../lib/patience.js'
import { within } from '../lib/within.js'
import { declarerOf, keeperOf, type Place } from '../storage/cluster.js'
import { isUnreadable } from '../storage/storage.js'
import type { Archive, ArchiveParts } from './kept/archive.js'
import { isTerminal, type JournaledWhole } from './kept/journal.js'
import { infoOf } from './session-entry.js'
import type { Sharing } from './sharing.js'

/** Sessions that are taken up at once. */
const PAGE = 250
/** Whoever asks an ending process for a session waits that long for the end of its engine. */
const LEAVE_PATIENCE_MS = 2_000

export interface SharedSessionsParts
  extends Pick<
    ArchiveParts,
    'clock' | 'logger' | 'retryAfter' | 'keeping' | 'table' | 'executions' | 'sleep' | 'telling'
  > {
  sharing: Sharing
  archive: Archive
}

/** Sessions that come to this process from others while it runs, and that leave it for others. */
export class SharedSessions {
  readonly #parts: SharedSessionsParts
  /** Sessions that are on their way to whoever asks for them next. */
  readonly #leaving = new Map<string, Promise<void>>()
  /** Those that are being read for somebody here. */
  readonly #coming = new KeyedLock()
  /** Those that leave, of this turn of the event loop. */
  readonly #left: string[] = []
  #releasing: Promise<void> = Promise.resolve()
  /** Of a process that ends: when the engine of each session that was in memory is gone. */
  #atRest: ReadonlyMap<string, Promise<void>> | undefined

  constructor(parts: SharedSessionsParts) {
    this.#parts = parts
    parts.table.onLetGo = (id) => this.#letGo(id)
    parts.table.disconnect = ({ clients }) => clients.disconnectAll(CLOSE.sessionMoved)
    parts.sharing.storage.on('nodes', () => this.#onNodes())
  }

  /** Takes up sessions that are this process's by now, as a start does; resolves when all that can be read are here. Never rejects. */
  async takeUp(ids: readonly string[]): Promise<void> {
    const { table, logger, retryAfter, archive } = this.#parts
    archive.lookForDue()
    for (let at = 0; at < ids.length; at += PAGE) {
      const page = ids.slice(at, at + PAGE).filter((id) => !table.get(id))
      await Promise.all(page.map((id) => persistently(() => this.#takeUpOne(id), { logger, retryAfter })))
    }
    // their own node may be back from before they were taken over
    this.#leaveHome()
  }

  /** @throws what the storage throws but for one that cannot be read */
  async #takeUpOne(id: string): Promise<void> {
    const { keeping, sharing, table } = this.#parts
    if (table.get(id)) return
    try {
      // it may have been left again before that it was taken was told here
      await this.#enterOwn(id, {
        ownerOf: async () => (await sharing.storage.placeOfSession(id))?.owner,
        read: () => keeping.journal.get(id),
      })
    } catch (error) {
      if (!isUnreadable(error)) throw error
      keeping.report(error, { sessionId: id, phase: 'adopt' })
    }
  }

  /** Enters one that is this process's; meanwhile it is not left. */
  #enterOwn(
    id: string,
    { ownerOf, read }: { ownerOf(): Promise<Place['owner']>; read(): Promise<JournaledWhole | undefined> },
  ): Promise<void> {
    const { sharing, table } = this.#parts
    return this.#coming.run(id, async () => {
      await this.#leaving.get(id)
      if ((await ownerOf())?.n !== sharing.storage.n || table.get(id)) return
      const left = await read()
      if (left) await this.#enter(left)
    })
  }

  async #enter(left: JournaledWhole): Promise<void> {
    const { table, archive } = this.#parts
    if (table.get(left.id)) return
    if (isTerminal(left.state.info) && !left.news) archive.enterEnded(left)
    else await archive.takeUp(left)
  }

  /**
   * Somebody asks for a session that has not ended and is not here: it came while that was looked up, or is on its way out again.
   * @throws what the storage throws
   */
  async onMissed({ id }: JournaledWhole): Promise<void> {
    const { sharing, keeping } = this.#parts
    await this.#enterOwn(id, {
      async ownerOf() {
        const place = await sharing.storage.placeOfSession(id)
        return place?.owner ?? (place && (await sharing.storage.claim(id))?.owner)
      },
      read: () => keeping.get(id),
    })
  }

  /**
   * Whether a session that sleeps here had better go on at another node: it has its profile, or this one ends. The run of a job stays with
   * the job.
   */
  isForAnother(id: string): boolean {
    const { table, sharing } = this.#parts
    const { n } = sharing.storage
    const entry = table.get(id)
    if (!entry || entry.session?.live) return false
    if (!this.#atRest && !declarerOf(entry.profile, n, sharing.storage.nodes())) return false
    const { jobId, status } = infoOf(entry)
    return jobId === undefined && (status === 'idle' || status === 'parked')
  }

  /** The process ends: its sessions are left to whoever asks for them. @param atRest when the engine of each is gone */
  leaveAll(atRest: ReadonlyMap<string, Promise<void>>): void {
    this.#atRest = atRest
  }

  /** Leaves a session to the node that asks for it next. @returns false when something is done with it here */
  async leave(id: string): Promise<boolean> {
    const { table, clock, archive } = this.#parts
    const atRest = this.#atRest?.get(id)?.catch(() => {})
    if (atRest) await within(LEAVE_PATIENCE_MS, atRest, { clock })
    // what is being removed is not removed by another one, too
    if (this.#coming.isHeld(id) || archive.isHidden(id)) return false
    if (!table.get(id)) this.#letGo(id)
    else if (!this.isForAnother(id) || !table.leave(id)) return false
    await this.#leaving.get(id)
    return true
  }

  /** Whether another node has it, or it is left to one that is there. */
  async isElsewhere(id: string): Promise<boolean> {
    const { storage, node: name } = this.#parts.sharing
    const place = await storage.placeOfSession(id)
    return place !== undefined && keeperOf(place, { n: storage.n, name }, storage.nodes()) !== undefined
  }

  /** The session that has an execution of that id, whoever has it. */
  async hasExecution(executionId: string): Promise<string | undefined> {
    return (await this.#parts.sharing.storage.placeOfExecution(executionId))?.id
  }

  /** The session of an execution that is not known here, of those that are this process's or nobody's. */
  async sessionOf(executionId: string): Promise<string | undefined> {
    const { storage } = this.#parts.sharing
    const place = await storage.placeOfExecution(executionId)
    return !place?.owner || place.owner.n === storage.n ? place?.id : undefined
  }

  /** Sessions whose engine starts on one node alone, or not here, are left when that is there: their deadlines would wake them here. */
  #onNodes(): void {
    const { table } = this.#parts
    this.#leaveHome()
    // whoever asks a process that ends for one has it
    if (this.#atRest) return
    for (const id of table.ids()) if (this.isForAnother(id)) void this.leave(id)
  }

  #leaveHome(): void {
    const { table, sharing } = this.#parts
    for (const { name, draining } of sharing.storage.nodes()) if (!draining) table.leaveTo(name)
  }

  #letGo(id: string): void {
    const { executions, sleep, telling } = this.#parts
    sleep.forget(id)
    executions.forget(id)
    telling.onRemoved(id)
    this.#left.push(id)
    const leaving = Promise.resolve()
      .then(() => this.#release())
      .finally(() => this.#leaving.delete(id))
    this.#leaving.set(id, leaving)
  }

  /** All of one turn at once. */
  #release(): Promise<void> {
    const { sharing, logger } = this.#parts
    const ids = this.#left.splice(0)
    if (ids.length === 0) return this.#releasing
    this.#releasing = sharing.storage.release(ids).catch((error) => {
      // it stays this process's, which finds it again when somebody asks
      logger.error({ sessionIds: ids, err: toError(error) }, 'sessions could not be left to their own node')
    })
    return this.#releasing
  }
}
