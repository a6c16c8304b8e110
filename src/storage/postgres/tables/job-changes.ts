import type { Statement } from '../pipeline.js'
import { statement } from '../plan.js'
import { integerArray, textArray } from '../values.js'

/** What becomes of a job that is as it was read. */
export interface JobChange {
  id: string
  /** As it was read. */
  rev: number
  status: string
  nextRunAt: number | null
  ready: boolean | null
  finishedAt: number | null
  begins: boolean
  info: string
}

const CHANGE = 'SELECT @change_jobs_1($1, $2, $3, $4, $5, $6, $7, $8, $9)'

const texts = (values: readonly (string | number | boolean | null)[]): Buffer =>
  textArray(values.map((value) => (value === null ? null : String(value))))

/** Changes of many jobs at once: one statement, as those that end in one turn are written together. */
export class JobChanges {
  readonly #me: number
  readonly #changes = new Map<string, JobChange>()

  /** @param me whose they are while they are under way */
  constructor(me: number) {
    this.#me = me
  }

  /** @returns false: it is among them already */
  add(change: JobChange): boolean {
    if (this.#changes.has(change.id)) return false
    this.#changes.set(change.id, change)
    return true
  }

  statement(): Statement {
    const all = [...this.#changes.values()]
    return statement(
      CHANGE,
      textArray(all.map(({ id }) => id)),
      integerArray(all.map(({ rev }) => rev)),
      textArray(all.map(({ status }) => status)),
      texts(all.map(({ nextRunAt }) => nextRunAt)),
      texts(all.map(({ ready }) => ready)),
      texts(all.map(({ finishedAt }) => finishedAt)),
      texts(all.map(({ begins }) => begins)),
      textArray(all.map(({ info }) => info)),
      this.#me,
    )
  }
}
