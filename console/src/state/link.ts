import { type ReadonlySignal, signal } from '@preact/signals'
import type { ConnectionState, GatewayError } from '../../../client/index.js'

/**
 * How a stream stands, as a person is told: what was missed while it was away is said when it is back.
 * `back`: `missed` is whether there is a gap. `away`: `error` is what went wrong last, as far as anything said so.
 */
export type Link =
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'catching-up' }
  | { state: 'back'; missed: boolean; at: number }
  | { state: 'away'; retryAt: number; since: number; tries: number; error?: GatewayError }
  | { state: 'ended'; error?: unknown }

/** For how long it is said that nothing was missed. */
const SAY_BACK_MS = 6000

export class LinkState {
  readonly #link = signal<Link>({ state: 'connecting' })
  #awaySince: number | undefined
  #error: GatewayError | undefined
  #missed = false
  #hide: ReturnType<typeof setTimeout> | undefined

  get link(): ReadonlySignal<Link> {
    return this.#link
  }

  /** Some of what came was not kept. */
  onGap(): void {
    if (this.#awaySince !== undefined || this.#link.value.state === 'back') this.#missed = true
    if (this.#link.value.state === 'back') this.#back()
  }

  onConnection(connection: ConnectionState): void {
    switch (connection.state) {
      case 'connecting':
        if (this.#awaySince === undefined) this.#link.value = { state: 'connecting' }
        return
      case 'reconnecting':
        clearTimeout(this.#hide)
        this.#awaySince ??= Date.now()
        this.#error = connection.error ?? this.#error
        this.#link.value = {
          state: 'away',
          retryAt: connection.retryAt,
          tries: connection.tries,
          since: this.#awaySince,
          ...(this.#error && { error: this.#error }),
        }
        return
      case 'live':
        this.#error = undefined
        if (!connection.isSynced) this.#link.value = { state: 'catching-up' }
        else if (this.#awaySince === undefined) this.#link.value = { state: 'live' }
        else this.#back()
        return
      case 'ended':
        clearTimeout(this.#hide)
        // when it begins anew, as after a sign-in, it is back
        if (connection.error !== undefined) this.#awaySince ??= Date.now()
        this.#link.value = { state: 'ended', ...(connection.error !== undefined && { error: connection.error }) }
    }
  }

  #back(): void {
    this.#awaySince = undefined
    this.#link.value = { state: 'back', missed: this.#missed, at: Date.now() }
    clearTimeout(this.#hide)
    // what was missed is said until somebody goes elsewhere
    if (this.#missed) return
    this.#hide = setTimeout(() => {
      this.#link.value = { state: 'live' }
    }, SAY_BACK_MS)
  }
}
