import { USAGE_NUMBERS, type UsageGroup } from '../../schemas/usage.js'
import type { UsageCount, UsageSum } from './store.js'

/** What all rows have that are counted, in the order in which they are kept. */
export const COUNTED = [...USAGE_NUMBERS, 'costUsd'] as const
/** Of this one the greatest is kept. */
export const GREATEST = 'approvalWaitMaxMs'

/** Nothing yet. */
export const emptySum = (): UsageSum => Object.fromEntries(COUNTED.map((name) => [name, 0])) as unknown as UsageSum

export function addTo(sum: UsageSum, count: Partial<UsageSum> | UsageCount): void {
  for (const name of COUNTED) {
    const more = count[name]
    if (more === undefined) continue
    sum[name] = name === GREATEST ? Math.max(sum[name], more) : sum[name] + more
  }
}

/** In the order of the parts that they are summed by. */
export const inOrder =
  (by: readonly UsageGroup[]) =>
  (a: UsageSum, b: UsageSum): number => {
    for (const group of by) {
      const [left, right] = [a[group] ?? '', b[group] ?? '']
      if (left !== right) return left < right ? -1 : 1
    }
    return 0
  }
