import type { OwnNode } from '../cluster/own-node.js'
import type { Standing } from '../cluster/standing.js'
import type { SignIns } from '../console/sign-ins.js'
import { endOrphans } from '../engines/cli/index.js'
import type { ToolEndpoint } from '../engines/tool-endpoint.js'
import { GatewayError, hasCode, toError } from '../errors.js'
import type { Executions } from '../executions/executions.js'
import { answerLeft } from '../idempotency/making.js'
import type { IdempotencyStore } from '../idempotency/store.js'
import { unstarted } from '../jobs/adapter-answers.js'
import type { JobQueue } from '../jobs/queue.js'
import type { Clock } from '../lib/clock.js'
import { within } from '../lib/within.js'
import type { NotificationFeed } from '../notifications/feed.js'
import type { Outward } from '../notifications/outward.js'
import type { ResolvedOptions } from '../options.js'
import type { ProfileCatalog } from '../profiles/catalog.js'
import type { CliProfiles } from '../profiles/cli-profiles.js'
import { tellOnError } from '../sessions/kept/keeping.js'
import type { SessionRegistry } from '../sessions/registry.js'
import { moveParked } from '../storage/record/session-journal.js'
import type { GatewayStorage } from '../storage/storage.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { EgressGuard } from '../webhooks/egress.js'
import type { Lookups } from './lookups.js'

/** A store has at least that long to be closed. */
const STORAGE_CLOSE_MS = 1_000
/** Engines have that part of a shutdown's time to end: what they leave to be stored and delivered has the rest. */
const SHARE_OF_ENGINES = 3 / 4
/** What was asked before the end began is answered, most of it with a refusal: so long is waited for the last of that. */
const ANSWER_MS = 1_000
/** A start that takes longer than this is told of. */
const SLOW_START_MS = 10_000

export interface LifeParts {
  options: ResolvedOptions
  clock: Clock
  storage: GatewayStorage | undefined
  cluster: OwnNode | undefined
  standing: Standing | undefined
  profiles: ProfileCatalog
  registry: SessionRegistry
  executions: Executions
  queue: JobQueue | undefined
  cliProfiles: CliProfiles
  toolEndpoint: ToolEndpoint
  feed: NotificationFeed
  outward: Outward
  signIns: SignIns | undefined
  deliverer: WebhookDeliverer
  idempotency: IdempotencyStore
  lookups: Lookups
  guards: readonly EgressGuard[]
  /** Whether agents of an earlier process are looked for and ended. */
  endsOrphans: boolean
  /** Has the node hear of no other any more. */
  endStep: (() => void) | undefined
}

