import { CLOSE, closeRow } from '../schemas/close-codes.js'
import { GatewayError, isRedirect, UNREACHABLE } from './errors.js'
import type { Http } from './http.js'
import { Inbox } from './inbox.js'
import { backoffMs, sleep } from './platform.js'
import { type Ending, type Follower, overEventStream, overSocket, type Wire } from './transport.js'

/** Where a stream stands. */
export type ConnectionState =
  | { state: 'connecting' }
  /** `isSynced`: everything that was there when it connected has come. */
  | { state: 'live'; transport: Wire['name']; isSynced: boolean }
  /** `retryAt`: when it tries again, epoch milliseconds; `tries`: how often it has in vain; `error`: what went wrong last. */
  | { state: 'reconnecting'; retryAt: number; tries: number; error?: GatewayError }
  /** `error`: why, when it is not that there is nothing more to come. */
  | { state: 'ended'; error?: unknown }

/** What is followed: like a Follower, and what becomes of it between connections. */
export interface Source extends Omit<Follower, 'isFull'> {
  /** A connection has ended. @returns whether that was the end of it all */
  onDown(ending: Ending): boolean
}

/** As many items may be unread; then the connection is let go until they were read. */
const MAX_UNREAD = 10_000
/** And as many characters of them, which large results of tools are sooner. */
const MAX_UNREAD_LENGTH = 2 ** 25
/** After an event stream worked where a socket did not, sockets are left alone for as long. */
const SOCKETS_REST_MS = 60_000
/** A connection that lived as long was worth having, even when nothing came over it. */
const STABLE_MS = 10_000
/** Tokens that are turned down one after the other, before that is taken for an answer. */
const MAX_RENEWALS = 2

/** A stream that survives its connections, and is read by one reader. */
export class Stream<T> implements AsyncIterable<T> {
  readonly #http: Http
  readonly #source: Source
  readonly #aborter = new AbortController()
  readonly #inbox = new Inbox<T>()
  readonly #listeners = new Set<(state: ConnectionState) => void>()
  #connection: ConnectionState = { state: 'connecting' }
  #socketsRestUntil = 0
  /** In vain, since something came of one. */
  #tries = 0
  #renewals = 0
  #wasLive = false
  #liveSince = Infinity
  #reader: object | undefined

  constructor(http: Http, source: Source, signal?: AbortSignal) {
    this.#http = http
    this.#source = source
    if (signal?.aborted) this.#end()
    else {
      const onAbort = () => this.#end()
      signal?.addEventListener('abort', onAbort)
      this.#aborter.signal.addEventListener('abort', () => signal?.removeEventListener('abort', onAbort))
      void this.#run()
    }
  }

  get connection(): ConnectionState {
    return this.#connection
  }

