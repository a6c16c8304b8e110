import { CLOSE } from '../schemas/close-codes.js'
import type { Commands } from './commands.js'
import { type GatewayError, UNREACHABLE } from './errors.js'
import type { Http } from './http.js'
import { type ConnectionState, isPassing, Stream } from './stream.js'
import type { Ending, Wire } from './transport.js'
import type { AttachedFrame, ExecutionOutput, ServerFrame, SessionEvent } from './types.js'

/**
 * Events are missing here: the gateway no longer has them, or the log is another one. What was known no longer counts; `snapshot` is what
 * is, and the events that follow are all that there still are.
 */
export interface Gap {
  type: 'gap'
  snapshot: AttachedFrame
}

export type AttachItem = SessionEvent | Gap

/** What a reader follows: batch by batch, or item by item. Leaving the loop lets go of the connection. */
export interface Following<T> extends AsyncIterable<T> {
  readonly connection: ConnectionState
  /** Calls back at every change of `connection`. @returns a function that ends the subscription */
  onConnection(listener: (state: ConnectionState) => void): () => void
  /** Everything that has come since the last batch: for a reader who draws once for all of it. */
  batches(): AsyncGenerator<T[], void, undefined>
  /** Lets go. What has come can still be read. */
  close(): void
}

export interface Attachment extends Following<AttachItem> {
  /** The session as it was when the connection was made last; undefined until then. */
  readonly snapshot: AttachedFrame | undefined
}

type ToolCallRequest = Extract<ServerFrame, { type: 'tool_call_request' }>

/** A tool call that the gateway asks this client to carry out. */
export interface ToolCall extends Omit<ToolCallRequest, 'type'> {
  /** Aborted when nobody waits for the result any more. */
  signal: AbortSignal
}

export interface AttachOptions {
  /** The events after this one. Default 0: all. */
  afterSeq?: number | undefined
  /** Of the log that `afterSeq` is of: `snapshot.epoch` of an earlier attachment. */
  epoch?: string | undefined
  /** Lets go; the iteration then ends. */
  signal?: AbortSignal | undefined
  /** Carries out the tool calls that the gateway hands to its clients; what it throws is told as the call's failure. */
  executeTool?: ((call: ToolCall) => Promise<ExecutionOutput>) | undefined
}

/** Follows the log of a session, over as many connections as it takes. */
export class SessionFollower {
  readonly path: string
  readonly stream: Stream<AttachItem>
  readonly #commands: Commands
  readonly #executeTool: AttachOptions['executeTool']
  readonly #calls = new Map<string, AbortController>()
  #epoch: string | undefined
  /** Of the last event that was passed on. */
  #lastSeq: number
  /** Of the last one that no crash can take back: how a message was typed is not kept. */
  #keptSeq: number
  #hasClosed = false
  snapshot: AttachedFrame | undefined

  constructor(http: Http, path: string, commands: Commands, options: AttachOptions) {
    const { afterSeq = 0, epoch, signal, executeTool } = options
    this.path = path
    this.#commands = commands
    this.#executeTool = executeTool
    this.#epoch = epoch
    this.#lastSeq = this.#keptSeq = afterSeq
    commands.join(this)
    this.stream = new Stream(http, this, signal)
    this.stream.onConnection(({ state }) => {
      if (state !== 'ended') return
      commands.leave(this)
      for (const call of this.#calls.values()) call.abort()
    })
    if (this.stream.connection.state === 'ended') commands.leave(this)
  }

  /** That everything was told the gateway says only of a session that has ended, to who knows where its log ends. */
  get canEnd(): boolean {
    if (this.#epoch === undefined) return false
    const status = this.snapshot?.session.status
    return this.#hasClosed || status === undefined || status === 'closed' || status === 'failed'
  }

  query() {
    return { afterSeq: this.#keptSeq, epoch: this.#epoch }
  }

  probe(wire: Wire): undefined {
    wire.send?.({ type: 'ping' })
  }

  onFrame(frame: ServerFrame, wire: Wire): void {
    switch (frame.type) {
      case 'attached':
        this.#onAttached(frame)
        this.stream.live(wire.name, false)
        this.#commands.onLive(this, wire)
        return
      case 'event':
        this.#onEvent(frame.event)
        return
      case 'synced':
        this.stream.live(wire.name, true)
        return
      case 'tool_call_request':
        void this.#carryOut(frame)
        return
      case 'tool_call_canceled':
        this.#calls.get(frame.executionId)?.abort(new Error(frame.reason))
        return
      default:
        this.#commands.onFrame(frame)
    }
  }

  /** A session that said that it is closed and is then gone has come to its end. */
  onDown(ending: Ending): boolean {
    const { code, error } = ending
    this.#commands.onDown(this, ending)
    return this.#hasClosed && (code === CLOSE.sessionRemoved.code || isGone(error))
  }

  #onAttached(frame: AttachedFrame): void {
    this.snapshot = frame
    // in the same log, what lies beyond its end was typing that a crash took back: nothing else is missing
    const isKnown = frame.epoch === this.#epoch && frame.replayingFrom <= this.#lastSeq
    this.#epoch = frame.epoch
    if (!frame.truncated) return
    if (isKnown) {
      // asked for again from there, it would be replayed each time
      this.#keptSeq = Math.min(this.#keptSeq, frame.session.lastSeq)
      return
    }
    this.#lastSeq = this.#keptSeq = frame.replayingFrom
    this.stream.push({ type: 'gap', snapshot: frame })
  }

  #onEvent(event: SessionEvent): void {
    const { seq, type } = event
    if (type === 'session_closed') this.#hasClosed = true
    if (type !== 'stream_delta' && seq > this.#keptSeq) this.#keptSeq = seq
    if (seq <= this.#lastSeq) return
    this.#lastSeq = seq
    this.stream.push(event)
  }

  async #carryOut({ type: _, ...request }: ToolCallRequest): Promise<void> {
    const { executionId } = request
    const executeTool = this.#executeTool
    // asked again after a reconnect
    if (!executeTool || this.#calls.has(executionId)) return
    const aborter = new AbortController()
    this.#calls.set(executionId, aborter)
    const { signal } = aborter
    const fail = (error: unknown) =>
      this.#commands.run(
        {
          type: 'tool_call_error',
          executionId,
          reason: 'error',
          error: String((error as Error | undefined)?.message ?? error),
        },
        { signal },
      )
    const tell = (output: ExecutionOutput) =>
      this.#commands.run({ type: 'tool_call_result', executionId, output }, { signal }).catch((error) => {
        // one that is too large, also for a proxy, or none: the agent is told, or would wait for another
        const isLost = error?.code === UNREACHABLE && isPassing(error)
        if (!signal.aborted && !isLost) return fail(error)
      })
    try {
      // who is refused, or gone, has nobody to tell
      await (async () => executeTool({ ...request, signal }))()
        .then(tell, fail)
        .catch(() => {})
    } finally {
      this.#calls.delete(executionId)
    }
  }
}

const isGone = (error: GatewayError | undefined): boolean => error?.code === 'SG_ERR_SESSION_NOT_FOUND'
