import type { Clock } from './clock.js'
import { byText, SortedList } from './sorted-list.js'
import { WallAlarm } from './wall-alarm.js'

export interface Due {
  /** Epoch milliseconds. */
  at: number
  id: string
}

/** When things that have to wait fall due, by their ids; one timer for all of them. */
export class DueTimes {
  readonly #clock: Clock
  readonly #alarm: WallAlarm
  readonly #byId = new Map<string, Due>()
  #stopped = false
  readonly #inOrder = new SortedList<Due>((a, b) => a.at - b.at || byText(a.id, b.id))

  /** @param onDue called when at least one fell due, with those that did */
  constructor(clock: Clock, onDue: (fallen: Due[]) => void) {
    this.#clock = clock
    this.#alarm = new WallAlarm(clock, () => onDue(this.#dropDue()))
  }

  /** How many wait. */
  get size(): number {
    return this.#byId.size
  }

  set(id: string, at: number): void {
    this.delete(id)
    const due = { at, id }
    this.#byId.set(id, due)
    this.#inOrder.add(due)
    this.#setAlarm()
  }

  delete(id: string): void {
    const due = this.#byId.get(id)
    if (!due) return
    this.#byId.delete(id)
    this.#inOrder.delete(due)
    this.#setAlarm()
  }

  /** Nothing falls due any more. */
  stop(): void {
    this.#stopped = true
    this.#setAlarm()
  }

  #setAlarm(): void {
    this.#alarm.set(this.#stopped ? undefined : this.#inOrder.first?.at)
  }

  #dropDue(): Due[] {
    const fallen: Due[] = []
    const now = this.#clock.now()
    for (let first = this.#inOrder.first; first && first.at <= now; first = this.#inOrder.first) {
      this.#inOrder.delete(first)
      this.#byId.delete(first.id)
      fallen.push(first)
    }
    this.#setAlarm()
    return fallen
  }
}
