import type { Close } from '../../../schemas/close-codes.js'
import { type AttachedFrame, PROTOCOL_VERSION, type ServerFrame } from '../../../schemas/frames.js'
import type { BridgedCall, ClientBridge, ExecutionResult } from '../../engines/runner.js'
import { GatewayError } from '../../errors.js'
import type { Clock, Timer } from '../../lib/clock.js'
import { LazyMap } from '../../lib/lazy-map.js'
import type { LogReaders } from '../log/log-segments.js'
import { Attachment, type ClientSink, type LogSource } from './attachment.js'
import { ReaderPressure } from './reader-pressure.js'

/** How long a client may take when the call names no limit of its own. */
const DEFAULT_CALL_TIMEOUT_MS = 300_000

type ToolCallRequest = Extract<ServerFrame, { type: 'tool_call_request' }>

/** Where a client wants to go on. */
export interface AttachPosition {
  afterSeq?: number | undefined
  epoch?: string | undefined
}

/** What an `attached` frame tells beside the client's place in the log. */
type Snapshot = Pick<AttachedFrame, 'session' | 'pendingPermissions' | 'pendingExecutions'>

/** What clients are shown of: a session. */
interface ClientsSource extends LogSource {
  readonly world: { readonly clock: Clock }
  snapshot(): Snapshot
}

/** The clients of one session: each a cursor over its log. */
export class Clients implements LogReaders {
  readonly #source: ClientsSource
  readonly #max: number
  #attachments: Set<Attachment> | undefined
  #scheduled = false
  /** Seq of an event that is sent as soon as it may be shown. */
  #urgentSeq: number | undefined
  /** Such an event was sent in this turn: others go with the rest of it. */
  #hurried = false
  #pressure: ReaderPressure | undefined
  /** When the last client left last, as `Clock.steady` counts. */
  leftAt: number | undefined

  constructor(source: ClientsSource, max: number) {
    this.#source = source
    this.#max = max
  }

  get count(): number {
    return this.#attachments?.size ?? 0
  }

