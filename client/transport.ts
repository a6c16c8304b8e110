import { GatewayError, strange, unreachable } from './errors.js'
import { type Http, hasStream, type Query, textOf } from './http.js'
import { type Platform, type SocketLike, stopIfAborted } from './platform.js'

export type Frame = { type: string }

export interface Wire {
  readonly name: 'socket' | 'event-stream'
  /** Sends one frame; only sockets can. */
  send?(frame: Frame): void
}

/** How a connection came to its end. */
export interface Ending {
  /** Close code of a socket; 1006 when it was cut off. */
  code?: number
  /** The gateway's answer instead of a stream. */
  error?: GatewayError
  /** An event stream of which there is nothing more to tell. */
  isComplete?: boolean
  /** It was let go because what came is not being read. */
  isPaused?: boolean
}

/** What is to be followed, and what follows it. */
export interface Follower {
  /** `/sessions/…` or `/queue`: its socket is `/ws`, its event stream `/events`. */
  readonly path: string
  query(): Query
  onFrame(frame: Frame, wire: Wire): void
  /** Called when nothing came over a socket for a while: makes the gateway say something, or finds out by itself that it is there. */
  probe(wire: Wire, signal: AbortSignal): Promise<boolean> | undefined
  /** Whether there may be nothing more to tell, which is a 204; of anything else something in between says that. */
  readonly canEnd?: boolean | undefined
  /** Whether as much is unread as may be, with a frame that came of as many characters. */
  isFull(length: number): boolean
}

/** So long may the first frame take; then a socket counts as blocked, an event stream as not there. */
const FIRST_FRAME_MS = 10_000
/** A socket that fails closes then; that of Node 22 does not when it was never open. */
const CLOSES_MS = 100
const CHECK_MS = 15_000
/** An event stream has a comment every 15 s; what is silent for longer is dead. */
const SILENCE_MS = 40_000

/** Looks after a connection that may have died without a word. `heard` is to be called at every sign of life. */
function watch(platform: Platform, { probe, onDead }: { probe?: () => void; onDead: () => void }) {
  let lastHeard = platform.now()
  let isFirst = true
  let probedAt: number | undefined
  let cancel = platform.after(FIRST_FRAME_MS, check)
  function check(): void {
    const now = platform.now()
    // a clock that was set back would hide for as long that nothing comes
    if (now < lastHeard) lastHeard = now
    if (probedAt !== undefined && now < probedAt) probedAt = now
    if (isFirst || (probe ? probedAt !== undefined && now - probedAt >= CHECK_MS : now - lastHeard >= SILENCE_MS)) {
      onDead()
      return
    }
    if (probe && probedAt === undefined && now - lastHeard >= CHECK_MS) {
      probedAt = now
      probe()
    }
    cancel = platform.after(CHECK_MS, check)
  }
  return {
    heard() {
      lastHeard = platform.now()
      probedAt = undefined
      if (!isFirst) return
      isFirst = false
      cancel()
      cancel = platform.after(CHECK_MS, check)
    },
    stop: () => cancel(),
  }
}

