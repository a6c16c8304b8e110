import { Listeners } from '../../lib/listeners.js'
import type { EndedStatus } from '../../sessions/kept/journal.js'
import type { ClusterEvents, ClusterNode, ClusterStorage, NodeAnnouncement, Place } from '../cluster.js'
import type { OpenDatabase } from '../sql/storage.js'
import { notOpen } from '../sql/storage.js'
import type { StorageError } from '../storage.js'
import { carriedFiles } from './carried.js'
import { PostgresDatabase } from './database.js'
import type { LinkOptions } from './link.js'
import { Member } from './node.js'
import type { CallPostgres, PlaceRow } from './operations.js'
import type { DirectOptions } from './ways.js'

/** A node that leaves is taken over before a claim is decided: more often than that nobody leaves at once. */
const MOST_TRIES = 5

/** A schema as several processes share it. */
export class PostgresCluster implements ClusterStorage {
  readonly #place: string
  readonly #onUnreachable: (error: StorageError) => void
  readonly #listeners = new Listeners<ClusterEvents>((error) => process.emitWarning(error))
  #announced: { node: NodeAnnouncement; leaseMs: number } | undefined
  #member: Member | undefined
  #database: PostgresDatabase | undefined

  constructor(place: string, onUnreachable: (error: StorageError) => void) {
    this.#place = place
    this.#onUnreachable = onUnreachable
  }

  announce(node: NodeAnnouncement, leaseMs: number): void {
    this.#announced = { node, leaseMs }
  }

  get isAnnounced(): boolean {
    return this.#announced !== undefined
  }

  get n(): number {
    return this.#member?.n ?? 0
  }

  get state(): 'serving' | 'frozen' | 'out' {
    // one that has joined and whose database is not open yet may be asked for nothing
    return (this.#database && this.#member?.state) ?? 'out'
  }

  nodes(): readonly ClusterNode[] {
    return this.#member?.nodes ?? []
  }

  on<E extends keyof ClusterEvents & string>(event: E, listener: (payload: ClusterEvents[E]) => void): () => void {
    return this.#listeners.on(event, listener)
  }

  async drain(): Promise<void> {
    if (!this.#member) throw notOpen(this.#place)
    await this.#member.drain()
  }

  async placeOfSession(id: string): Promise<Place | undefined> {
    return placeOf(await this.call('cluster.placeOfSession', id))
  }

  async placeOfExecution(executionId: string): Promise<Place | undefined> {
    return placeOf(await this.call('cluster.placeOfExecution', executionId))
  }

  async placeOfJob(id: string): Promise<Place | undefined> {
    return placeOf(await this.call('cluster.placeOfJob', id))
  }

  async claim(id: string): Promise<Place | undefined> {
    for (let tries = 1; ; tries++) {
      const { place, hasLeft } = await this.call('cluster.claim', id)
      if (!hasLeft || tries === MOST_TRIES) return placeOf(place)
      await this.#member?.takeLeft()
    }
  }

  async release(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    await this.call('cluster.release', ids)
    this.#member?.tellLeft()
  }

  nudge(): void {
    this.#member?.nudge()
  }

  readonly call: CallPostgres = (name, ...args) =>
    this.#database ? this.#database.call(name, ...args) : Promise.reject(notOpen(this.#place))

  readonly carried = carriedFiles(this.call)

  /** Joins. @param direct the connection that nothing may come between @throws StorageError */
  async open(options: LinkOptions, direct: DirectOptions): Promise<OpenDatabase> {
    const { node, leaseMs } = this.#announced!
    const member = await Member.join(direct, node, leaseMs, this.#listeners, {
      onTaken: ({ sessionIds }) => this.#database?.forget(sessionIds),
      onLost: () => this.#database?.fence(),
      onReadOnly: (error) => this.#database?.giveUp(error),
      onAnswering: (since) => this.#database?.giveUpUnheard(since),
    })
    this.#member = member
    try {
      const self = { n: member.n, isOneOfMany: true, runsNoJobs: node.slots === 0 }
      const database = await PostgresDatabase.open(options, self, {
        onUnreachable: this.#onUnreachable,
        onEnd: (error) => member.lose(error.code === 'STORAGE_FORGOTTEN' ? error : undefined),
      })
      this.#database = database
      return {
        isOneOfMany: true,
        call(name, ...args) {
          const answer = database.call(name, ...args)
          // one that was just taking the job up has lost it
          if (self.runsNoJobs && name === 'jobs.update')
            answer.then(
              () => member.tellLeft(),
              () => {},
            )
          return answer
        },
        atTurnsEnd: database.atTurnsEnd,
        close: async () => {
          member.stop()
          await database.close()
          await this.#leave(member)
        },
      }
    } catch (error) {
      await this.#leave(member)
      throw error
    }
  }

  async #leave(member: Member): Promise<void> {
    await member.leave()
    this.#member = undefined
    this.#database = undefined
  }
}

function placeOf(row: PlaceRow | undefined): Place | undefined {
  if (!row) return undefined
  const { id, profile, home, ended, ...owner } = row
  return {
    ...{ id, profile },
    ...(owner.n !== null && { owner: owner as ClusterNode }),
    ...(home !== null && { home }),
    ...(ended !== null && { ended: ended as EndedStatus }),
  }
}