  /** @returns a function that ends the subscription */
  readonly onConnection = (listener: (state: ConnectionState) => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Lets go. What has come can still be read. */
  close(): void {
    this.#end()
  }

  /** To be called by the source for everything that a reader is to get. */
  push(item: T): void {
    this.#tries = 0
    this.#inbox.push(item)
  }

  /** The connection does what it is for. */
  live(transport: Wire['name'], isSynced: boolean): void {
    this.#wasLive = true
    this.#renewals = 0
    if (this.#liveSince === Infinity) this.#liveSince = this.#http.platform.now()
    this.#become({ state: 'live', transport, isSynced })
  }

  /** Everything that has come since the last batch: for a reader who draws once for all of it. */
  batches(): AsyncGenerator<T[], void, undefined> {
    return this.#leftAtOnce((reader) => this.#batches(reader))
  }

  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    return this.#leftAtOnce((reader) => this.#items(reader))
  }

  async *#batches(reader: object): AsyncGenerator<T[], void, undefined> {
    // two would each get a part, and one of them would wait for ever
    if (this.#reader) throw new Error('This is being read already: a second reader attaches, or watches, anew.')
    this.#reader = reader
    try {
      for (let batch = await this.#inbox.take(); batch; batch = await this.#inbox.take()) yield batch
    } finally {
      this.#reader = undefined
      this.#end()
    }
  }

  async *#items(reader: object): AsyncGenerator<T, void, undefined> {
    for await (const batch of this.#batches(reader)) yield* batch
  }

  /** By itself a generator that is left waits for what comes next, and one that was never begun does nothing: streams leave both. */
  #leftAtOnce<I>(begin: (reader: object) => AsyncGenerator<I, void, undefined>): AsyncGenerator<I, void, undefined> {
    const reader = {}
    const generator = begin(reader)
    const { return: leave, throw: fail } = generator
    const end = () => {
      if (!this.#reader || this.#reader === reader) this.#end()
    }
    return Object.assign(generator, {
      return(value: undefined) {
        end()
        return leave.call(generator, value)
      },
      throw(error: unknown) {
        end()
        return fail.call(generator, error)
      },
    })
  }

  async #run(): Promise<void> {
    const { platform } = this.#http
    const { signal } = this.#aborter
    try {
      while (!signal.aborted) {
        const token = await this.#http.credentials.token().catch(() => undefined)
        if (signal.aborted) return
        const ending = await this.#connect(signal)
        if (signal.aborted) return
        const waitMs = await this.#judge(ending, token)
        if (waitMs === 'over') this.#end()
        else if (waitMs === 'paused') {
          this.#become({ state: 'connecting' })
          await this.#inbox.emptied()
        } else {
          const { error } = ending
          this.#become({
            state: 'reconnecting',
            retryAt: platform.now() + waitMs,
            tries: this.#tries,
            ...(error && { error }),
          })
          // a listener may have let go
          if (!signal.aborted) await this.#pause(waitMs)
        }
      }
    } catch (error) {
      this.#end(error)
    }
  }

  /** One connection, by socket where sockets work. */
  async #connect(signal: AbortSignal): Promise<Ending> {
    const { platform, credentials } = this.#http
    let hasSpoken = false
    let unread = 0
    const follower: Follower = {
      path: this.#source.path,
      canEnd: this.#source.canEnd,
      query: () => this.#source.query(),
      probe: (wire, signal) => this.#source.probe(wire, signal),
      isFull: (length) => {
        const { size } = this.#inbox
        // nothing else is there: what came before was read
        unread = size > 1 ? unread + length : length
        return size >= MAX_UNREAD || (size > 0 && unread >= MAX_UNREAD_LENGTH)
      },
      onFrame: (frame, wire) => {
        if (!hasSpoken && wire.name === 'event-stream' && triedSocket)
          this.#socketsRestUntil = platform.now() + SOCKETS_REST_MS
        hasSpoken = true
        this.#source.onFrame(frame, wire)
      },
    }
    const triedSocket = platform.WebSocket && credentials.fitSockets && platform.now() >= this.#socketsRestUntil
    if (triedSocket) {
      const ending = await overSocket(this.#http, follower, signal)
      // one that never opened may be refused, blocked, or not there: an answer over HTTP tells
      if (hasSpoken || closeRow(ending.code)?.isOurs || signal.aborted) return ending
    }
    return overEventStream(this.#http, follower, signal, !triedSocket)
  }

  /** What an ending means. @returns how long to wait, milliseconds · @throws what the reader is to be told */
  async #judge(ending: Ending, token: string | undefined): Promise<number | 'over' | 'paused'> {
    const isOver = this.#source.onDown(ending)
    if (ending.isPaused) return 'paused'
    if (this.#http.platform.now() - this.#liveSince >= STABLE_MS) this.#tries = 0
    this.#liveSince = Infinity
    const refusal = ending.error ?? refusalByCode(ending.code)
    if (isOver || ending.isComplete || closeRow(ending.code)?.means === 'over') return 'over'
    // another node has it already; one that sends away whoever comes is not asked without a pause
    const isThere = ending.code === CLOSE.sessionMoved.code && this.#tries === 0
    const pauseMs = backoffMs(this.#http.platform, this.#tries++)
    const waitMs = isThere ? 0 : Math.max(pauseMs, refusal?.retryAfterMs ?? 0)
    if (refusal?.status === 401 && this.#renewals++ < MAX_RENEWALS) {
      const isRenewed = await this.#http.credentials.renew(token).catch((error: GatewayError) => error)
      if (isRenewed === true) return 0
      // whoever gives out tokens may be there again later
      if (isRenewed) return waitMs
    }
    if (refusal && isFinal(refusal, this.#wasLive)) throw refusal
    return waitMs
  }

  /** Waits; a device that is online again does not wait longer. */
  async #pause(ms: number): Promise<void> {
    const { platform } = this.#http
    const waiter = new AbortController()
    const wake = () => waiter.abort()
    const { signal } = this.#aborter
    signal.addEventListener('abort', wake)
    const stopListening = platform.onOnline(wake)
    await sleep(platform, ms, waiter.signal).catch(() => {})
    stopListening()
    signal.removeEventListener('abort', wake)
  }

  #end(error?: unknown): void {
    if (this.#connection.state === 'ended') return
    this.#become({ state: 'ended', ...(error !== undefined && { error }) })
    this.#inbox.end({ error })
    this.#aborter.abort()
  }

  #become(connection: ConnectionState): void {
    if (this.#connection.state === 'ended') return
    this.#connection = connection
    for (const listener of this.#listeners)
      try {
        listener(connection)
      } catch (error) {
        // it would end every connection that comes about, and nobody would hear of it
        queueMicrotask(() => {
          throw error
        })
      }
  }
}

function refusalByCode(code: number | undefined): GatewayError | undefined {
  const refusal = closeRow(code)?.means
  return typeof refusal === 'object' ? new GatewayError(refusal.detail, refusal) : undefined
}

/** Whether the answer may be another one a moment later, whoever has given it. */
export const isPassing = ({ status }: GatewayError): boolean =>
  status === 0 || status === 408 || status === 429 || status >= 500

/**
 * Whether trying again can change nothing. What stands between may say anything while the gateway is away, also to whoever has not been
 * there yet; that it sends elsewhere is then taken for its word, since the address may be wrong.
 */
export const isFinal = (error: GatewayError, wasLive: boolean): boolean =>
  !isPassing(error) && (error.code !== UNREACHABLE || (!wasLive && isRedirect(error.status)))
