import type { InboxCount, InboxItem, ListInboxQuery, WaitingKind } from '../../schemas/notifications.js'
import { ASK_USER_QUESTION, type PermissionRequest } from '../../schemas/permissions.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { Listeners } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import { nextOf } from '../lib/node-numbers.js'
import { decodeOrder, encodeOrder, type Page, PageBuilder } from '../lib/paging.js'
import { byText, SortedList } from '../lib/sorted-list.js'
import { type Principal, profilesAsked, visible, visibleProfiles } from '../principal.js'
import type { WaitingObserver, WaitingRequest } from '../sessions/asks/waiting.js'

/** One request that waits; its words stay with its session. */
interface Entry {
  sessionId: string
  requestId: string
  kind: WaitingKind
  profile: string
  seq: number
  since: number
  order: number
  /** Whether followers know of it. */
  isTold: boolean
}

/** An item and its place in the order of all. */
export interface InboxRow {
  order: number
  item: InboxItem
}

/** Whose inbox it is: no more of a caller is needed. */
export type WhoSees = Pick<Principal, 'allowedProfiles'>

/** How many permissions and questions wait, by profile. */
export type WaitingCounts = Readonly<Record<string, readonly [permissions: number, questions: number]>>

type Lists = Record<WaitingKind, SortedList<Entry>>

/** Where the request itself is found; undefined when it has just been settled. */
export type FindRequest = (
  sessionId: string,
  requestId: string,
) => { request: PermissionRequest; session: SessionInfo } | undefined

const KINDS: readonly WaitingKind[] = ['permission', 'question']

/**
 * What waits for a person, over all sessions: kept as requests are made and settled, so that a page costs as much as it holds, however
 * many sessions there are.
 */
export class Inbox implements WaitingObserver {
  /** `changed`: something of this profile came or went; `elsewhere`: at another node. */
  readonly listeners: Listeners<{ changed: { profile: string }; elsewhere: { profile: string } }>
  readonly #find: FindRequest
  readonly #bySession = new Map<string, Map<string, Entry>>()
  readonly #byProfile = new Map<string, Lists>()
  /** Under no name: a caller may be given any as that of a profile. */
  readonly #ofAll = newLists()
  /** Which of several nodes this is. */
  readonly #node: (() => number) | undefined
  /** What waits at other nodes, as they have told it. */
  readonly #elsewhere = new Map<number, WaitingCounts>()
  #lastOrder = 0

  /** @param parts `node`: which of several this is; absent: it is the only one */
  constructor({ find, logger, node }: { find: FindRequest; logger: Logger; node?: (() => number) | undefined }) {
    this.#find = find
    this.#node = node
    this.listeners = new Listeners((error) => logger.error({ err: error }, 'a follower of the inbox failed'))
  }

  // ── what sessions tell ────────────────────────────────────────────────────────────────────────────────────────────────────

  nextOrder(now: number): number {
    this.#lastOrder = this.#node ? nextOf(this.#node(), this.#lastOrder, now) : Math.max(this.#lastOrder + 1, now)
    return this.#lastOrder
  }

  onAsked(waiting: WaitingRequest): void {
    this.#place(waiting)
  }

  onWaiting(waiting: WaitingRequest): void {
    const entry = this.#place(waiting)
    if (entry.isTold) return
    entry.isTold = true
    this.listeners.emit('changed', { profile: entry.profile })
  }

