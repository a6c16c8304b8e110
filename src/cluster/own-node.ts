import { toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import { deferred } from '../lib/deferred.js'
import type { Logger } from '../lib/logger.js'
import { VERSION } from '../lib/package-root.js'
import { type ClusterNode, type ClusterStorage, keeperOf, type Place, type Taken } from '../storage/cluster.js'
import { type Cluster, type NodeRequest, TAKEN_KINDS, type TakenKind, type TakeUp, type Target } from './cluster.js'
import type { HopClient } from './hop-client.js'
import type { ResolvedClusterOptions } from './options.js'

/** Of what nodes say to each other. */
const PROTOCOL = 1
/** Of places that are remembered. */
const MAX_PLACES = 100_000

export interface OwnNodeOptions {
  options: ResolvedClusterOptions
  storage: ClusterStorage
  hops: HopClient
  clock: Clock
  logger: Logger
  /** Jobs that it runs at once. */
  slots: number
  /** Of what all nodes must have alike. */
  digest: string
  /** Names of those that there are from the start on. */
  profiles: () => readonly string[]
}

interface KnownPlace {
  node: ClusterNode
  until: number
}

type TargetKind = 'session' | 'execution' | 'job'

/** This process in its cluster: where things are, and what was taken over. */
export class OwnNode implements Cluster {
  readonly options: ResolvedClusterOptions
  readonly hops: HopClient
  readonly #parts: OwnNodeOptions
  readonly #nodeListeners = new Set<(nodes: readonly ClusterNode[]) => void>()
  readonly #takeUps = new Map<TakenKind, TakeUp>()
  readonly #expects: ((taken: Taken) => void)[] = []
  readonly #residence = new Map<TargetKind, (id: string) => boolean>()
  #letGo: ((sessionId: string) => Promise<boolean>) | undefined
  /** Owners of what is elsewhere, by kind and id. */
  readonly #places = new Map<string, KnownPlace>()
  /** What is being claimed for somebody, by id. */
  readonly #claims = new Map<string, Promise<'here' | ClusterNode>>()
  /** Nodes that are set up differently and were told of. */
  readonly #different = new Set<number>()
  #url: string
  /** One taking after the other, from the start of the gateway on. */
  #takingUp: Promise<void>
  readonly #started = deferred()

  constructor(parts: OwnNodeOptions) {
    const { options, storage, hops } = parts
    this.#parts = parts
    this.options = options
    this.hops = hops
    this.#url = options.url
    this.#takingUp = this.#started.promise
    storage.on('nodes', () => this.#onNodes())
    storage.on('untaken', ({ reason }) => {
      if (reason)
        parts.logger.warn(
          { err: reason },
          'what a node had that is gone cannot be taken over; it is tried with each beat',
        )
      else parts.logger.warn({}, 'what a node had that is gone can be taken over again')
    })
  }

  get self() {
    return { n: this.#parts.storage.n, name: this.options.node, url: this.#url }
  }

  get state() {
    return this.#parts.storage.state
  }

  others(): ClusterNode[] {
    return this.#parts.storage.nodes().filter(({ n }) => n !== this.#parts.storage.n)
  }

  /** This node as the others see it; absent while it is none. */
  itself(): ClusterNode | undefined {
    return this.#parts.storage.nodes().find(({ n }) => n === this.#parts.storage.n)
  }

  /** Calls when a node has come or gone. */
  onNodes(listener: (nodes: readonly ClusterNode[]) => void): void {
    this.#nodeListeners.add(listener)
  }

  /** Before it is announced. @param port which the system chose, where the option says 0 */
  listensOn(port: number): void {
    const url = new URL(this.options.url)
    if (url.port === '0') url.port = String(port)
    this.#url = url.origin
  }

  /** Before the storage is opened, which joins. */
  announce(): void {
    const { slots, digest, profiles } = this.#parts
    const node = {
      name: this.options.node,
      url: this.#url,
      protocol: PROTOCOL,
      version: VERSION,
      slots,
      config: digest,
      profiles: profiles(),
    }
    this.#parts.storage.announce(node, this.options.leaseMs)
  }

  /** The gateway has taken up what it owned before: what came since is next. */
  started(): void {
    // not sooner: whoever hears of it takes over, and what is read at a start is in several steps
    this.#parts.storage.on('taken', (taken) => void this.#takeUp(taken))
    this.#started.resolve()
    this.#compare(this.others())
  }

  /** Says that it is about to leave; that others do not hear of it keeps nothing waiting. */
  async drain(): Promise<void> {
    // it is none yet, or no more
    if (this.state === 'out') return
    await this.#parts.storage.drain().catch((error) => {
      this.#parts.logger.warn({ err: toError(error) }, 'the other nodes could not be told that this one leaves')
    })
  }

  onTaken(kind: TakenKind, takeUp: TakeUp, expect?: (taken: Taken) => void): void {
    this.#takeUps.set(kind, takeUp)
    if (expect) this.#expects.push(expect)
  }

  onResidence(kind: TargetKind, isHere: (id: string) => boolean): void {
    this.#residence.set(kind, isHere)
  }

  /** @param letGo leaves a session to whoever claims it; resolves with false when something is done with it here */
  onLeft(letGo: (sessionId: string) => Promise<boolean>): void {
    this.#letGo = letGo
  }

  /** Of a node that is about to leave: has whoever asks for it have what this one had. @returns false when it cannot be left yet */
  async leaveTo(target: Target): Promise<boolean> {
    if ('job' in target) return false
    const place = await this.#placeOf(target)
    if (place?.owner?.n !== this.#parts.storage.n) return true
    await this.#takingUp
    return (await this.#letGo?.(place.id)) ?? false
  }

  isResident(target: Target): boolean {
    const [kind, id] = partsOf(target)
    return this.#residence.get(kind)?.(id) ?? false
  }

  async where(target: Target): Promise<'here' | ClusterNode> {
    if (this.isResident(target)) return 'here'
    const known = this.#places.get(keyOf(target))
    // one that was looked for while its node was being declared dead is remembered with that node
    if (known && known.until > this.#parts.clock.now() && this.#isAlive(known.node)) return known.node
    const place = await this.#placeOf(target)
    return place ? this.#settle(target, place) : 'here'
  }

  forget(target: Target): void {
    this.#places.delete(keyOf(target))
  }

  ask(node: ClusterNode, request: NodeRequest): Promise<Response> {
    return this.hops.ask(node, request)
  }

  #placeOf(target: Target): Promise<Place | undefined> {
    const [kind, id] = partsOf(target)
    switch (kind) {
      case 'session':
        return this.#parts.storage.placeOfSession(id)
      case 'execution':
        return this.#parts.storage.placeOfExecution(id)
      case 'job':
        return this.#parts.storage.placeOfJob(id)
    }
  }

  async #settle(target: Target, place: Place): Promise<'here' | ClusterNode> {
    if (place.owner) return (await this.#leftTo(target, place)) ?? this.#at(target, place.owner)
    // while it is queued or over, every node says the same of it
    if ('job' in target) return 'here'
    const keeper = keeperOf(place, this.self, this.#parts.storage.nodes())
    return keeper ? this.#at(target, keeper) : this.#claim(target, place.id)
  }

  /** A session that this node took up while nobody had its profile, and that sleeps, goes to one that has it by now. */
  async #leftTo(target: Target, { owner, ...place }: Place): Promise<ClusterNode | undefined> {
    const { storage } = this.#parts
    if (owner?.n !== storage.n || 'job' in target || place.ended) return undefined
    const keeper = keeperOf(place, this.self, storage.nodes())
    if (!keeper) return undefined
    await this.#takingUp
    return (await this.#letGo?.(place.id)) ? keeper : undefined
  }

  async #at(target: Target, node: ClusterNode): Promise<'here' | ClusterNode> {
    if (node.n === this.#parts.storage.n) {
      // this one's by a taking that may still be under way
      await this.#takingUp
      return 'here'
    }
    if (this.#places.size >= MAX_PLACES) this.#places.clear()
    this.#places.set(keyOf(target), { node, until: this.#parts.clock.now() + this.options.leaseMs / 2 })
    return node
  }

  #isAlive({ n }: ClusterNode): boolean {
    return this.#parts.storage.nodes().some((node) => node.n === n)
  }

  /** Once for all who ask at the same time. */
  #claim(target: Target, id: string): Promise<'here' | ClusterNode> {
    const known = this.#claims.get(id)
    if (known) return known
    const claim = this.#claimNow(target, id).finally(() => this.#claims.delete(id))
    this.#claims.set(id, claim)
    return claim
  }

  async #claimNow(target: Target, id: string): Promise<'here' | ClusterNode> {
    const place = await this.#parts.storage.claim(id)
    if (!place) return 'here'
    if (place.owner && place.owner.n !== this.#parts.storage.n) return this.#at(target, place.owner)
    if (place.owner) await this.#takeUp({ sessionIds: [id], jobIds: [], lanes: [], keys: [] })
    return 'here'
  }

  #takeUp(taken: Taken): Promise<void> {
    for (const expect of this.#expects) expect(taken)
    this.#takingUp = this.#takingUp.then(() => this.#takeUpNow(taken))
    return this.#takingUp
  }

  async #takeUpNow(taken: Taken): Promise<void> {
    if (taken.from)
      this.#parts.logger.info(
        { node: taken.from.name, sessions: taken.sessionIds.length, jobs: taken.jobIds.length },
        'this node goes on with what another one had',
      )
    for (const kind of TAKEN_KINDS)
      try {
        await this.#takeUps.get(kind)?.(taken)
      } catch (error) {
        this.#parts.logger.error({ err: toError(error), kind }, 'what another node had could not be taken up')
      }
  }

  #onNodes(): void {
    this.#places.clear()
    const nodes = this.#parts.storage.nodes()
    this.hops.keep(nodes)
    for (const listener of this.#nodeListeners) listener(nodes)
    this.#compare(this.others())
  }

  /** Callers would find a difference by chance. What is in a digest is each version's own: an upgrade, node by node, is none. */
  #compare(others: readonly ClusterNode[]): void {
    for (const { n, name, version, config } of others) {
      if (version !== VERSION || config === this.#parts.digest || this.#different.has(n)) continue
      this.#different.add(n)
      this.#parts.logger.warn(
        { node: name },
        'another node is set up differently: profiles, tools, basePath, maxBodyBytes, requireApiKey, disableBypassPermissions, agentState, notifications.webhook and the names of notifications.channels have to be the same at all of them',
      )
    }
  }
}

const partsOf = (target: Target): [kind: TargetKind, id: string] =>
  'session' in target
    ? ['session', target.session]
    : 'execution' in target
      ? ['execution', target.execution]
      : ['job', target.job]

const keyOf = (target: Target): string => partsOf(target).join('/')
