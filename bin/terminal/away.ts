import pc from 'picocolors'
import type { ConnectionState } from '../../client/index.js'
import { CommandFailure, EXIT } from './exit.js'
import { note } from './output.js'

/** So long may the gateway be away before nobody waits for it any more. */
const GIVE_UP_MS = 120_000

export interface AwayOptions {
  /** What goes on without whoever gives up, and how to come back to it. */
  goesOn: string
  /** Lets go of what is followed, and fails with this. */
  leave(failure: CommandFailure): void
  /** Goes to the beginning of a line. */
  breakLine?(): void
}

/** Says that the gateway is away and that it is back, and gives up one that stays away. */
export class Away {
  readonly #options: AwayOptions
  #giveUp: NodeJS.Timeout | undefined
  /** What went wrong last. */
  #why = ''

  constructor(options: AwayOptions) {
    this.#options = options
  }

  /** To be told what becomes of the connection. */
  readonly onConnection = (connection: ConnectionState): void => {
    const { state } = connection
    if (state === 'reconnecting') {
      this.#why = connection.error?.message ?? this.#why
      this.#onLost()
    } else if (state !== 'connecting' && this.#giveUp) {
      clearTimeout(this.#giveUp)
      this.#giveUp = undefined
      if (state === 'live') note(pc.dim('Connected again.'))
    }
  }

  #onLost(): void {
    if (this.#giveUp) return
    const { goesOn, leave, breakLine } = this.#options
    breakLine?.()
    note(pc.dim('The connection is lost. Trying again…'))
    const fail = () => {
      const said = ['The gateway cannot be reached.', this.#why, goesOn].filter(Boolean).join(' ')
      leave(new CommandFailure(said, EXIT.connection))
    }
    this.#giveUp = setTimeout(fail, GIVE_UP_MS)
  }
}
