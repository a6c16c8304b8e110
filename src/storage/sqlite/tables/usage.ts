import type { UsageCount, UsageKey, UsageSum } from '../../../usage/store.js'
import { addTo, COUNTED, emptySum, GREATEST } from '../../../usage/sums.js'
import type { OperationsOf } from '../../sql/operations.js'
import { columnOf, USAGE_KEY } from '../../sql/rows.js'
import type { Database, Statement } from '../driver.js'
import { onRollback } from '../transaction.js'

/** What is counted in the transaction under way: however often a batch counts for a key, it is added once, at the end. */
class Counted {
  static readonly #all = new WeakMap<Database, Counted>()
  readonly #add: Statement
  readonly #sums = new Map<string, UsageKey & UsageSum>()

  static in(db: Database): Counted {
    const known = Counted.#all.get(db) ?? new Counted(db)
    Counted.#all.set(db, known)
    return known
  }

  private constructor(db: Database) {
    const columns = COUNTED.map(columnOf)
    const added = COUNTED.map((name) => {
      const column = columnOf(name)
      return `${column} = ${name === GREATEST ? `max(${column}, excluded.${column})` : `${column} + excluded.${column}`}`
    })
    this.#add = db.prepare(
      `INSERT INTO usage_sums (${[...USAGE_KEY, ...columns].join(', ')}) VALUES (${[...USAGE_KEY, ...columns].map(() => '?').join(', ')})
       ON CONFLICT (${USAGE_KEY.join(', ')}) DO UPDATE SET ${added.join(', ')}`,
    )
    onRollback(db, () => this.#sums.clear())
  }

  count(count: UsageCount): void {
    const { day, profile, agent, person } = count
    const key = JSON.stringify([day, profile, agent, person])
    const sum = this.#sums.get(key) ?? { ...emptySum(), day, profile, agent, person }
    addTo(sum, count)
    this.#sums.set(key, sum)
  }

  write(): void {
    for (const sum of this.#sums.values())
      this.#add.run(...USAGE_KEY.map((name) => sum[name]), ...COUNTED.map((name) => sum[name]))
    this.#sums.clear()
  }
}

/** Adds to a sum, in the transaction of the event that is counted, once `writeCounted` is called. */
export function usageKeeper(db: Database): (count: UsageCount) => void {
  const counted = Counted.in(db)
  return (count) => counted.count(count)
}

/** Writes down what was counted in the transaction under way. */
export const writeCounted = (db: Database): void => Counted.in(db).write()

/** Daily sums of what was used. */
export function usageOperations(db: Database): OperationsOf<'usage'> {
  const add = usageKeeper(db)
  const sums = COUNTED.map((name) => `${name === GREATEST ? 'max' : 'sum'}(${columnOf(name)}) AS ${name}`).join(', ')

  return {
    'usage.add'(counts) {
      for (const count of counts) add(count)
    },
    'usage.read'({ from, to, profiles }, by, limit) {
      writeCounted(db)
      const groups = USAGE_KEY.filter((name) => by.includes(name)).sort((a, b) => by.indexOf(a) - by.indexOf(b))
      const list = groups.join(', ')
      const read = db.prepare(
        `SELECT ${list}, ${sums} FROM usage_sums
         WHERE day >= ?1 AND day <= ?2 AND (?3 IS NULL OR profile IN (SELECT value FROM json_each(?3)))
         GROUP BY ${list} ORDER BY ${list} LIMIT ?4`,
      )
      return read.all(from, to, profiles ? JSON.stringify(profiles) : null, limit).map((row) => ({ ...row }))
    },
  }
}
