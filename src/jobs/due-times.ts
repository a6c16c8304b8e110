import type { Clock } from '../lib/clock.js'
import { SortedList } from '../lib/sorted-list.js'
import { WallAlarm } from '../lib/wall-alarm.js'

interface Due {
  at: number
  id: string
}

/** When queued jobs that have to wait fall due; one timer for all of them. */
export class DueTimes {
  readonly #clock: Clock
  readonly #alarm: WallAlarm
  readonly #byId = new Map<string, Due>()
  readonly #inOrder = new SortedList<Due>((a, b) => a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))

  /** @param onDue called when at least one job fell due */
  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock
    this.#alarm = new WallAlarm(clock, () => {
      this.#dropDue()
      onDue()
    })
  }

  set(id: string, at: number): void {
    this.delete(id)
    const due = { at, id }
    this.#byId.set(id, due)
    this.#inOrder.add(due)
    this.#alarm.set(this.#inOrder.first?.at)
  }

  delete(id: string): void {
    const due = this.#byId.get(id)
    if (!due) return
    this.#byId.delete(id)
    this.#inOrder.delete(due)
    this.#alarm.set(this.#inOrder.first?.at)
  }

  stop(): void {
    this.#alarm.set(undefined)
  }

  #dropDue(): void {
    const now = this.#clock.now()
    for (let first = this.#inOrder.first; first && first.at <= now; first = this.#inOrder.first) {
      this.#inOrder.delete(first)
      this.#byId.delete(first.id)
    }
    this.#alarm.set(this.#inOrder.first?.at)
  }
}
