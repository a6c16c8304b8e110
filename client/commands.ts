import { GatewayError } from './errors.js'
import { type Http, MAX_WAIT_MS, mayPass } from './http.js'
import { stopIfAborted } from './platform.js'
import type { Ending, Wire } from './transport.js'
import type { ServerFrame, SessionCommand } from './types.js'

/** A command without its id. */
export type CommandBody = SessionCommand extends infer C ? (C extends unknown ? Omit<C, 'id'> : never) : never

export interface CommandOptions {
  /** Names the command: the same id is carried out once, however often it is sent, also by another process. Default: a new one. */
  commandId?: string | undefined
  /** Gives up: nothing is sent any more. A command that was sent may be carried out all the same. */
  signal?: AbortSignal | undefined
}

interface Pending {
  frame: CommandBody & { id: string }
  signal: AbortSignal | undefined
  resolve(): void
  reject(error: unknown): void
  /** The connection that it was sent over and that has not answered. */
  sentOver?: Wire | undefined
  /** A socket did not take it; over HTTP the refusal says why, or it may be tried again. */
  overHttp?: boolean
}

const STORE = 'SG_ERR_STORE_UNAVAILABLE'
/** A socket told of these; over HTTP they pass. */
const PASSING = new Set(['SG_ERR_SHUTTING_DOWN', STORE])
const FRAME_TOO_LARGE = 1009
/** In the place of a connection that was let go until what came is read: who reads may be waiting for a command, which goes over HTTP. */
const UNREAD: Wire = { name: 'event-stream' }

/**
 * The commands of one session that were not answered yet, in the order in which they were given. They go over a socket where there is one,
 * else over HTTP, and again under the same id when the connection was lost before the answer.
 */
export class Commands {
  readonly #http: Http
  readonly #path: string
  #pending: Pending[] = []
  /** By follower; undefined while it has no connection. */
  readonly #wires = new Map<object, Wire | undefined>()
  #isPosting = false

  constructor(http: Http, path: string) {
    this.#http = http
    this.#path = path
  }

  /** Resolves once the gateway has carried it out. Rejects with a TypeError what cannot be sent: a cycle, a bigint. */
  run(body: CommandBody, { commandId = this.#http.platform.newId(), signal }: CommandOptions = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      stopIfAborted(signal)
      // what is no JSON would hold up everything behind it, and break every connection that it is sent over
      JSON.stringify(body)
      const settle = (act: () => void) => () => {
        signal?.removeEventListener('abort', onAbort)
        this.#pending = this.#pending.filter((other) => other !== pending)
        act()
      }
      let failure: unknown
      const fail = settle(() => reject(failure))
      const pending: Pending = {
        frame: { ...body, id: commandId },
        signal,
        resolve: settle(resolve),
        reject(error) {
          failure = error
          fail()
        },
      }
      const onAbort = () => pending.reject(signal?.reason)
      signal?.addEventListener('abort', onAbort)
      this.#pending.push(pending)
      this.#flush()
    })
  }

  /** A follower of the session is there, and will have a connection sooner or later. */
  join(follower: object): void {
    this.#wires.set(follower, undefined)
  }

  leave(follower: object): void {
    this.#lose(follower)
    this.#wires.delete(follower)
    this.#flush()
  }

  onLive(follower: object, wire: Wire): void {
    if (!this.#wires.has(follower)) return
    this.#wires.set(follower, wire)
    this.#flush()
  }

  onDown(follower: object, { code, isPaused }: Ending): void {
    this.#lose(follower, code === FRAME_TOO_LARGE)
    if (isPaused && this.#wires.has(follower)) this.#wires.set(follower, UNREAD)
    this.#flush()
  }

  onFrame(frame: ServerFrame): void {
    if (frame.type !== 'ack' && frame.type !== 'command_error') return
    const pending = this.#pending.find(({ frame: { id } }) => id === frame.id)
    if (!pending) return
    if (frame.type === 'ack') pending.resolve()
    else if (PASSING.has(frame.code)) {
      pending.overHttp = true
      this.#flush()
    } else pending.reject(new GatewayError(frame.message, { status: 0, code: frame.code }))
  }

  #lose(follower: object, overHttp = false): void {
    const wire = this.#wires.get(follower)
    if (!wire) return
    this.#wires.set(follower, undefined)
    for (const pending of this.#pending) {
      if (pending.sentOver !== wire) continue
      pending.sentOver = undefined
      if (overHttp) pending.overHttp = true
    }
  }

  /** Sends what is due, in order: nothing overtakes a command that has to go over HTTP. */
  #flush(): void {
    if (this.#isPosting) return
    const wires = [...this.#wires.values()]
    const socket = wires.find((wire) => wire?.send)
    const isWaiting = wires.length > 0 && wires.every((wire) => !wire)
    for (const pending of this.#pending) {
      if (pending.sentOver && !pending.overHttp) continue
      if (socket && !pending.overHttp) {
        pending.sentOver = socket
        socket.send?.(pending.frame)
      } else {
        if (!isWaiting) void this.#post(pending)
        return
      }
    }
  }

  async #post(pending: Pending): Promise<void> {
    this.#isPosting = true
    const { frame: body, signal } = pending
    try {
      // with the signal: what was given up is not tried again, and holds up nothing
      await this.#http.json('POST', `${this.#path}/commands`, { body, signal, repeatable: true, has: 'ok' })
      pending.resolve()
    } catch (error) {
      // whoever follows the session waits for the connection to come back, and so do its commands
      const isWorthWaiting =
        this.#wires.size > 0 &&
        error instanceof GatewayError &&
        mayPass(error, true) &&
        !isForGiver(error, pending) &&
        (error.retryAfterMs ?? 0) <= MAX_WAIT_MS
      if (!isWorthWaiting) pending.reject(error)
      // whoever speaks is told, too, and not kept waiting behind what goes on to be tried
      else if (error.code === STORE) this.#pending = [...this.#pending.filter((other) => other !== pending), pending]
    }
    this.#isPosting = false
    this.#flush()
  }
}

/** What the storage did not take, as often as it was tried, is told to whoever can give it again; of what a tool has done nobody would. */
const isForGiver = ({ code }: GatewayError, { frame }: Pending): boolean =>
  code === STORE && !frame.type.startsWith('tool_call_')