  #place({ sessionId, profile, request, place }: WaitingRequest): Entry {
    const known = this.#bySession.get(sessionId) ?? new Map<string, Entry>()
    const placed = known.get(request.id)
    if (placed) return placed
    const kind = request.toolName === ASK_USER_QUESTION ? 'question' : 'permission'
    const entry: Entry = { sessionId, requestId: request.id, kind, profile, ...place, isTold: false }
    this.#lastOrder = Math.max(this.#lastOrder, place.order)
    known.set(request.id, entry)
    this.#bySession.set(sessionId, known)
    for (const lists of [this.#listsOf(profile), this.#ofAll]) lists[kind].add(entry)
    return entry
  }

  onResolved(sessionId: string, requestId: string): void {
    const known = this.#bySession.get(sessionId)
    const entry = known?.get(requestId)
    if (!known || !entry) return
    known.delete(requestId)
    if (known.size === 0) this.#bySession.delete(sessionId)
    const { profile, kind } = entry
    for (const lists of [this.#listsOf(profile), this.#ofAll]) lists[kind].delete(entry)
    if (KINDS.every((kind) => this.#listsOf(profile)[kind].length === 0)) this.#byProfile.delete(profile)
    // also of one that they were not told of: a count that somebody asked for, or that was told with another one, may have it in it
    this.listeners.emit('changed', { profile })
  }

  onNothingWaits(sessionId: string): void {
    for (const requestId of [...(this.#bySession.get(sessionId)?.keys() ?? [])]) this.onResolved(sessionId, requestId)
  }

  #listsOf(profile: string): Lists {
    let lists = this.#byProfile.get(profile)
    if (!lists) {
      lists = newLists()
      this.#byProfile.set(profile, lists)
    }
    return lists
  }

  // ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** One page of what a caller may answer, oldest first. @throws SG_ERR_VALIDATION on a cursor that is none of ours */
  page(query: ListInboxQuery, principal: WhoSees): Page<InboxItem> {
    const { rows, isMore } = this.rows(query, principal)
    return { items: rows.map(({ item }) => item), next: isMore ? encodeOrder(rows.at(-1)!.order) : undefined }
  }

  /** As `page`, each with its place. @returns `isMore`: there are others after them */
  rows(query: ListInboxQuery, principal: WhoSees): { rows: InboxRow[]; isMore: boolean } {
    const after = query.cursor === undefined ? 0 : decodeOrder(query.cursor)
    const page = new PageBuilder<InboxItem>(query.limit)
    const rows: InboxRow[] = []
    for (const entry of this.#entries(query, principal, after)) {
      const item = this.#itemOf(entry)
      if (!item) continue
      if (!page.add(item)) return { rows, isMore: true }
      rows.push({ order: entry.order, item })
    }
    return { rows, isMore: false }
  }

  /** What waits, at other nodes too, as far as they have told it. */
  count(principal: WhoSees): InboxCount {
    return sumOf([this.countHere(principal), ...[...this.#elsewhere.keys()].map((n) => this.countAt(n, principal))])
  }

  countHere(principal: WhoSees): InboxCount {
    const count = { permissions: 0, questions: 0 }
    for (const { permission, question } of this.#listsSeen(visibleProfiles(principal))) {
      count.permissions += permission.length
      count.questions += question.length
    }
    return count
  }

  countAt(node: number, principal: WhoSees): InboxCount {
    const seen = Object.entries(this.#elsewhere.get(node) ?? {}).filter(([name]) => visible(principal, name))
    return sumOf(seen.map(([, [permissions, questions]]) => ({ permissions, questions })))
  }

  /** What waits here, by profile. */
  get waiting(): WaitingCounts {
    const profiles = [...this.#byProfile]
    return Object.fromEntries(profiles.map(([name, lists]) => [name, [lists.permission.length, lists.question.length]]))
  }

  /** Another node says what waits there; undefined: it is gone. */
  setElsewhere(node: number, waiting: WaitingCounts | undefined): void {
    const before = this.#elsewhere.get(node) ?? {}
    if (waiting) this.#elsewhere.set(node, waiting)
    else this.#elsewhere.delete(node)
    for (const profile of new Set([...Object.keys(before), ...Object.keys(waiting ?? {})]))
      if (String(before[profile]) !== String(waiting?.[profile])) this.listeners.emit('elsewhere', { profile })
  }

  /** Which nodes have said what waits there. */
  get elsewhere(): number[] {
    return [...this.#elsewhere.keys()]
  }

  #entries({ sessionId, profile, kind }: ListInboxQuery, principal: WhoSees, after: number): Iterable<Entry> {
    if (sessionId !== undefined) {
      const isWanted = (entry: Entry) =>
        entry.order > after &&
        visible(principal, entry.profile) &&
        (profile === undefined || entry.profile === profile) &&
        (kind === undefined || entry.kind === kind)
      return [...(this.#bySession.get(sessionId)?.values() ?? [])].filter(isWanted).sort(byOrder)
    }
    const seen = profilesAsked(principal, profile)
    const lists = this.#listsSeen(seen).flatMap((ofProfile) =>
      (kind === undefined ? KINDS : [kind]).map((kind) => ofProfile[kind]),
    )
    return merged(lists.map((list) => list.ascending(({ order }) => order > after)))
  }

  /** @param profiles undefined: all */
  #listsSeen(profiles: readonly string[] | undefined): Lists[] {
    return profiles ? [...new Set(profiles)].flatMap((name) => this.#byProfile.get(name) ?? []) : [this.#ofAll]
  }

  #itemOf({ sessionId, requestId, kind, since, seq }: Entry): InboxItem | undefined {
    const found = this.#find(sessionId, requestId)
    if (!found) return undefined
    const { request, session } = found
    const { id, title, profile, cwd, jobId } = session
    const { expiresAt } = request
    return {
      ...{ kind, request, since, seq },
      session: { id, title, profile, cwd, ...(jobId !== undefined && { jobId }) },
      ...(expiresAt !== undefined && { expiresAt }),
    }
  }
}

export const sumOf = (counts: readonly InboxCount[]): InboxCount => ({
  permissions: counts.reduce((sum, { permissions }) => sum + permissions, 0),
  questions: counts.reduce((sum, { questions }) => sum + questions, 0),
})

const byOrder = (a: Entry, b: Entry): number => a.order - b.order || byText(a.requestId, b.requestId)

const newLists = (): Lists => ({ permission: new SortedList(byOrder), question: new SortedList(byOrder) })

/** Several lists in order as one; no more of each is read than is needed. */
function* merged(lists: Iterator<Entry>[]): Generator<Entry> {
  const heads = lists.flatMap((list) => {
    const { value } = list.next()
    return value ? [{ value: value as Entry, list }] : []
  })
  while (heads.length > 0) {
    let first = 0
    for (let at = 1; at < heads.length; at++) if (byOrder(heads[at]!.value, heads[first]!.value) < 0) first = at
    const head = heads[first]!
    yield head.value
    const { value } = head.list.next()
    if (value) head.value = value as Entry
    else heads.splice(first, 1)
  }
}
