import { GatewayError, isOf, toError } from '../errors.js'
import { type Backoff, delayAfter } from '../lib/backoff.js'
import type { Clock, Timer } from '../lib/clock.js'
import { eachCall } from '../lib/each-call.js'
import type { Logger } from '../lib/logger.js'
import { PATIENCE_MS, unavailable } from '../lib/patience.js'
import { giveBack, isOfAnother, take } from './held.js'
import { type GatewayStorage, isFenced, isRefusal, isUnreadable, StorageError } from './storage.js'

/** How often a storage that takes nothing is asked again. */
const PROBE_MS = 1_000
/** One that fails again so soon after it took something may take some and refuse the rest, as one that is nearly full, or come and go. */
const RELAPSE_MS = 30_000
/** What such a one takes would have all try again that it refuses, and each of them the others: ever more seldom while it goes on so. */
const WAKING: Backoff = { firstMs: 50, longestMs: 1_000 }
/** So many times it is told of each time, and from then on ever more seldom. */
const TOLD_TIMES = 3
const TELLING: Backoff = { firstMs: 1_000, longestMs: 60_000 }
const PARTS = [
  ...(['journal', 'sessions', 'profiles', 'queue', 'idempotency', 'outbox'] as const),
  ...(['notifications', 'channels', 'signIns', 'usage'] as const),
] as const
/** What is answered without a write says nothing of whether one would be taken. */
const READS: ReadonlySet<string> = new Set([
  ...[
    'list',
    'get',
    'read',
    'dailyTokens',
    'atRest',
    'listed',
    'awake',
    'ended',
    'endedFirst',
    'dueFirst',
    'restTotals',
    'sessionOf',
    'continues',
    'claimNext',
    'claim',
    'attempts',
    'begin',
    'left',
    'gone',
    'oldest',
    'key',
    'keyOnce',
    'subscriptions',
    'version',
    'counts',
    'delayed',
    'unreadable',
    'isHeldUp',
  ],
])
/** What gives no promise, or need not: whoever asks hears what it throws. */
const PLAIN: ReadonlySet<string> = new Set(['onWork', 'owned'])
/** What may well take long. */
const LONG: ReadonlySet<string> = new Set(['list', 'awake', 'restTotals', 'prune', 'subscriptions'])

/**
 * Whether a storage takes what it is given: told by everything that is asked of it and, while it takes nothing, by asking it again every
 * second. The first write that it takes wakes all who wait for it: at once, unless it goes on taking some and refusing the rest.
 */
export class StorageWatch {
  /** The storage, watched. */
  readonly storage: GatewayStorage
  readonly #given: GatewayStorage
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #waiting = new Set<() => void>()
  #probe: Timer | undefined
  /** By the steady clock: when something that was written last woke those who wait. */
  #wokeAt = 0
  #waking: Timer | undefined
  #closed = false
  /** Whether the storage takes nothing from this process any more: whoever would try again does not. */
  #fenced = false
  /** In a row. */
  #relapses = 0
  /** Runs from when it took something again until it is no relapse any more that it fails. */
  #proving: Timer | undefined
  /** Of relapses that are not each told of: how many times, and no sooner again than that by the steady clock. */
  #told = 0
  #quietUntil = 0
  /** What was asked of the storage and is not answered yet. */
  #asked = 0
  #silence: Timer | undefined
  /** Nothing that was asked was answered for so long that nothing more is asked. */
  #silent = false

