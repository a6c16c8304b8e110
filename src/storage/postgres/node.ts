import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { startLongTimer } from '../../lib/clock.js'
import type { Listeners } from '../../lib/listeners.js'
import type { ClusterEvents, ClusterNode, NodeAnnouncement, Taken } from '../cluster.js'
import type { StorageError } from '../storage.js'
import { enter } from './entering.js'
import { failureOf, READ_ONLY } from './failures.js'
import { isGone } from './holders.js'
import { Lease } from './lease.js'
import { Link, type LinkOptions } from './link.js'
import { type Neighbour, neighboursAsked, shareLock, takeSharedLock } from './membership.js'
import { channelOf, hears, Nudges } from './nudges.js'
import { StatementError } from './pipeline.js'
import { statement } from './plan.js'
import { migrate } from './schema-version.js'
import { ASYNC, BEAT, DRAIN, END_LEASE, LEAVE, livingOf } from './tables/members.js'
import { type MemberTold, TakeOver } from './takeover.js'
import { listUnlisted } from './unlisted.js'
import { checkWays, type DirectOptions, KEEP_ALIVE } from './ways.js'

const RETRY_MS = 50
/** So long after its end a lease is looked at again. */
const AFTER_LEASE_MS = 10
/** Another node takes over what one that has left had. */
const LOOK_AGAIN_MS = 50

/**
 * One of several processes that share a schema. It renews its lease on a connection of its own; by its own clock it knows when others may
 * take it for dead, and is frozen before. What dead ones had it takes over.
 */
export class Member {
  readonly n: number
  readonly #runsJobs: boolean
  readonly #options: LinkOptions
  readonly #leaseMs: number
  readonly #listeners: Listeners<ClusterEvents>
  readonly #told: MemberTold
  readonly #takeOver: TakeOver
  readonly #nudges: Nudges
  readonly #lease: Lease
  #link: Link | undefined
  /** The newest there was, also when it is lost. */
  #last: Link | undefined
  /** Since then it has been in touch with the database without a gap. */
  #inTouchSince = performance.now()
  #lastBeat = performance.now()
  /** A beat of then was not answered, and whether the next one was. */
  #silence: { since: number; isOver: boolean } | undefined
  /** What the server's clock said then. */
  #lastServerMs = Number.POSITIVE_INFINITY
  /** Why the last beat failed. */
  #failure: StorageError | undefined
  /** Members, living or not, of the last beat. */
  #seen: ReadonlySet<number> = new Set()
  /** A member has gone, or has left something to nobody, since this one last looked for what nobody has. */
  #mayBeLeft = false
  /** Milliseconds that the leases of the others had left then. */
  #leases: readonly number[] = []
  /** Whether the node has left, or was declared dead. */
  #isOver = false
  #isLeaving = false
  #isJoined = false
  #isDraining = false
  #beatTimer: NodeJS.Timeout | undefined
  #beating = false
  #beatAgain = false
  #nodes: readonly ClusterNode[] = []

