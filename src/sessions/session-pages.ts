import type { ListSessionsQuery, SessionInfo } from '../../schemas/sessions.js'
import { unknownProfile } from '../errors.js'
import { decodeOrder, MAX_PAGE, type Page, PageTurns, pageOf } from '../lib/paging.js'
import { type Principal, profilesAsked, UNLIMITED, visible } from '../principal.js'
import type { Archive } from './kept/archive.js'
import type { JournaledSession, ListedQuery, RestStatus } from './kept/journal.js'
import { orderOf } from './kept/journal.js'
import type { RegistryOptions } from './registry-options.js'
import { infoOf, keptInfoOf } from './session-entry.js'
import type { SessionTable } from './session-table.js'

/** With `sharing` the journal is asked for all sessions: other processes have some. */
type PagesOptions = Pick<RegistryOptions, 'sharing' | 'profilesRefreshed' | 'profileInfo'>

/** A session as a page shows it. */
interface Row {
  order: number
  info(): SessionInfo
}

/**
 * Pages of all sessions: those of the table as they are now, and among them those that are in the journal alone, as they were last written:
 * they are at rest, or another process's.
 */
export class SessionPages {
  readonly #table: SessionTable
  readonly #archive: Archive
  readonly #options: PagesOptions
  readonly #turns = new PageTurns()

  constructor(table: SessionTable, archive: Archive, options: PagesOptions) {
    this.#table = table
    this.#archive = archive
    this.#options = options
  }

  /**
   * One page of the sessions that a caller may see, newest first.
   * @throws SG_ERR_VALIDATION on a cursor that is none of ours · SG_ERR_STORE_UNAVAILABLE · SG_ERR_PROFILE_UNKNOWN of a profile that is not
   *   there and has no session left
   */
  async page(query: ListSessionsQuery, principal: Principal): Promise<Page<SessionInfo>> {
    const page = await this.#keptPage(query, principal)
    const { profile, cursor } = query
    // a list that was begun ends, also when the profile goes meanwhile
    if (!profile || cursor !== undefined || page.items.length > 0) return page
    if (!visible(principal, profile) || (await this.#hasProfile(profile))) return page
    const { items } = await this.#page({ profile, limit: 1 }, principal)
    if (items.length === 0) throw unknownProfile()
    return page
  }

  /** Told once what it shows is kept. */
  async #keptPage(query: ListSessionsQuery, principal: Principal): Promise<Page<SessionInfo>> {
    const { items, next } = await this.#page(query, principal)
    const kept = items.map((info) => {
      const entry = this.#table.get(info.id)
      return entry ? keptInfoOf(entry, info) : info
    })
    return { items: (await Promise.all(kept)).filter((info) => info !== undefined), next }
  }

  /** Whether a profile is here, or at another process: the list is of all their sessions. */
  async #hasProfile(name: string): Promise<boolean> {
    const { sharing, profilesRefreshed, profileInfo } = this.#options
    if (sharing?.storage.nodes().some(({ profiles }) => profiles?.includes(name))) return true
    await profilesRefreshed()
    return profileInfo(name) !== undefined
  }

  async #page(query: ListSessionsQuery, principal: Principal): Promise<Page<SessionInfo>> {
    const asked = journalQuery(query, principal, this.#options.sharing !== undefined)
    await this.#turns.next()
    if (!asked || !this.#archive.hasSome) return this.#pageOf(this.#rowsOf(query, principal, []), query)
    // what left the table while the journal is asked would be in neither
    return this.#table.holding(async () => {
      const read: JournaledSession[] = []
      for (let next = asked.before; ; ) {
        const found = await this.#archive.read({ ...asked, before: next })
        read.push(...found.sessions)
        next = found.next
        await this.#turns.next()
        const until = next ?? Number.NEGATIVE_INFINITY
        const page = this.#pageOf(this.#rowsOf(query, principal, read, until), query)
        if (page.next !== undefined || next === undefined) return page
      }
    })
  }

  /** All of them, newest first. */
  async all(): Promise<SessionInfo[]> {
    const all: SessionInfo[] = []
    for (let cursor: string | undefined; ; ) {
      const { items, next } = await this.#page({ limit: MAX_PAGE, ...(cursor !== undefined && { cursor }) }, UNLIMITED)
      all.push(...items)
      if (next === undefined) return all
      cursor = next
    }
  }

  #pageOf(rows: Iterable<Row>, query: ListSessionsQuery): Page<SessionInfo> {
    return pageOf(
      rows,
      ({ order }) => order,
      (row) => row.info(),
      query,
    )
  }

  /** Newest first; looked for only as far as somebody asks. @param until where `read` ends, and more may follow */
  *#rowsOf(
    query: ListSessionsQuery,
    principal: Principal,
    read: readonly JournaledSession[],
    until = Number.NEGATIVE_INFINITY,
  ): Generator<Row, void> {
    const entries = this.#table.matching(query, principal)
    let entry = entries.next().value
    for (const session of [...read.filter(({ id }) => !this.#table.get(id)), undefined]) {
      const order = session ? orderOf(session) : until
      for (; entry && entry.order > order; entry = entries.next().value) {
        const shown = entry
        yield { order: shown.order, info: () => infoOf(shown) }
      }
      if (session) yield { order, info: () => ({ ...session.state.info, lastSeq: session.lastSeq }) }
    }
  }
}

const AT_REST: ReadonlySet<string> = new Set<RestStatus>(['closed', 'failed', 'idle', 'parked'])

/** Undefined: nothing that is asked for is in the journal alone. @throws SG_ERR_VALIDATION on a cursor that is none of ours */
function journalQuery(query: ListSessionsQuery, principal: Principal, ofAll: boolean): ListedQuery | undefined {
  const { status, engine, profile, cursor, limit = MAX_PAGE } = query
  const before = cursor === undefined ? undefined : decodeOrder(cursor)
  if (!ofAll && status !== undefined && !AT_REST.has(status)) return undefined
  const profiles = profilesAsked(principal, profile)
  if (profiles?.length === 0) return undefined
  // one more than the page has room for: whether there is a page after it
  return { status, engine, profiles, before, limit: limit + 1 }
}