  /** Whether one of them, or one that is going, may still read from a slice of the log. */
  get hold(): boolean {
    for (const attachment of this.#attachments ?? []) if (attachment.holds) return true
    return false
  }

  /** Present while all of them are so far behind that an engine which goes on would run away from them. */
  get drained(): Promise<void> | undefined {
    return this.#pressure?.drained
  }

  /** Clients that do not read are not waited for any longer. */
  relieve(): void {
    this.#pressure?.takeOff()
  }

  /** @throws SG_ERR_TOO_MANY at `maxSocketsPerSession` */
  assertRoom(): void {
    if (this.count >= this.#max)
      throw new GatewayError('SG_ERR_TOO_MANY', {
        detail: 'This session has as many clients as it may.',
      })
  }

  /** Lets a client in: `attached` first, then the log from its place, then live. `pending` frames follow the replay. */
  attach(sink: ClientSink, position: AttachPosition, pending: ServerFrame[]): Attachment {
    this.assertRoom()
    const frame = this.attachedFrame(position)
    frame.session.attachedClients++
    const attachment = new Attachment(this.#source, sink, frame, () => this.attachedFrame(position))
    this.#attachments ??= new Set()
    this.#attachments.add(attachment)
    this.#pressure?.join(attachment)
    for (const later of pending) attachment.send(later)
    return attachment
  }

  detach(attachment: Attachment, now: number): void {
    attachment.detach()
    this.#pressure?.leave(attachment)
    if (this.#attachments?.delete(attachment) && this.#attachments.size === 0) this.leftAt = now
  }

  /** The log has grown, or more of it may be shown. */
  onShown(): void {
    if (this.count === 0) return
    this.#schedule()
    if (this.#urgentSeq === undefined || this.#urgentSeq > this.#source.log.visibleSeq) return
    this.#urgentSeq = undefined
    if (this.#hurried) return
    this.#hurried = true
    this.#pump()
  }

  /** An event that is not to wait for the end of the turn in which it may be shown, nor for what observers do about it. */
  hurry(seq: number): void {
    if (this.count > 0) this.#urgentSeq = seq
  }

  /** Once a message is whole and can be seen, how it was typed leaves the log, but not before who is here was sent it. */
  dropTyping(uuid: string): void {
    const { log } = this.#source
    if (!log.hasDeltas(uuid)) return
    const drop = () => log.dropDeltas(uuid)
    if (this.count > 0) setImmediate(() => setImmediate(drop))
    else drop()
  }

  /** One look at the end of this turn for all of them, however many events it brings: they are many. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(pumpAll, this)
  }

  pumpAll(): void {
    this.#scheduled = false
    this.#hurried = false
    this.#pump()
  }

  #pump(): void {
    for (const attachment of this.#attachments ?? []) attachment.pump()
    if (this.#attachments && this.#source.log.mayOutrun) this.#look(this.#attachments)
  }

  #look(attachments: Set<Attachment>): void {
    const { log, world } = this.#source
    this.#pressure ??= new ReaderPressure(world.clock, log)
    this.#pressure.look(attachments)
  }

  broadcast(frame: ServerFrame, except?: Attachment): void {
    for (const attachment of this.#attachments ?? []) if (attachment !== except) attachment.send(frame)
  }

  /** Ends every client's stream, whatever it still had to read. */
  disconnectAll(close: Close): void {
    for (const attachment of this.#attachments ?? []) attachment.close(close)
  }

  /** The snapshot of this moment and where the replay begins. */
  attachedFrame(position: AttachPosition): AttachedFrame {
    const { log } = this.#source
    const snapshot = this.#source.snapshot()
    const { replayingFrom, truncated } = this.resolve(position)
    return {
      type: 'attached',
      protocolVersion: PROTOCOL_VERSION,
      session: snapshot.session,
      epoch: log.epoch,
      replayingFrom,
      oldestSeq: log.oldestSeq,
      truncated,
      pendingPermissions: snapshot.pendingPermissions,
      pendingExecutions: snapshot.pendingExecutions,
    }
  }

  /** Answers honestly whether the log can go on from a client's place. */
  resolve({ afterSeq = 0, epoch }: AttachPosition): { replayingFrom: number; truncated: boolean } {
    const { oldestSeq, visibleSeq, epoch: own } = this.#source.log
    const truncated = (epoch !== undefined && epoch !== own) || afterSeq < oldestSeq - 1 || afterSeq > visibleSeq
    return { replayingFrom: truncated ? oldestSeq - 1 : afterSeq, truncated }
  }
}

const pumpAll = (clients: Clients): void => clients.pumpAll()

interface PendingCall {
  frame: ToolCallRequest
  settle(result: ExecutionResult): void
  timer: Timer
}

/**
 * Hands an engine's calls to the attached clients: every client is asked, the first answer wins, the others are told. A call that
 * nobody is there for waits for a client until its deadline.
 */
export class SessionBridge implements ClientBridge {
  readonly #calls = new LazyMap<string, PendingCall>()
  readonly #clock: Clock
  readonly #clients: Clients
  #closed = false

  constructor(clock: Clock, clients: Clients) {
    this.#clock = clock
    this.#clients = clients
  }

  /** Frames that a client which attaches now still has to answer. */
  get pending(): ServerFrame[] {
    return [...this.#calls.values()].map((call) => call.frame)
  }

  /** Rejects for a call that is not JSON: no client could be told of it. */
  async execute(call: BridgedCall): Promise<ExecutionResult> {
    if (this.#closed) return failed('closed', 'The session has ended.')
    if (this.#calls.has(call.executionId))
      return failed('duplicate', 'A call with this executionId is already in progress.')
    const frame: ToolCallRequest = { type: 'tool_call_request', ...JSON.parse(JSON.stringify(call)) }
    const timeoutMs = Math.min(
      call.limits?.timeoutMs ?? DEFAULT_CALL_TIMEOUT_MS,
      call.expiresAt === undefined ? Infinity : call.expiresAt - this.#clock.now(),
    )
    return new Promise((settle) => {
      const timer = this.#clock.after(timeoutMs, () =>
        this.#cancel(call.executionId, 'timeout', 'No client answered in time.'),
      )
      this.#calls.set(call.executionId, { frame, settle, timer })
      this.#clients.broadcast(frame)
    })
  }

  /**
   * @param answeredBy the client that need not be told; absent for an answer over REST
   * @returns false when no such call waits
   */
  settle(executionId: string, result: ExecutionResult, answeredBy?: Attachment): boolean {
    const call = this.#take(executionId)
    if (!call) return false
    this.#clients.broadcast({ type: 'tool_call_canceled', executionId, reason: 'answered' }, answeredBy)
    call.settle(result)
    return true
  }

  cancelAll(reason: string, error: string): void {
    for (const executionId of [...this.#calls.keys()]) this.#cancel(executionId, reason, error)
  }

  close(): void {
    this.#closed = true
    this.cancelAll('closed', 'The session has ended.')
  }

  #cancel(executionId: string, reason: string, error: string): void {
    const call = this.#take(executionId)
    if (!call) return
    this.#clients.broadcast({ type: 'tool_call_canceled', executionId, reason })
    call.settle(failed(reason, error))
  }

  #take(executionId: string): PendingCall | undefined {
    const call = this.#calls.get(executionId)
    this.#calls.delete(executionId)
    call?.timer.cancel()
    return call
  }
}

const failed = (reason: string, error: string): ExecutionResult => ({ status: 'failed', reason, error })