/** Follows over a WebSocket until it ends. Never rejects. */
export async function overSocket(http: Http, follower: Follower, signal: AbortSignal): Promise<Ending> {
  let socket: SocketLike
  try {
    const headers = await http.credentials.headers()
    const token = await http.credentials.token()
    stopIfAborted(signal)
    const WebSocket = http.platform.WebSocket!
    // a browser's socket has no headers: its bearer token is offered as a protocol
    const protocols = token === undefined ? [] : ['session-gateway', `session-gateway.bearer.${token}`]
    socket = new WebSocket(http.socketUrl(`${follower.path}/ws`, follower.query()), protocols, { headers })
  } catch (error) {
    return { code: 1006, error: noConnection(http, error) }
  }
  const wire: Wire = { name: 'socket', send: (frame) => socket.send(JSON.stringify(frame)) }
  // what a connection is asked about is of no interest once it has ended
  const probing = new AbortController()
  return new Promise((resolve) => {
    let stopWaiting = () => {}
    const end = (ending: Ending) => {
      probing.abort()
      watched.stop()
      stopWaiting()
      signal.removeEventListener('abort', leave)
      socket.onmessage = socket.onclose = null
      // what fails while it closes is of no interest, and `ws` throws what nobody listens to
      socket.onerror = () => {}
      socket.close()
      resolve(ending)
    }
    const cutOff = () => end({ code: 1006 })
    const leave = () => end({ code: 1000 })
    const attempt = (act: () => void) => {
      try {
        act()
      } catch {
        cutOff()
      }
    }
    const probe = () =>
      attempt(
        () =>
          void follower.probe(wire, probing.signal)?.then((isThere) => (isThere ? watched.heard() : cutOff()), cutOff),
      )
    const watched = watch(http.platform, { probe, onDead: cutOff })
    signal.addEventListener('abort', leave)
    socket.onerror = () => {
      stopWaiting()
      stopWaiting = http.platform.after(CLOSES_MS, cutOff)
    }
    socket.onclose = ({ code }: { code: number }) => end({ code })
    socket.onmessage = ({ data }: { data: unknown }) => {
      watched.heard()
      const text = String(data)
      attempt(() => follower.onFrame(JSON.parse(text), wire))
      if (follower.isFull(text.length)) end({ isPaused: true })
    }
  })
}

/** Follows over server-sent events until they end; `isOnlyWay`: no socket can do it in their place. Never rejects. */
export async function overEventStream(
  http: Http,
  follower: Follower,
  signal: AbortSignal,
  isOnlyWay: boolean,
): Promise<Ending> {
  const wire: Wire = { name: 'event-stream' }
  const aborter = new AbortController()
  const leave = () => aborter.abort()
  let silence: GatewayError | undefined
  const onDead = () => {
    silence = unreachable(
      `Nothing comes from ${http.baseUrl}: it does not answer, or something in between holds event streams back.`,
    )
    leave()
  }
  const watched = watch(http.platform, { onDead })
  signal.addEventListener('abort', leave)
  try {
    const { response, untimed } = await http.open('GET', `${follower.path}/events`, {
      query: follower.query(),
      headers: { accept: 'text/event-stream' },
      signal: aborter.signal,
    })
    untimed()
    const isEmpty = response.status === 204
    if (isEmpty && follower.canEnd) return { isComplete: true }
    const type = response.headers.get('content-type')
    if (isEmpty || (type && !type.startsWith('text/event-stream'))) throw strange('no event stream')
    // of a fetch as React Native has it; one that a socket may stand in for, the next time, is tried again
    if (!hasStream(response))
      throw new GatewayError('This fetch has no streams: give createClient one that has, or a WebSocket.', {
        status: isOnlyWay ? response.status : 0,
        code: 'SG_CLIENT_NO_STREAM',
      })
    for await (const data of messagesOf(response, () => watched.heard())) {
      follower.onFrame(JSON.parse(data), wire)
      if (follower.isFull(data.length)) return { isPaused: true }
    }
    return {}
  } catch (error) {
    return { error: silence ?? (error instanceof GatewayError ? error : noConnection(http, error)) }
  } finally {
    watched.stop()
    signal.removeEventListener('abort', leave)
    aborter.abort()
  }
}

const noConnection = (http: Http, cause?: unknown): GatewayError =>
  unreachable(`The connection to ${http.baseUrl} failed.`, cause)

/** The `data` of each message of an event stream. */
async function* messagesOf(response: Response, heard: () => void): AsyncGenerator<string> {
  const rest: string[] = []
  let last = ''
  for await (const text of textOf(response, heard)) {
    rest.push(text)
    // only what is new is searched: a message of many parts would be read as often as it has parts
    const isWhole = (last + text).includes('\n\n')
    last = text.at(-1) ?? last
    if (!isWhole) continue
    const messages = rest.splice(0).join('').split('\n\n')
    rest.push(messages.pop()!)
    for (const message of messages)
      for (const line of message.split('\n')) if (line.startsWith('data: ')) yield line.slice(6)
  }
}
