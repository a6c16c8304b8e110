import { texts } from './texts.js'

/** A part of the page that did not come; the gateway has another build since it was upgraded. */
export class NotLoaded extends Error {
  constructor(cause: unknown) {
    super(texts.shell.failedToLoad, { cause })
  }
}

/** What an `import()` gives, with a sentence for people where it fails. */
export const loaded = <T>(part: Promise<T>): Promise<T> =>
  part.catch((cause) => {
    throw new NotLoaded(cause)
  })
