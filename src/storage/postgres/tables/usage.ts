import type { UsageSum } from '../../../usage/store.js'
import { COUNTED, GREATEST } from '../../../usage/sums.js'
import { columnOf, USAGE_KEY } from '../../sql/rows.js'
import { does, type Plans, rowsOf } from '../plan.js'
import { textArray } from '../values.js'
import { NOBODY, ridingStatements } from './riding.js'

const SUMS = COUNTED.map((name) => `${name === GREATEST ? 'max' : 'sum'}(${columnOf(name)}) AS "${name}"`).join(', ')

/** Daily sums of what was used. */
export const usagePlans = {
  'usage.add': (usage) => does(...ridingStatements({ usage }, NOBODY, null)),
  'usage.read'({ from, to, profiles }, by, limit) {
    const groups = USAGE_KEY.filter((name) => by.includes(name)).sort((a, b) => by.indexOf(a) - by.indexOf(b))
    const list = groups.join(', ')
    const read = `SELECT ${list}, ${SUMS} FROM @usage_sums
      WHERE day >= $1 AND day <= $2 AND ($3::text[] IS NULL OR profile = ANY ($3)) GROUP BY ${list} ORDER BY ${list} LIMIT $4`
    return rowsOf<UsageSum>(read, from, to, profiles ? textArray(profiles) : null, limit)
  },
} satisfies Partial<Plans>
