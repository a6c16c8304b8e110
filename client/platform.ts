/** What a socket has to offer: the platform's `WebSocket`, or that of `ws`. Each has types of events of its own, with what is read here in them. */
export interface SocketLike {
  send(data: string): void
  close(code?: number, reason?: string): void
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
}
/** `options` are for implementations that can send headers; browsers ignore them. */
export type SocketConstructor = new (
  url: string,
  protocols: string[],
  options: { headers: Record<string, string> },
) => SocketLike

export type Fetch = (url: string, init?: RequestInit) => Promise<Response>

/** Everything that comes from outside: the network, time and chance. */
export interface Platform {
  fetch: Fetch
  WebSocket: SocketConstructor | undefined
  now(): number
  /** @returns a function that cancels it */
  after(delayMs: number, run: () => void): () => void
  /** From 0 up to 1. */
  random(): number
  /** At least 128 random bits. */
  newId(): string
  /** Calls back when the device has a network again, where the platform can tell. */
  onOnline(listener: () => void): () => void
}

/** 24 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

export const platform: Platform = {
  fetch: (url, init) => fetch(url, init),
  get WebSocket() {
    return (globalThis as { WebSocket?: SocketConstructor }).WebSocket
  },
  now: () => Date.now(),
  after(delayMs, run) {
    // a timer that is set for longer than it can count runs at once
    const timer = setTimeout(run, Math.min(delayMs, MAX_TIMER_MS))
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
  // not randomUUID: pages that are not on https do not have it
  newId: () =>
    Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(''),
  onOnline(listener) {
    const page = globalThis as Partial<Pick<EventTarget, 'addEventListener' | 'removeEventListener'>>
    page.addEventListener?.('online', listener)
    return () => page.removeEventListener?.('online', listener)
  },
}

/** As the signal's own `throwIfAborted`, which that of React Native lacks. */
export function stopIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw signal.reason
}

/** Waits; ends early, and rejects with the signal's reason, when it is aborted. */
export function sleep({ after }: Pick<Platform, 'after'>, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    stopIfAborted(signal)
    const onAbort = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = after(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort)
  })
}

/** What comes of a promise that knows no signals, unless the signal comes first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal?.reason)
    promise.then(resolve, reject).finally(() => signal?.removeEventListener('abort', onAbort))
    stopIfAborted(signal)
    signal?.addEventListener('abort', onAbort)
  })
}

const BASE_MS = 500
const CAP_MS = 30_000

/** How long to wait before try number `attempt` (from 0): exponential with full jitter, so that many clients do not come back together. */
export const backoffMs = ({ random }: Pick<Platform, 'random'>, attempt: number): number =>
  random() * Math.min(CAP_MS, BASE_MS * 2 ** Math.min(attempt, 16))
