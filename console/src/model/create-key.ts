import { newId } from './new-id.js'

/** Names what a form makes: whoever presses again, because the answer to the first time was lost, means the same one. */
export class CreateKey {
  #body: string | undefined
  #key = ''

  /** @param body what is to be made; another one is another thing · @returns the options of the create */
  for(body: unknown): { idempotencyKey: string } {
    const text = JSON.stringify(body)
    if (text !== this.#body) this.#key = newId()
    this.#body = text
    return { idempotencyKey: this.#key }
  }
}