  constructor(given: GatewayStorage, { clock, logger }: { clock: Clock; logger: Logger }) {
    this.#given = given
    this.#clock = clock
    this.#logger = logger
    // a host's own storage may have some of them
    const watched = PARTS.flatMap((name) => {
      const part = given[name]
      return part ? [[name, this.#watched(part)]] : []
    })
    const ours = {
      ...Object.fromEntries(watched),
      open: async () => {
        take(given, this)
        given.onAway?.((error) => this.#onFailed(error))
        await given.open()
      },
      close: () => this.#close(),
    }
    // not assigned: its parts may be getters, or frozen
    this.storage = Object.create(given, Object.getOwnPropertyDescriptors(ours)) as GatewayStorage
  }

  /** False from the first failure until something was written again, and while the storage does not answer. */
  get available(): boolean {
    return this.#probe === undefined && !this.#silent && !this.#fenced
  }

  /** Runs `work` after `delayMs`, or sooner: when the storage takes something again; never once it is closed: it may be another gateway's then. */
  readonly retryAfter: Clock['after'] = (delayMs, work) => {
    const run = () => {
      if (this.#fenced || this.#closed) return
      timer.cancel()
      this.#waiting.delete(run)
      work()
    }
    const timer = this.#clock.after(delayMs, run)
    this.#waiting.add(run)
    return {
      cancel: () => {
        timer.cancel()
        this.#waiting.delete(run)
      },
    }
  }

  #watched<Part extends object>(part: Part): Part {
    return eachCall(part, (name, call) => {
      // what is not even asked cannot happen later
      if (this.#silent) return Promise.reject(new StorageError('STORAGE_SILENT', 'The storage does not answer.'))
      if (PLAIN.has(name)) return call()
      // one that does all of it before it returns need not have been given a promise by its host
      const answer = Promise.resolve(refused(call))
      const isLong = LONG.has(name)
      if (!isLong) this.#onAsked()
      answer.then(
        () => {
          if (!isLong) this.#onAnswer()
          if (!READS.has(name) && this.#onTaken()) this.#wakeSoon()
        },
        (error) => {
          if (!isLong) this.#onAnswer()
          this.#onFailed(error)
        },
      )
      return answer
    })
  }

  #onAsked(): void {
    this.#asked++
    this.#listen()
  }

  #listen(): void {
    this.#silence ??= this.#clock.after(PATIENCE_MS, () => {
      this.#silent = true
      this.#logger.error({ afterMs: PATIENCE_MS }, 'the storage does not answer; nothing is taken until it does')
    })
  }

  #onAnswer(): void {
    this.#asked--
    this.#silence?.cancel()
    this.#silence = undefined
    if (this.#asked > 0 && !this.#closed) this.#listen()
    if (!this.#silent) return
    this.#silent = false
    this.#logger.warn({}, 'the storage answers again')
    if (!this.#probe) this.#runWaiting()
  }

  #wakeSoon(): void {
    const wake = () => {
      this.#waking?.cancel()
      this.#waking = undefined
      this.#wokeAt = this.#clock.steady()
      this.#runWaiting()
    }
    const restMs = this.#relapses > 0 ? this.#wokeAt + delayAfter(this.#relapses, WAKING) - this.#clock.steady() : 0
    if (restMs <= 0) wake()
    else this.#waking ??= this.#clock.after(restMs, wake)
  }

  #runWaiting(): void {
    // what comes meanwhile waits for itself, and one of them may call another off
    for (const run of [...this.#waiting]) if (this.#waiting.has(run)) run()
  }

  /** @returns whether it took nothing before */
  #onTaken(): boolean {
    if (!this.#probe || this.#closed) return false
    this.#probe.cancel()
    this.#probe = undefined
    const isTold = this.#relapses < TOLD_TIMES
    if (isTold) this.#tellTaken()
    this.#proving = this.#clock.after(RELAPSE_MS, () => {
      this.#proving = undefined
      if (!isTold) this.#tellTaken()
    })
    return true
  }

  /** Once a second at most, whatever comes of it. */
  #onProbed(): void {
    if (this.#onTaken()) this.#runWaiting()
  }

  #tellTaken(): void {
    this.#logger.warn({}, 'the storage takes what it is given again')
  }

  #onFailed(error: unknown): void {
    if (isFenced(error)) this.#onFenced(error)
    if (this.#probe || this.#closed || this.#fenced || isRefusal(error) || isUnreadable(error)) return
    this.#relapses = this.#proving ? this.#relapses + 1 : 0
    this.#proving?.cancel()
    this.#proving = undefined
    this.#tellFailed(toError(error))
    this.#probeLater()
  }

  #tellFailed(err: Error): void {
    if (this.#relapses < TOLD_TIMES) {
      this.#told = 0
      this.#logger.error({ err }, 'the storage fails; nothing that has to be kept is taken until it works')
      return
    }
    const now = this.#clock.steady()
    if (this.#told > 0 && now < this.#quietUntil) return
    this.#quietUntil = now + delayAfter(++this.#told, TELLING)
    this.#logger.error(
      { reason: err.message },
      'the storage fails again and again, each time soon after it took something',
    )
  }

  #onFenced(error: unknown): void {
    if (!this.#fenced && !this.#closed)
      this.#logger.error({ err: toError(error) }, 'this process has lost the storage; nothing is taken any more')
    this.#fenced = true
    this.#probe?.cancel()
    this.#probe = undefined
    this.#proving?.cancel()
    this.#waking?.cancel()
    this.#waiting.clear()
  }

  #probeLater(): void {
    const probe = this.#clock.after(PROBE_MS, () => {
      const given = this.#given
      if (given.probe)
        Promise.resolve(refused(() => given.probe!())).then(
          () => this.#onProbed(),
          // another one may have begun meanwhile
          () => this.#probe === probe && !this.#closed && this.#probeLater(),
        )
      // it is asked by whoever waits for it, and by the next caller
      else this.#onProbed()
    })
    this.#probe = probe
  }

  async #close(): Promise<void> {
    this.#closed = true
    this.#probe?.cancel()
    this.#proving?.cancel()
    this.#silence?.cancel()
    this.#waking?.cancel()
    this.#waiting.clear()
    if (isOfAnother(this.#given, this)) return
    await this.#given.close()
    giveBack(this.#given, this)
  }
}

/** A store whose failures are refusals: to the caller "come again", with the cause for the log. */
export const refusing = <Store extends object>(store: Store): Store =>
  eachCall(store, (_name, call) => {
    try {
      const answer = call()
      return isPromiseLike(answer) ? Promise.resolve(answer).catch(refuse) : answer
    } catch (error) {
      return refuse(error)
    }
  })

/** A store may find out that it cannot before it has a promise to give. */
function refused(call: () => unknown): unknown {
  try {
    return call()
  } catch (error) {
    return Promise.reject(error)
  }
}

/** What query builders give is a promise, and none of Node's. */
const isPromiseLike = (answer: unknown): answer is PromiseLike<unknown> =>
  typeof (answer as { then?: unknown } | undefined)?.then === 'function'

function refuse(error: unknown): never {
  if (isOf(GatewayError, error) || isRefusal(error)) throw error
  throw unavailable(error)
}
