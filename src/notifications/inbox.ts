import type { InboxCount, InboxItem, ListInboxQuery, WaitingKind } from '../../schemas/notifications.js'
import { ASK_USER_QUESTION, type PermissionRequest } from '../../schemas/permissions.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { Listeners } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import { decodeOrder, encodeOrder, type Page, PageBuilder } from '../lib/paging.js'
import { SortedList } from '../lib/sorted-list.js'
import { type Principal, visible, visibleProfiles } from '../principal.js'
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
}

type Lists = Record<WaitingKind, SortedList<Entry>>

/** Where the request itself is found; undefined when it has just been settled. */
export type FindRequest = (
  sessionId: string,
  requestId: string,
) => { request: PermissionRequest; session: SessionInfo } | undefined

const KINDS: readonly WaitingKind[] = ['permission', 'question']
/** Stands for all profiles; no profile has such a name. */
const ALL = '\0'

/**
 * What waits for a person, over all sessions: kept as requests are made and settled, so that a page costs as much as it holds, however
 * many sessions there are.
 */
export class Inbox implements WaitingObserver {
  /** `changed`: something of this profile came or went. */
  readonly listeners: Listeners<{ changed: { profile: string } }>
  readonly #find: FindRequest
  readonly #bySession = new Map<string, Map<string, Entry>>()
  readonly #byProfile = new Map<string, Lists>()
  #lastOrder = 0

  constructor({ find, logger }: { find: FindRequest; logger: Logger }) {
    this.#find = find
    this.listeners = new Listeners((error) => logger.error({ err: error }, 'a follower of the inbox failed'))
  }

  // ── what sessions tell ────────────────────────────────────────────────────────────────────────────────────────────────────

  nextOrder(now: number): number {
    this.#lastOrder = Math.max(this.#lastOrder + 1, now)
    return this.#lastOrder
  }

  onWaiting({ sessionId, profile, request, place }: WaitingRequest): void {
    const known = this.#bySession.get(sessionId) ?? new Map<string, Entry>()
    if (known.has(request.id)) return
    const kind = request.toolName === ASK_USER_QUESTION ? 'question' : 'permission'
    const entry: Entry = { sessionId, requestId: request.id, kind, profile, ...place }
    this.#lastOrder = Math.max(this.#lastOrder, place.order)
    known.set(request.id, entry)
    this.#bySession.set(sessionId, known)
    for (const name of [profile, ALL]) this.#listsOf(name)[kind].add(entry)
    this.listeners.emit('changed', { profile })
  }

  onResolved(sessionId: string, requestId: string): void {
    const known = this.#bySession.get(sessionId)
    const entry = known?.get(requestId)
    if (!known || !entry) return
    known.delete(requestId)
    if (known.size === 0) this.#bySession.delete(sessionId)
    const { profile, kind } = entry
    for (const name of [profile, ALL]) this.#listsOf(name)[kind].delete(entry)
    if (KINDS.every((kind) => this.#listsOf(profile)[kind].length === 0)) this.#byProfile.delete(profile)
    this.listeners.emit('changed', { profile })
  }

  onRemoved(sessionId: string): void {
    for (const requestId of [...(this.#bySession.get(sessionId)?.keys() ?? [])]) this.onResolved(sessionId, requestId)
  }

  #listsOf(profile: string): Lists {
    let lists = this.#byProfile.get(profile)
    if (!lists) {
      lists = { permission: new SortedList(byOrder), question: new SortedList(byOrder) }
      this.#byProfile.set(profile, lists)
    }
    return lists
  }

  // ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** One page of what a caller may answer, oldest first. @throws SG_ERR_VALIDATION on a cursor that is none of ours */
  page(query: ListInboxQuery, principal: Principal): Page<InboxItem> {
    const after = query.cursor === undefined ? 0 : decodeOrder(query.cursor)
    const page = new PageBuilder<InboxItem>(query.limit)
    let last: Entry | undefined
    for (const entry of this.#entries(query, principal, after)) {
      const item = this.#itemOf(entry)
      if (!item) continue
      if (!page.add(item)) return { items: page.items, next: encodeOrder(last!.order) }
      last = entry
    }
    return { items: page.items, next: undefined }
  }

  count(principal: Principal): InboxCount {
    const count = { permissions: 0, questions: 0 }
    for (const name of new Set(visibleProfiles(principal) ?? [ALL])) {
      const lists = this.#byProfile.get(name)
      count.permissions += lists?.permission.length ?? 0
      count.questions += lists?.question.length ?? 0
    }
    return count
  }

  #entries({ sessionId, profile, kind }: ListInboxQuery, principal: Principal, after: number): Iterable<Entry> {
    if (sessionId !== undefined) {
      const isWanted = (entry: Entry) =>
        entry.order > after &&
        visible(principal, entry.profile) &&
        (profile === undefined || entry.profile === profile) &&
        (kind === undefined || entry.kind === kind)
      return [...(this.#bySession.get(sessionId)?.values() ?? [])].filter(isWanted).sort(byOrder)
    }
    const seen =
      profile === undefined ? (visibleProfiles(principal) ?? [ALL]) : visible(principal, profile) ? [profile] : []
    const lists = [...new Set(seen)].flatMap((name) => {
      const ofProfile = this.#byProfile.get(name)
      return ofProfile ? (kind === undefined ? KINDS : [kind]).map((kind) => ofProfile[kind]) : []
    })
    return merged(lists.map((list) => list.ascending(({ order }) => order > after)))
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

const byOrder = (a: Entry, b: Entry): number =>
  a.order - b.order || (a.requestId < b.requestId ? -1 : a.requestId > b.requestId ? 1 : 0)

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
