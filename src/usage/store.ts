import type { UsageGroup, UsageNumbers } from '../../schemas/usage.js'

/** What a count belongs to. */
export type UsageKey = Record<UsageGroup, string>

/** Something that was counted: added to the sum of its key. */
export interface UsageCount extends UsageKey, Partial<UsageNumbers> {
  costUsd?: number
}

/** The sum of a key, as far as it was asked for. */
export type UsageSum = Partial<UsageKey> & UsageNumbers & { costUsd: number }

/** Which sums are asked for. */
export interface UsageRange {
  /** Days, both included. */
  from: string
  to: string
  /** Absent: of all. */
  profiles?: readonly string[]
}

/** Where daily sums are kept. `usageStoreConformance` says what each method does. */
export interface UsageStore {
  /** Adds; resolves when it is durable. What rides along in a write of the storage's journal needs no call of its own. */
  add(counts: readonly UsageCount[]): Promise<void>
  /** Sums by the given parts of the key, in their order; at most `limit`. `approvalWaitMaxMs` is the greatest, not the sum. */
  read(range: UsageRange, by: readonly UsageGroup[], limit: number): Promise<UsageSum[]>
}
