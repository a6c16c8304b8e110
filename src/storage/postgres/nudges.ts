import { createHash } from 'node:crypto'
import type { Link } from './link.js'
import { statement } from './plan.js'
import { ASYNC } from './tables/members.js'

const PAUSE_MS = 5

/** What nodes tell each other: there may be work, one of them came or went, or something was left to nobody. */
export type Told = 'work' | 'nodes' | 'left'

const NOTIFY = 'SELECT pg_notify($1, $2)'

/** Of a schema, in a database that may have several. */
export const channelOf = (schema: string): string =>
  `session_gateway_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`

/** @param me whose own words are not told */
export function hears(link: Link, me: number, onTold: (what: Told) => void): void {
  link.client.on('notification', ({ payload = '' }) => {
    const [what, by] = payload.split(' ')
    if (by !== String(me)) onTold(what as Told)
  })
}

/** Tells the others, never inside of what is written: a commit that tells holds up all others of the database. */
export class Nudges {
  readonly #me: number
  readonly #channel: string
  #timer: NodeJS.Timeout | undefined

  constructor(me: number, schema: string) {
    this.#me = me
    this.#channel = channelOf(schema)
  }

  /** There may be work. Once in a few milliseconds, however often it is said. */
  nudge(link: Link): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.tell(link, 'work')
    }, PAUSE_MS).unref()
  }

  /** Never rejects: who did not hear it finds out by looking. */
  async tell(link: Link, what: Told): Promise<void> {
    await link.run([statement(ASYNC), statement(NOTIFY, this.#channel, `${what} ${this.#me}`)]).catch(() => {})
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
