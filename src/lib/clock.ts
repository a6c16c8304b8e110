import { randomUUID } from 'node:crypto'
import { startLongTimer } from './long-timer.js'

export interface Timer {
  cancel(): void
}

/** Time as the domain sees it; tests pass a virtual one. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number
  /** Calls `run` once after `delayMs`, however long that is; never before. Does not keep the process alive. */
  after(delayMs: number, run: () => void): Timer
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (delayMs, run) => startLongTimer(delayMs, run),
}

/**
 * 122 random bits, as every id of the contract that is ours to choose. Node builds a UUID as a rope of some fifteen strings;
 * `toLowerCase` has nothing to change and makes one string of it, which takes 56 bytes instead of 480.
 */
export const newId = (): string => randomUUID().toLowerCase()
