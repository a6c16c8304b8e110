import type { InboxCount, InboxItem, ListInboxQuery } from '../../schemas/notifications.js'
import { encodeOrder, MAX_PAGE, type Page, PageBuilder } from '../lib/paging.js'
import { type Principal, visibleProfiles } from '../principal.js'
import { type Inbox, type InboxRow, sumOf, type WhoSees } from './inbox.js'

/** What one node asks another, for a caller that it knows itself. */
export interface InboxQuestion {
  /** Absent: of all. */
  profiles?: readonly string[] | undefined
  query: ListInboxQuery
}

export interface InboxAnswer {
  count: InboxCount
  rows: InboxRow[]
  isMore: boolean
}

/** Asks every other node. @returns what those gave that answered in time, by their numbers */
export type AskNodes = (question: InboxQuestion) => Promise<Map<number, InboxAnswer>>

const questionOf = (query: ListInboxQuery, principal: Principal): InboxQuestion => ({
  query,
  profiles: visibleProfiles(principal),
})

/** What waits at this node, for another one that asks. */
export function answerNode(inbox: Inbox, { profiles, query }: InboxQuestion): InboxAnswer {
  const who: WhoSees = { allowedProfiles: profiles && new Set(profiles) }
  return { count: inbox.countHere(who), ...inbox.rows(query, who) }
}

/**
 * One page of what waits at all nodes: places are different over all of them, so that a cursor goes on at any. A node that does not answer
 * is left out: what waits there is on a page again when it, or whoever has its sessions then, answers.
 */
export async function pageOverNodes(
  inbox: Inbox,
  query: ListInboxQuery,
  principal: Principal,
  ask: AskNodes,
): Promise<Page<InboxItem>> {
  const own = inbox.rows(query, principal)
  const found = [own, ...(await ask(questionOf(query, principal))).values()]
  // behind the last row of a page that has more there may be others, which come first
  const complete = Math.min(
    ...found.map(({ rows, isMore }) => (isMore ? rows.at(-1)!.order : Number.POSITIVE_INFINITY)),
  )
  const rows = found.flatMap(({ rows }) => rows).sort((a, b) => a.order - b.order)
  const page = new PageBuilder<InboxItem>(query.limit ?? MAX_PAGE)
  let last: InboxRow | undefined
  for (const row of rows) {
    if (row.order > complete || !page.add(row.item)) break
    last = row
  }
  const isMore = page.items.length < rows.length || found.some(({ isMore }) => isMore)
  return { items: page.items, next: isMore && last ? encodeOrder(last.order) : undefined }
}

/** What waits at all nodes; of one that does not answer, what it told last. */
export async function countOverNodes(inbox: Inbox, principal: Principal, ask: AskNodes): Promise<InboxCount> {
  const answers = await ask(questionOf({ limit: 1 }, principal))
  const silent = inbox.elsewhere.filter((n) => !answers.has(n))
  return sumOf([
    inbox.countHere(principal),
    ...[...answers.values()].map(({ count }) => count),
    ...silent.map((n) => inbox.countAt(n, principal)),
  ])
}