/** From a gateway's construction to its end: its parts are opened in their order, and closed whatever becomes of each. */
export class GatewayLife {
  readonly #parts: LifeParts
  #state: 'built' | 'ready' | 'draining' = 'built'
  #closing: Promise<void> | undefined
  #startedAt = 0
  #callOff = () => {}
  /** A start that hangs does not keep a shutdown waiting. */
  readonly #calledOff = new Promise<never>((_, reject) => {
    this.#callOff = () => reject(new GatewayError('SG_ERR_SHUTTING_DOWN'))
  })

  constructor(parts: LifeParts) {
    this.#parts = parts
    this.#calledOff.catch(() => {})
  }

  get isReady(): boolean {
    return this.#state === 'ready'
  }

  get isDraining(): boolean {
    return this.#state === 'draining'
  }

  /** Epoch milliseconds; 0 before. */
  get startedAt(): number {
    return this.#startedAt
  }

  /** @throws what a store throws, and GatewayError `SG_ERR_SHUTTING_DOWN` once `close` is called */
  async start(): Promise<void> {
    const { clock, cluster, options } = this.#parts
    const patience = clock.after(SLOW_START_MS, () =>
      options.logger.warn(
        { afterMs: SLOW_START_MS },
        'the stores are still being read; nothing is served before that is done',
      ),
    )
    try {
      await Promise.race([this.#takeUp(), this.#calledOff])
    } finally {
      patience.cancel()
    }
    if (this.#state === 'built') this.#state = 'ready'
    cluster?.started()
    this.#startedAt = clock.now()
  }

  close(answered = async () => {}): Promise<void> {
    this.#closing ??= this.#close(answered)
    return this.#closing
  }

  async #takeUp(): Promise<void> {
    const { options, storage, cluster, profiles, outward, signIns, deliverer, feed, registry, queue } = this.#parts
    const { idempotency, lookups, endsOrphans } = this.#parts
    const keptIn = storage ? 'storage' : 'parking.store'
    const steps = [
      () => cluster?.announce(),
      () => storage?.open(),
      () => profiles.load(),
      () => (endsOrphans ? endOrphans() : undefined),
      () => outward.open(),
      () => signIns?.open(),
      () => deliverer.restore(lookups.findTarget, (left) => outward.takeOver(left)),
      () => lookups.tellOfGone(),
      () => feed.open(),
      () => this.#moveFormer(),
      () => registry.adopt(),
      () => outward.start(),
      () => (options.queue?.adapter ? queue?.start().catch((error) => unstarted(error, keptIn)) : queue?.start()),
      () => answerLeft(idempotency, lookups.findMade, { logger: options.logger }),
    ]
    try {
      for (const step of steps) {
        if (this.#state !== 'built') throw new GatewayError('SG_ERR_SHUTTING_DOWN')
        await step()
      }
    } catch (error) {
      // the store's own words, which a refusal has as its cause
      throw hasCode(error, 'SG_ERR_STORE_UNAVAILABLE') ? (error.cause ?? error) : error
    }
  }

  /** Where parked sessions were kept before the journal had them, and a host may still have some. */
  get #former() {
    const { options, storage } = this.#parts
    return storage ? [options.parking.store, storage.sessions].filter((store) => store !== undefined) : []
  }

  async #moveFormer(): Promise<void> {
    const { logger, parking } = this.#parts.options
    for (const store of this.#former)
      await moveParked(store, this.#parts.storage!.journal, (error) => {
        logger.error(
          { err: toError(error) },
          'a parked session could not be moved to the journal; it is left where it is',
        )
        tellOnError(parking.onError, logger, toError(error), { phase: 'adopt' })
      })
  }

  async #close(answered: () => Promise<void>): Promise<void> {
    const { clock, options, storage, cluster, standing, registry, queue, deliverer, profiles } = this.#parts
    this.#state = 'draining'
    this.#callOff()
    if (standing?.isLost) return this.#leaveBehind(standing, answered).finally(() => standing.close())
    const endsAt = clock.steady() + options.shutdownTimeoutMs
    const left = cluster?.drain()
    registry.drain()
    queue?.drain()
    this.#tellNobody()
    await within(options.shutdownTimeoutMs, this.#windDown(), { clock })
    await this.#finish(() => deliverer.close())
    const leftMs = () => Math.max(endsAt - clock.steady(), STORAGE_CLOSE_MS)
    await within(Math.max(0, Math.min(ANSWER_MS, endsAt - clock.steady())), answered(), { clock })
    await this.#finish(() => within(leftMs(), left, { clock }))
    await this.#finish(() => within(leftMs(), profiles.close(), { clock }))
    if (storage) await this.#finish(() => within(leftMs(), storage.close(), { clock }))
    standing?.close()
  }

  async #windDown(): Promise<void> {
    const { options, registry, queue, toolEndpoint, deliverer, guards } = this.#parts
    await this.#finish(() => registry.endAll(SHARE_OF_ENGINES * options.shutdownTimeoutMs))
    await this.#finish(() => queue?.close())
    await this.#finish(() => registry.closeJournal())
    for (const store of this.#former) await this.#finish(() => store.close?.())
    await this.#finish(() => toolEndpoint.close())
    await this.#finish(() => deliverer.flush())
    await Promise.all(guards.map((one) => this.#finish(() => one.close())))
  }

  /** What there was is others'; nothing of it is ended, and nobody is waited for. */
  async #leaveBehind(standing: Standing, answered: () => Promise<void>): Promise<void> {
    const { clock, options, storage, toolEndpoint, deliverer, profiles, guards } = this.#parts
    this.#tellNobody()
    const parts = [toolEndpoint, deliverer, profiles, ...guards]
    const gone = Promise.all(parts.map((one) => this.#finish(() => one.close())))
    await within(STORAGE_CLOSE_MS, gone, { clock })
    // or the lease of the next member would let them work again
    await within(options.shutdownTimeoutMs, standing.gone, { clock })
    await within(Math.min(ANSWER_MS, options.shutdownTimeoutMs), answered(), { clock })
    await within(STORAGE_CLOSE_MS, storage!.close(), { clock })
  }

  #tellNobody(): void {
    const { executions, cliProfiles, endStep, feed, outward } = this.#parts
    executions.close()
    cliProfiles.close()
    endStep?.()
    feed.close()
    outward.stop()
  }

  /** One step that fails, in a host's own store perhaps, keeps none of the others from being done. */
  async #finish(step: () => unknown): Promise<void> {
    try {
      await step()
    } catch (error) {
      this.#parts.options.logger.error({ err: toError(error) }, 'something could not be closed')
    }
  }
}
