import { tokensOf, type UsageRow } from './usage.js'

/** What can be plotted of usage, and of which parts each is stacked. Pure. */

export const MEASURES = ['tokens', 'cost', 'turns', 'approvals'] as const
export type Measure = (typeof MEASURES)[number]

interface Series {
  /** Its text. */
  name: string
  /** Its colour. */
  tone: 'first' | 'second' | 'third' | 'rest' | 'bad'
  of: (row: UsageRow) => number
}

export const SERIES: Readonly<Record<Measure, readonly Series[]>> = {
  tokens: [
    { name: 'inputTokens', tone: 'first', of: (row) => row.inputTokens },
    { name: 'outputTokens', tone: 'second', of: (row) => row.outputTokens },
    { name: 'cacheCreationTokens', tone: 'third', of: (row) => row.cacheCreationTokens },
    { name: 'cacheReadTokens', tone: 'rest', of: (row) => row.cacheReadTokens },
  ],
  cost: [{ name: 'costUsd', tone: 'first', of: (row) => row.costUsd ?? 0 }],
  turns: [
    { name: 'turnsSucceeded', tone: 'first', of: (row) => row.turnsSucceeded },
    { name: 'turnsFailed', tone: 'bad', of: (row) => row.turnsFailed },
    { name: 'turnsInterrupted', tone: 'rest', of: (row) => row.turnsInterrupted },
  ],
  approvals: [
    { name: 'approvalsAnswered', tone: 'first', of: (row) => row.approvalsAnswered },
    { name: 'approvalsExpired', tone: 'bad', of: (row) => row.approvalsExpired },
    {
      name: 'approvalsOther',
      tone: 'rest',
      of: (row) => Math.max(0, row.approvalsAsked - row.approvalsAnswered - row.approvalsExpired),
    },
  ],
}

export function valueOfMeasure(measure: Measure, row: UsageRow): number {
  switch (measure) {
    case 'tokens':
      return tokensOf(row)
    case 'cost':
      return row.costUsd ?? 0
    case 'turns':
      return row.turns
    case 'approvals':
      return row.approvalsAsked
  }
}
