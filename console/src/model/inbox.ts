import type { InboxItem, SessionEvent } from '../../../client/index.js'
import { questionsOf } from './questions.js'
import { summaryOf as tellingOf } from './tool-summary.js'

/** What waits for a person, and what became of it while it was on the screen. Pure. */

export type Behavior = 'allow' | 'deny'

/** How a request was settled, as the session's log tells it. */
export type Settled = Pick<
  Extract<SessionEvent, { type: 'permission_resolved' }>,
  'behavior' | 'resolvedBy' | 'by' | 'message' | 'ts'
>

/**
 * `waiting`: nobody has answered; `error`: our answer was not taken, or did not get there.
 * `mine`: our answer was the first. `elsewhere`: another was; `how` is absent until it is known, and `null` when nobody knows.
 */
export type Fate =
  | { state: 'waiting'; error?: unknown }
  | { state: 'sending'; behavior: Behavior }
  | { state: 'mine'; behavior: Behavior }
  | { state: 'elsewhere'; how?: Settled | null }

export interface Entry {
  key: string
  item: InboxItem
  fate: Fate
}

export const keyOf = (sessionId: string, requestId: string): string => `${sessionId} ${requestId}`
export const keyOfItem = ({ session, request }: InboxItem): string => keyOf(session.id, request.id)

/**
 * What was shown, and what waits now. Nothing on the screen moves: what is settled stays where it was, what is new comes by its age.
 * @param isWhole whether `items` is all that waits; otherwise what is younger than the last of them is not touched
 * @param isAsked whether it would be among them, if it waited
 */
export function merged(
  entries: readonly Entry[],
  items: readonly InboxItem[],
  isWhole: boolean,
  isAsked: (item: InboxItem) => boolean = () => true,
): Entry[] {
  const waiting = new Map(items.map((item) => [keyOfItem(item), item]))
  const reach = isWhole ? Infinity : (items.at(-1)?.since ?? 0)
  const known = new Set<string>()
  const kept = entries.map((entry): Entry => {
    known.add(entry.key)
    const item = waiting.get(entry.key)
    if (!item && entry.fate.state === 'waiting' && entry.item.since < reach && isAsked(entry.item))
      return { ...entry, fate: { state: 'elsewhere' } }
    // one that was cut off and is asked again
    if (item && entry.fate.state === 'elsewhere') return { ...entry, item, fate: { state: 'waiting' } }
    return item && entry.fate.state === 'waiting' ? { ...entry, item } : entry
  })
  const fresh = items
    .filter((item) => !known.has(keyOfItem(item)))
    .map((item): Entry => ({ key: keyOfItem(item), item, fate: { state: 'waiting' } }))
  if (fresh.length === 0) return kept
  // a sort that keeps the order of what is equal
  return [...kept, ...fresh].sort((a, b) => a.item.since - b.item.since)
}

export const withFate = (entries: readonly Entry[], key: string, fate: Fate): Entry[] =>
  entries.map((entry) => (entry.key === key ? { ...entry, fate } : entry))

export const isWaiting = ({ fate }: Entry): boolean => fate.state === 'waiting'

export const isSettled = ({ fate }: Entry): boolean => fate.state === 'mine' || fate.state === 'elsewhere'

/** Whether an answer of ours is on its way, or did not get there. */
export const isUnsettled = ({ fate }: Entry): boolean =>
  fate.state === 'sending' || (fate.state === 'waiting' && fate.error !== undefined)

/** The entry `by` places further, or the same at an end. */
export function stepped(entries: readonly Entry[], current: string | undefined, by: 1 | -1): string | undefined {
  const at = entries.findIndex(({ key }) => key === current)
  if (at === -1) return (by === 1 ? entries.find(isWaiting) : entries.findLast(isWaiting))?.key ?? entries[0]?.key
  return entries[Math.min(Math.max(at + by, 0), entries.length - 1)]?.key
}

/** Where to go on after an answer: the next one that waits, else one before; the same when none does. */
export function nextWaiting(entries: readonly Entry[], current: string | undefined): string | undefined {
  const at = entries.findIndex(({ key }) => key === current)
  return (
    (entries.slice(at + 1).find(isWaiting) ?? entries.slice(0, Math.max(at, 0)).findLast(isWaiting))?.key ?? current
  )
}

const MAX_SUMMARY = 500

/** One line of what a tool is to run with. Bounded, however long the input is. */
export function summaryOf({ request }: Pick<InboxItem, 'request'>): string {
  const [first] = questionsOf(request) ?? []
  if (first) return first.question.slice(0, MAX_SUMMARY)
  const telling = tellingOf(request.input)
  if (telling) return telling.slice(0, MAX_SUMMARY)
  for (const name in request.input) {
    const value = request.input[name]
    if (typeof value === 'string' && value !== '') return value.slice(0, MAX_SUMMARY)
  }
  return Object.keys(request.input).slice(0, 8).join(', ')
}

/** How many of each tool, the most frequent first: what an answer to several is about. */
export function countsByTool(entries: readonly Entry[]): [tool: string, count: number][] {
  const counts = new Map<string, number>()
  for (const { item } of entries) counts.set(item.request.toolName, (counts.get(item.request.toolName) ?? 0) + 1)
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
}

export function chunksOf<T>(all: readonly T[], size: number): T[][] {
  const chunks: T[][] = []
  for (let at = 0; at < all.length; at += size) chunks.push(all.slice(at, at + size))
  return chunks
}
