import type { Clock } from './clock.js'
import { Hold } from './hold.js'

/**
 * Says whether anything may be done, and gives a clock that keeps to it: a timer that comes due while it stands still acts when it goes on,
 * in the order in which they came due, and never once it is over.
 */
export class Standstill {
  readonly clock: Clock
  readonly #outer: Clock
  readonly #hold = new Hold()
  /** What came due. */
  readonly #due = new Set<() => void>()
  #isOver = false
  /** Called before it is said whether anything may be done. */
  look: (() => void) | undefined

  constructor(outer: Clock) {
    this.#outer = outer
    this.clock = {
      now: () => outer.now(),
      steady: () => outer.steady(),
      after: this.through((delayMs, run) => outer.after(delayMs, run)),
    }
  }

  /** Whether nothing may be done: not now, or not any more. */
  get stands(): boolean {
    this.look?.()
    return this.#hold.over !== undefined
  }

  /** Whether nothing goes on any more, ever. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Present while it stands still; resolves when it goes on. */
  get goesOn(): Promise<void> | undefined {
    return this.#hold.over
  }

  /** Resolves when something may be done, or the signal says that nobody waits. */
  passed(signal: AbortSignal): Promise<void> {
    return this.#hold.passed(signal)
  }

  stop(): void {
    this.#hold.put()
  }

  goOn(): void {
    if (this.#isOver) return
    this.#hold.lift()
    for (const act of [...this.#due]) act()
  }

  end(): void {
    this.#isOver = true
    this.#hold.put()
    this.#due.clear()
  }

  /** Timers that keep to the standstill. */
  through(after: Clock['after']): Clock['after'] {
    return (delayMs, run, always) => {
      if (always) return after(delayMs, run, always)
      let isCancelled = false
      const act = () => {
        if (isCancelled || this.#isOver) return
        if (this.stands) this.#due.add(act)
        // not in the midst of what makes it go on
        else if (this.#due.delete(act)) this.#outer.after(0, act)
        else run()
      }
      const timer = after(delayMs, act)
      return {
        cancel: () => {
          isCancelled = true
          timer.cancel()
          this.#due.delete(act)
        },
      }
    }
  }
}