  private constructor(
    n: number,
    link: Link,
    options: LinkOptions,
    leaseMs: number,
    runsJobs: boolean,
    listeners: Listeners<ClusterEvents>,
    told: MemberTold,
  ) {
    this.n = n
    this.#runsJobs = runsJobs
    this.#told = told
    this.#options = options
    this.#leaseMs = leaseMs
    this.#listeners = listeners
    this.#nudges = new Nudges(n, options.schema)
    this.#lease = new Lease(leaseMs, {
      onRenewed: (leftMs) => listeners.emit('beat', { leftMs }),
      onFrozen: () => listeners.emit('frozen', this.#failure ? { reason: this.#failure } : {}),
      onThawed: () => listeners.emit('thawed', {}),
    })
    const onTaken = (taken: Taken) => {
      told.onTaken(taken)
      // some of it may have been left to them
      if (taken.from && this.#link) void this.#nudges.tell(this.#link, 'nodes')
      listeners.emit('taken', taken)
    }
    this.#takeOver = new TakeOver({ ...options, connectTimeoutMs: leaseMs }, n, leaseMs, runsJobs, {
      taken: onTaken,
      untaken: (reason) => listeners.emit('untaken', reason ? { reason } : {}),
      late: () => this.#beatNow(),
    })
    this.#use(link)
  }

  /**
   * Makes the schema usable, and this process one of those that use it. What nobody living has is its own then.
   * @throws StorageError when a single process has it
   */
  static async join(
    options: DirectOptions,
    node: NodeAnnouncement,
    leaseMs: number,
    listeners: Listeners<ClusterEvents>,
    told: MemberTold,
  ): Promise<Member> {
    const link = await Link.open(options)
    let member: Member | undefined
    try {
      await checkWays(link, options)
      await migrate(link.client, options.schema)
      await link.client.query(KEEP_ALIVE)
      await takeSharedLock(link, options)
      await link.client.query(`LISTEN "${channelOf(options.schema)}"`)
      await listUnlisted(link)
      const { n, since, neighbours } = await enter(link, options, node, leaseMs)
      member = new Member(n, link, options, leaseMs, node.slots > 0, listeners, told)
      member.#onBeat(since, neighbours)
      member.#schedule(leaseMs / 5)
      const isPredecessor = (other: Neighbour) => other.name === node.name && other.n !== n && isGone(other)
      const gone = neighbours.filter((other) => other.hasLeft || isPredecessor(other))
      await member.#takeOver.atOnce(member.#taking(gone))
      member.#isJoined = true
      await member.#nudges.tell(link, 'nodes')
      return member
    } catch (error) {
      if (member) {
        member.#end()
        // what it has taken over so far is left to others at once
        await link.run([statement(LEAVE, member.n), statement(END_LEASE, member.n)]).catch(() => {})
      }
      await link.end()
      throw failureOf(error instanceof StatementError ? error.error : error, options.place)
    }
  }

  get state(): 'serving' | 'frozen' | 'out' {
    if (this.#isOver) return 'out'
    return this.#lease.isSafe ? 'serving' : 'frozen'
  }

  get nodes(): readonly ClusterNode[] {
    return this.#nodes
  }

  async drain(): Promise<void> {
    this.#isDraining = true
    const link = this.#link
    if (!link || link.isLost) throw failureOf(new Error('connection lost'), this.#options.place)
    await link.run([statement(DRAIN, this.n)])
    this.#nudges.tell(link, 'nodes')
    this.#beatNow()
  }

  nudge(): void {
    if (this.#link) this.#nudges.nudge(this.#link)
  }

  /** Something is nobody's: who is to have it looks for it. */
  tellLeft(): void {
    if (this.#link) void this.#nudges.tell(this.#link, 'left')
  }

  /** Takes over at once what those had that have left. */
  async takeLeft(): Promise<void> {
    this.#beatNow()
    await (this.#leavesJobs ? sleep(LOOK_AGAIN_MS) : this.#takeOver.left())
  }

  /** This process has been declared dead, or cannot go on from what is in the database. */
  lose(reason?: Error): void {
    if (this.#isOver) return
    this.#end()
    if (this.#isLeaving) return
    this.#told.onLost()
    this.#listeners.emit('lost', { ...(reason && { reason }) })
  }

  /** The node is about to leave, once what was asked for is done: it renews its lease until then. */
  stop(): void {
    this.#isLeaving = true
  }

  /** Lets others have at once what is left to do; everything that was asked for is done. */
  async leave(): Promise<void> {
    this.#end()
    await this.#takeOver.close()
    const link = this.#link?.isLost === false ? this.#link : await this.#connect().catch(() => undefined)
    link?.ref()
    // whom it does not reach takes it for dead in time
    const cut = setTimeout(() => link?.destroy(), this.#leaseMs)
    await link?.run([statement(LEAVE, this.n), statement(END_LEASE, this.n)]).catch(() => {})
    if (link) await this.#nudges.tell(link, 'nodes')
    clearTimeout(cut)
    await link?.end()
  }

  #end(): void {
    this.#isOver = true
    this.#lease.stop()
    clearTimeout(this.#beatTimer)
    this.#nudges.stop()
  }

  #use(link: Link): void {
    this.#link = link
    this.#last = link
    this.#inTouchSince = performance.now()
    link.unref()
    hears(link, this.n, (what) => {
      if (this.#isOver) return
      if (what === 'left') this.#mayBeLeft = true
      if (what === 'work') this.#listeners.emit('work', {})
      else this.#beatNow()
    })
    void link.lost.then(() => {
      if (this.#link === link) this.#link = undefined
      this.#beatNow()
    })
  }

  async #connect(): Promise<Link> {
    const link = await Link.open({ ...this.#options, connectTimeoutMs: this.#leaseMs / 3 })
    const cut = startLongTimer(this.#leaseMs / 3, () => link.destroy())
    try {
      await link.client.query(`${KEEP_ALIVE}; LISTEN "${channelOf(this.#options.schema)}"`)
      // each beat that a lock holds up would have a connection of its own for as long
      if (this.#last) await link.endOther(this.#last)
      // who has the row goes on, with or without it: by it a single process sees that somebody is there
      await shareLock(link, this.#options)
      return link
    } catch (error) {
      link.destroy()
      throw error
    } finally {
      cut.cancel()
    }
  }

  #schedule(ms: number): void {
    clearTimeout(this.#beatTimer)
    if (!this.#isOver) this.#beatTimer = setTimeout(() => this.#beatNow(), ms).unref()
  }

  #beatNow(): void {
    if (this.#isOver) return
    if (this.#beating) {
      this.#beatAgain = true
      return
    }
    this.#beating = true
    clearTimeout(this.#beatTimer)
    void this.#beat().then((hasSucceeded) => {
      this.#beating = false
      if (this.#beatAgain && hasSucceeded) this.#beatNow()
      else this.#schedule(hasSucceeded ? this.#untilNext() : Math.min(RETRY_MS, this.#leaseMs / 5))
    })
  }

  /** Milliseconds; one that is silent is looked at as soon as its lease is over. */
  #untilNext(): number {
    return Math.min(this.#leaseMs / 5, ...this.#leases.map((leftMs) => leftMs + AFTER_LEASE_MS))
  }

  async #beat(): Promise<boolean> {
    this.#beatAgain = false
    const since = performance.now()
    const cut = startLongTimer(this.#leaseMs / 3, () => {
      this.#silence = { since, isOver: false }
      this.#link?.destroy()
    })
    try {
      if (!this.#link || this.#link.isLost) {
        const link = await this.#connect()
        if (this.#isOver) {
          await link.end()
          return false
        }
        this.#use(link)
        // what was told meanwhile was not heard
        this.#mayBeLeft = true
        this.#listeners.emit('work', {})
      }
      const [, own, neighbours] = await this.#link!.run([
        statement(ASYNC),
        statement(BEAT, this.n, this.#leaseMs),
        neighboursAsked(this.#leaseMs),
      ])
      if (this.#isOver) return false
      if (own!.length === 0) {
        this.lose()
        return false
      }
      this.#onBeat(since, neighbours as unknown as Neighbour[])
      return true
    } catch (error) {
      const failure = failureOf(error instanceof StatementError ? error.error : error, this.#options.place)
      if (failure.code === READ_ONLY && this.#failure?.code !== READ_ONLY) this.#told.onReadOnly(failure)
      this.#failure = failure
      // it was cut, or is not there yet: the next one connects again
      this.#link?.destroy()
      return false
    } finally {
      cut.cancel()
    }
  }

  #onBeat(since: number, neighbours: readonly Neighbour[]): void {
    this.#failure = undefined
    this.#tellSilence()
    if (!this.#lease.renew(since)) return
    this.#see(neighbours)
    this.#leases = neighbours.flatMap(({ n, leftMs }) => (n === this.n || leftMs === null || leftMs < 0 ? [] : leftMs))
    const { serverMs } = neighbours[0]!
    const passedMs = since - this.#lastBeat
    // what held this one up may have held up the others too; the server's clock was put forward for all of them
    if (Math.max(passedMs, serverMs - this.#lastServerMs - passedMs) > this.#leaseMs / 2) this.#inTouchSince = since
    this.#lastBeat = since
    this.#lastServerMs = serverMs
    const isLongHere = since - this.#inTouchSince >= this.#leaseMs
    if ([...this.#seen].some((n) => neighbours.every((one) => one.n !== n))) this.#mayBeLeft = true
    this.#seen = new Set(neighbours.map(({ n }) => n))
    if (!this.#isJoined || this.#isDraining || this.#isLeaving || !this.#listeners.has('taken')) return
    const isToTake = (one: Neighbour) =>
      one.n !== this.n && (one.hasLeft || (one.isExpired && one.isServerUp && isLongHere))
    this.#takeOver.begin(this.#taking(neighbours.filter(isToTake)), this.#mayBeLeft, this.#leavesJobs)
    this.#mayBeLeft = false
  }

  /** With the second beat after it: until then what was only held up has been answered, too. */
  #tellSilence(): void {
    const silence = this.#silence
    if (silence?.isOver) {
      this.#silence = undefined
      this.#told.onAnswering(silence.since)
    } else if (silence) silence.isOver = true
  }

  /** Without those that ran jobs, where these are for others. */
  #taking(gone: readonly Neighbour[]): readonly Neighbour[] {
    return gone.filter(({ slots }) => slots === 0 || !this.#leavesJobs)
  }

  /** What a dead one had that ran jobs is for those that run them, as long as there are any; so is what was left to nobody. */
  get #leavesJobs(): boolean {
    return !this.#runsJobs && this.#nodes.some(({ slots, draining }) => slots > 0 && !draining)
  }

  #see(neighbours: readonly Neighbour[]): void {
    const before = this.#nodes
    this.#nodes = livingOf(this.n, neighbours)
    const seen = (nodes: readonly ClusterNode[]) => nodes.map(({ n, draining }) => `${n} ${draining}`).join()
    if (before.length > 0 && seen(before) !== seen(this.#nodes)) this.#listeners.emit('nodes', {})
  }
}
