import { GatewayError } from '../errors.js'

/** A place among `maxSessions`. */
export interface Place {
  /** Gives back a place that no session has taken. */
  release(): void
}

export const tooMany = () =>
  new GatewayError('SG_ERR_TOO_MANY', {
    detail:
      'The gateway runs as many sessions as it may (maxSessions). Try again once one of them has ended or is parked.',
  })

/** How many sessions live, those being built included; parked and terminal ones do not. */
export class Places {
  readonly #max: number
  readonly #onRoom: () => void
  #taken = 0

  /** @param onRoom one more may live, after there were as many as may */
  constructor(max: number, onRoom: () => void) {
    this.#max = max
    this.#onRoom = onRoom
  }

  get hasRoom(): boolean {
    return this.#taken < this.#max
  }

  /** @param reserved the place that was kept for it @throws SG_ERR_TOO_MANY */
  take(reserved: Place | undefined): void {
    if (!this.hasRoom && !reserved) throw tooMany()
    this.#taken++
    reserved?.release()
  }

  /** For a session that lives again: what was confirmed to it is not refused, so that there may be more than may. */
  retake(): void {
    this.#taken++
  }

  leave(): void {
    this.#taken--
    if (this.#taken === this.#max - 1) this.#onRoom()
  }

  /** Keeps a place; undefined while there is none. Giving it back is told to nobody: who keeps it knows. */
  reserve(): Place | undefined {
    if (!this.hasRoom) return undefined
    this.#taken++
    let isKept = true
    return {
      release: () => {
        if (isKept) this.#taken--
        isKept = false
      },
    }
  }
}
