import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Close } from '../schemas/close-codes.js'

const CLOSE_FRAME = 0x88
const GRACE_MS = 2_000

interface Ends {
  client: Socket
  owner: Socket
  /** The owner's incarnation. */
  n: number
}

interface Ahead {
  client: Buffer | undefined
  owner: Buffer
}

/** WebSockets that are other nodes': bytes in both directions, so that frames, close codes and reasons are what they were. */
export class Splices {
  readonly #open = new Set<Splice>()
  #closing: Close | undefined

  /** @param ahead what each sent behind its head */
  add(ends: Ends, answer: IncomingMessage, ahead: Ahead): void {
    const splice = new Splice(ends, () => this.#open.delete(splice))
    this.#open.add(splice)
    splice.begin(answer, ahead)
    // it was asked for before, and nobody else would end it
    if (this.#closing) void this.#end([splice], this.#closing)
  }

  /** Ends those with nodes that are gone: a connection may not show it. */
  keep(nodes: readonly { n: number }[]): void {
    const alive = new Set(nodes.map(({ n }) => n))
    for (const splice of this.#open) if (!alive.has(splice.n)) splice.destroy()
  }

  get size(): number {
    return this.#open.size
  }

  /** Tells the clients, and ends all, those that are still to come too: who does not react is cut off. */
  async closeAll(close: Close): Promise<void> {
    this.#closing = close
    await this.#end([...this.#open], close)
  }

  async #end(splices: readonly Splice[], close: Close): Promise<void> {
    const ended = splices.map((splice) => splice.close(close))
    const late = setTimeout(() => {
      for (const splice of splices) splice.destroy()
    }, GRACE_MS)
    await Promise.all(ended)
    clearTimeout(late)
  }
}

class Splice {
  readonly n: number
  readonly #client: Socket
  readonly #owner: Socket
  readonly #ended: Promise<void>
  readonly #frames = new FrameBounds()
  #closing: Buffer | undefined

  constructor({ client, owner, n }: Ends, onEnd: () => void) {
    this.n = n
    this.#client = client
    this.#owner = owner
    this.#ended = new Promise((resolve) => {
      client.once('close', () => {
        onEnd()
        resolve()
      })
    })
  }

  begin(answer: IncomingMessage, ahead: Ahead): void {
    const client = this.#client
    const owner = this.#owner
    for (const [one, other] of [
      [client, owner],
      [owner, client],
    ] as const) {
      one.setTimeout(0)
      one.setNoDelay(true)
      one.setKeepAlive(true, 30_000)
      one.on('error', () => one.destroy())
      // what was written before is still sent
      one.once('close', () => this.#closing || other.destroySoon())
    }
    client.write(headOf(answer))
    if (ahead.client) owner.write(ahead.client)
    client.pipe(owner)
    owner.on('data', (chunk: Buffer) => this.#pass(chunk))
    owner.on('end', () => client.end())
    client.on('drain', () => owner.resume())
    if (ahead.owner.length > 0) this.#pass(ahead.owner)
  }

  #pass(chunk: Buffer): void {
    if (this.#client.writableEnded) return
    if (this.#closing) {
      const whole = this.#frames.untilBound(chunk)
      this.#client.write(chunk.subarray(0, whole))
      if (this.#frames.isBound) this.#tell(this.#closing)
      return
    }
    this.#frames.pass(chunk)
    if (!this.#client.write(chunk)) this.#owner.pause()
  }

  /** Says so between two frames. */
  close({ code, reason }: Close): Promise<void> {
    const payload = Buffer.alloc(2 + Buffer.byteLength(reason))
    payload.writeUInt16BE(code)
    payload.write(reason, 2)
    const frame = Buffer.concat([Buffer.from([CLOSE_FRAME, payload.length]), payload])
    this.#closing = frame
    if (this.#frames.isBound) this.#tell(frame)
    else this.#owner.resume()
    return this.#ended
  }

  #tell(frame: Buffer): void {
    this.#client.end(frame)
    this.#client.unpipe(this.#owner)
    // its answer to the close is not for the owner any more
    this.#client.resume()
    this.#owner.destroy()
  }

  destroy(): void {
    this.#client.destroy()
    this.#owner.destroy()
  }
}

function headOf({ httpVersion, statusCode, statusMessage, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`HTTP/${httpVersion} ${statusCode} ${statusMessage}`]
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

/** Where the frames of a server end in its bytes, which come in any pieces. RFC 6455, 5.2. */
export class FrameBounds {
  /** Of the frame's head, as far as it has come. */
  #head: number[] = []
  /** Bytes that are still missing of the frame's payload. */
  #left = 0

  /** Whether what came ends with a whole frame. */
  get isBound(): boolean {
    return this.#left === 0 && this.#head.length === 0
  }

  pass(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) at = this.#step(chunk, at)
  }

  /** @returns how much of it belongs to the frame that has begun */
  untilBound(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length && !this.isBound) at = this.#step(chunk, at)
    return at
  }

  #step(chunk: Buffer, at: number): number {
    if (this.#left > 0) {
      const taken = Math.min(this.#left, chunk.length - at)
      this.#left -= taken
      return at + taken
    }
    this.#head.push(chunk[at]!)
    const [, second = 0] = this.#head
    const more = (second & 0x7f) === 127 ? 8 : (second & 0x7f) === 126 ? 2 : 0
    const mask = (second & 0x80) === 0 ? 0 : 4
    if (this.#head.length >= 2 + more + mask) {
      this.#left = more === 0 ? second & 0x7f : this.#head.slice(2, 2 + more).reduce((sum, byte) => sum * 256 + byte, 0)
      this.#head = []
    }
    return at + 1
  }
}
