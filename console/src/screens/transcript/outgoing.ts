import { effect, type Signal, signal } from '@preact/signals'
import type { SessionEvent } from '../../../../client/index.js'
import type { client } from '../../api.js'
import { newId } from '../../model/new-id.js'
import { keep, keptAs, keptUntilLeft } from '../../state/kept.js'
import { texts } from '../../texts.js'

/** A message that was written here and is not in the log yet. */
export interface Outgoing {
  id: string
  text: string
  /** Why it was not taken; undefined while it is on its way. */
  error?: unknown
}

/** Of a message from before the page was loaded anew: days may have passed since, so a person says whether it is sent again. */
export const UNSURE = new Error(texts.transcript.unsure)

/** By session: a message goes on to be sent while other screens are looked at, and one that was not taken waits there. */
const outgoings = keptUntilLeft<Signal<readonly Outgoing[]>>()

function outgoingOf(id: string): Signal<readonly Outgoing[]> {
  const known = outgoings.get(id)
  if (known) return known
  const name = `unsent.${id}`
  const found = signal<readonly Outgoing[]>(
    (keptAs<Outgoing[]>(name) ?? []).map((message) => ({ ...message, error: UNSURE })),
  )
  outgoings.set(id, found)
  effect(() => {
    const unsent = found.value.map(({ id, text }) => ({ id, text }))
    // of somebody who is gone nothing is kept any more
    if (outgoings.get(id) === found) keep(name, unsent.length > 0 ? unsent : undefined)
  })
  return found
}

/** What was written to a session here and is not in its log yet. */
export class OutgoingMessages {
  readonly messages: Signal<readonly Outgoing[]>
  readonly #session: ReturnType<typeof client.session>
  readonly #isAtEnd: () => boolean

  /** @param isAtEnd whether the end of the log is looked at, where what was taken appears */
  constructor(session: ReturnType<typeof client.session>, isAtEnd: () => boolean) {
    this.#session = session
    this.#isAtEnd = isAtEnd
    this.messages = outgoingOf(session.id)
  }

  async send(text: string, whenBusy: 'enqueue' | 'interrupt' = 'enqueue'): Promise<void> {
    await this.#deliver({ id: newId(), text }, whenBusy)
  }

  /** Under the same id: what was taken after all is not said twice. */
  async sendAgain({ id, text }: Outgoing): Promise<void> {
    this.drop(id)
    await this.#deliver({ id, text }, 'enqueue')
  }

  drop(id: string): void {
    this.messages.value = this.messages.value.filter((other) => other.id !== id)
  }

  /** What is in the log was taken. */
  taken(events: readonly SessionEvent[]): void {
    if (this.messages.value.length === 0) return
    const shown = new Set(events.flatMap((event) => (event.type === 'user_message' ? [event.commandId] : [])))
    if (this.messages.value.some(({ id }) => shown.has(id)))
      this.messages.value = this.messages.value.filter(({ id }) => !shown.has(id))
  }

  async #deliver(message: Outgoing, whenBusy: 'enqueue' | 'interrupt'): Promise<void> {
    this.messages.value = [...this.messages.value, message]
    try {
      await this.#session.send(message.text, { commandId: message.id, whenBusy })
      // the log shows it from now on; it may have done so before
      if (!this.#isAtEnd()) this.drop(message.id)
      else setTimeout(() => this.drop(message.id), 2_000)
    } catch (error) {
      this.messages.value = this.messages.value.map((other) => (other.id === message.id ? { ...other, error } : other))
    }
  }
}
