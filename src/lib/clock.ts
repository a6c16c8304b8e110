import { randomFillSync } from 'node:crypto'

/** The longest delay that `setTimeout` takes; beyond it Node fires at once. */
const MAX_DELAY_MS = 2 ** 31 - 1

export interface Timer {
  cancel(): void
}

/** Time as the domain sees it; tests pass a virtual one. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number
  /**
   * Calls `run` once after `delayMs`, however long that is; never before. Does not keep the process alive.
   * @param always also while the gateway may do nothing: it only gives up waiting
   */
  after(delayMs: number, run: () => void, always?: 'always'): Timer
}

/**
 * A one-shot timer for delays of any length, `Infinity` included (it never fires). It does not keep the process alive.
 * @param delayMs milliseconds; negative and NaN count as 0
 */
export function startLongTimer(delayMs: number, run: () => void): Timer {
  let remainingMs = delayMs > 0 ? delayMs : 0
  let handle: NodeJS.Timeout | undefined
  const arm = () => {
    const stepMs = Math.min(remainingMs, MAX_DELAY_MS)
    remainingMs -= stepMs
    handle = setTimeout(remainingMs > 0 ? arm : run, stepMs)
    handle.unref()
  }
  if (remainingMs !== Infinity) arm()
  return { cancel: () => clearTimeout(handle) }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after: startLongTimer,
}

const DIGITS = Buffer.from('0123456789abcdef')
/** Where the digits of the bytes stand in the text of a UUID. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
const text = Buffer.from('00000000-0000-4000-8000-000000000000')
const random = Buffer.alloc(256 * PLACES.length)
let used = random.length

/**
 * 122 random bits as a UUID of version 4, as every id of the contract that is ours to choose. Node's own is a rope of some fifteen strings,
 * which takes 480 bytes instead of 56, and three times as long to make.
 */
export function newId(): string {
  if (used === random.length) {
    randomFillSync(random)
    used = 0
  }
  for (let index = 0; index < PLACES.length; index++) {
    const place = PLACES[index]!
    const byte = random[used++]!
    const value = index === 6 ? (byte & 0x0f) | 0x40 : index === 8 ? (byte & 0x3f) | 0x80 : byte
    text[place] = DIGITS[value >> 4]!
    text[place + 1] = DIGITS[value & 0x0f]!
  }
  return text.toString('latin1')
}
