import type { NewsRow, RestColumns, SessionRow, SessionWrite } from '../../sql/rows.js'
import type { Statement } from '../pipeline.js'
import { asks, type Plan, type Plans, rowsOf, type Self, statement } from '../plan.js'
import { integerArray, textArray } from '../values.js'
import { atRestPlans } from './at-rest.js'
import { type KnownListing, listed, listedPlan } from './listed-sessions.js'
import { placePlans } from './places.js'
import { ridingStatements } from './riding.js'

/** Events that are looked at for one page. */
const READ_AT_ONCE = 10_000

const COLUMNS = `key, id, profile, generation, reserved_seq AS "reservedSeq", state, asleep,
  coalesce((SELECT max(seq) FROM @events WHERE session = key), 0) AS "lastSeq"`
const WRITE = `SELECT the_key AS key, the_last AS last, the_reserved AS reserved FROM @write_1($1, $2, $3, $4, $5, $6, $7, $8)`
const APPEND = 'SELECT @append_1($1, $2, $3, $4, $5, $6, $7)'
const SAVE_SNAPSHOT = `INSERT INTO @snapshots (session, snapshot) SELECT key, $2 FROM @sessions WHERE id = $1
  ON CONFLICT (session) DO UPDATE SET snapshot = excluded.snapshot`
const TAKE_NEWS = `DELETE FROM @news WHERE session = (SELECT key FROM @sessions WHERE id = $1) AND key = ANY ($2::text[])`
const DEPOSIT = `WITH it AS (SELECT key FROM @sessions WHERE id = $1), added AS (
    INSERT INTO @news (session, key, news) SELECT it.key, given.key, given.news
    FROM it, unnest($2::text[], $3::text[]) WITH ORDINALITY AS given (key, news, place) ORDER BY place
    ON CONFLICT DO NOTHING
  ) SELECT EXISTS (SELECT FROM it) AS there`
const IS_THERE = 'SELECT EXISTS (SELECT FROM @sessions WHERE id = $1) AS there'
const NEWS = 'SELECT session, key, news FROM @news WHERE session BETWEEN $1 AND $2 ORDER BY n'
const NEWS_OF =
  'SELECT session, key, news FROM @news WHERE session = (SELECT key FROM @sessions WHERE id = $1) ORDER BY n'
/** After the write of its state, which says of every session that it does not sleep. */
const SAVE_REST = `UPDATE @sessions SET ended = $2, ended_at = $3, asleep = $4, wakes_at = $5, sdk_session = $6, engine = $7,
    place = coalesce($8::bigint, key)
  WHERE id = $1`
const AWAKE = `SELECT ${COLUMNS} FROM @sessions WHERE key IN (
    (SELECT key FROM @sessions WHERE ended IS NULL AND asleep IS NULL AND key > $1 ORDER BY key LIMIT $2)
    UNION (SELECT DISTINCT session FROM @news WHERE session > $1 ORDER BY session LIMIT $2)
  ) ORDER BY key LIMIT $2`
const AWAKE_OF_NODE = `SELECT ${COLUMNS} FROM @sessions WHERE key IN (
    (SELECT key FROM @sessions WHERE ended IS NULL AND asleep IS NULL AND owner = $3 AND key > $1 ORDER BY key LIMIT $2)
    UNION (SELECT DISTINCT s.key FROM @news JOIN @sessions AS s ON s.key = session
      WHERE s.owner = $3 AND session > $1 ORDER BY s.key LIMIT $2)
  ) ORDER BY key LIMIT $2`
const WHOLE = `SELECT ${COLUMNS}, origin, snapshot FROM @sessions
  JOIN @origins ON origins.session = key LEFT JOIN @snapshots ON snapshots.session = key WHERE id = $1`
const READ = `SELECT seq, json FROM (
    SELECT seq, json, sum(octet_length(json)) OVER (ORDER BY seq) AS bytes, row_number() OVER (ORDER BY seq) AS place FROM (
      SELECT seq, json FROM @events WHERE session = (SELECT key FROM @sessions WHERE id = $1) AND seq > $2 AND seq <= $3
      ORDER BY seq LIMIT $5
    ) AS wanted
  ) AS measured WHERE place = 1 OR bytes <= $4 ORDER BY seq`
const REMOVE = `WITH it AS (DELETE FROM @sessions WHERE id = $1 RETURNING key),
  o AS (DELETE FROM @origins WHERE session = (SELECT key FROM it)),
  s AS (DELETE FROM @snapshots WHERE session = (SELECT key FROM it)),
  n AS (DELETE FROM @news WHERE session = (SELECT key FROM it)),
  x AS (DELETE FROM @executions WHERE session = (SELECT key FROM it))
  INSERT INTO @removed_sessions (session) SELECT key FROM it`
/** One that another process is at is left to that one. */
const SWEEP = `WITH it AS MATERIALIZED (
    SELECT session FROM @removed_sessions ORDER BY session LIMIT 1 FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM @events WHERE session = (SELECT session FROM it) AND seq = ANY (
      ARRAY(SELECT seq FROM @events WHERE session = (SELECT session FROM it) ORDER BY seq LIMIT $1)) RETURNING seq
  ), done AS (
    DELETE FROM @removed_sessions WHERE session = (SELECT session FROM it) AND (SELECT count(*) FROM gone) < $1
  ) SELECT EXISTS (SELECT FROM it) AS more`

/** A session that the writer has written to: nobody else does. */
export interface KnownSession {
  key: number
  lastSeq: number
  reservedSeq: number
  /** What its row says for lists. */
  listed?: KnownListing | undefined
  /** The last state of it that was planned came to rest. */
  rests?: boolean
}

/** Whether the events of a write rise, and above which they must. */
const rises = (seqs: readonly number[], after: number): boolean =>
  seqs.every((seq, index) => seq > (index === 0 ? after : seqs[index - 1]!))

/**
 * Events and states of sessions that are known to be there, of many writes at once: one statement, whose cost is little more than that of
 * the rows.
 */
export class Appends {
  readonly #sessions = new Map<string, { known: KnownSession; state: string | null; reserved: number | undefined }>()
  readonly #events = { keys: [] as number[], seqs: [] as number[], texts: [] as string[] }

  get ids(): IterableIterator<string> {
    return this.#sessions.keys()
  }

  /** @returns what the session is known to be after it; undefined: it is not for here */
  add(known: KnownSession, write: SessionWrite): KnownSession | undefined {
    const { id, origin, state, rest, seqs, texts, reservedSeq } = write
    if (origin || !rises(seqs, known.lastSeq)) return undefined
    // what says that it rests comes after all states of the group
    if (known.rests && state !== undefined && this.#sessions.has(id)) return undefined
    const lastSeq = seqs.at(-1) ?? known.lastSeq
    const reserved = Math.max(known.reservedSeq, reservedSeq, lastSeq)
    const mine = this.#sessions.get(id) ?? { known, state: null, reserved: undefined }
    if (state !== undefined) mine.state = state
    if (reserved !== known.reservedSeq) mine.reserved = reserved
    this.#sessions.set(id, mine)
    for (const [index, seq] of seqs.entries()) {
      this.#events.keys.push(known.key)
      this.#events.seqs.push(seq)
      this.#events.texts.push(texts[index]!)
    }
    const rests = state === undefined ? known.rests : rest !== undefined
    return { key: known.key, lastSeq, reservedSeq: reserved, listed: known.listed, ...(rests && { rests }) }
  }

  statement(): Statement {
    const all = [...this.#sessions.values()]
    const changed = all.filter(({ state, reserved }) => state !== null || reserved !== undefined)
    return statement(
      APPEND,
      integerArray(all.map(({ known }) => known.key)),
      integerArray(changed.map(({ known }) => known.key)),
      textArray(changed.map(({ state }) => state)),
      integerArray(changed.map(({ known, reserved }) => reserved ?? known.reservedSeq)),
      integerArray(this.#events.keys),
      integerArray(this.#events.seqs),
      textArray(this.#events.texts),
    )
  }
}

const saveRest = (id: string, { ended, endedAt, asleep, wakesAt, sdkSession, engine, place }: RestColumns): Statement =>
  statement(SAVE_REST, id, ended, endedAt, asleep, wakesAt, sdkSession, engine, place)

/** What goes with a write beside events and state. */
export function besides({ id, snapshot, rest, taken = [], ...riding }: SessionWrite, me: number): Statement[] {
  return [
    ...(rest ? [saveRest(id, rest)] : []),
    ...(snapshot === undefined ? [] : [statement(SAVE_SNAPSHOT, id, snapshot)]),
    ...(taken.length === 0 ? [] : [statement(TAKE_NEWS, id, textArray(taken))]),
    ...ridingStatements(riding, me, null),
  ]
}

/**
 * Sessions with their events.
 * @param self the member that asks
 * @param onKnown told what a session is after what was done with it
 */
export const journalPlans = (
  { n: me, isOneOfMany }: Self,
  onKnown: (id: string, known: KnownSession | undefined) => void,
) =>
  ({
    'journal.write'(write): Plan<void> {
      const { id, origin, state, reservedSeq, seqs, texts } = write
      const values = [id, origin?.profile ?? null, origin?.generation ?? null, origin?.text ?? null, state ?? null]
      const listing = listed(write, undefined, isOneOfMany ? me : null)
      return {
        statements: [
          statement(WRITE, ...values, reservedSeq, integerArray(seqs), textArray(texts)),
          ...besides(write, me),
          ...listing.statements,
        ],
        again: [],
        result([rows]) {
          const [row] = rows ?? []
          const { key, last: lastSeq, reserved: reservedSeq } = (row ?? {}) as Record<string, number>
          onKnown(id, row && ({ key, lastSeq, reservedSeq, listed: listing.after } as KnownSession))
        },
      }
    },
    'journal.deposit'(id, news, keys) {
      const keyTexts = textArray(news.map(({ key }) => key))
      return {
        statements: [
          statement(DEPOSIT, id, keyTexts, textArray(news.map((one) => one.news))),
          ...ridingStatements({ keys }, me, id),
        ],
        // by now its owner may have taken them: they are not told once more
        again: [statement(IS_THERE, id)],
        result: ([rows]) => rows![0]!.there as boolean,
      }
    },
    'journal.page': (afterKey, limit) =>
      rowsOf<SessionRow>(`SELECT ${COLUMNS} FROM @sessions WHERE key > $1 ORDER BY key LIMIT $2`, afterKey, limit),
    'journal.awake': (afterKey, limit) =>
      isOneOfMany ? rowsOf<SessionRow>(AWAKE_OF_NODE, afterKey, limit, me) : rowsOf<SessionRow>(AWAKE, afterKey, limit),
    ...atRestPlans(COLUMNS, isOneOfMany ? me : null),
    'journal.listed': (query) => listedPlan(COLUMNS, query),
    ...placePlans(onKnown, me),
    'journal.news': (from, to) => rowsOf<NewsRow>(NEWS, from, to),
    'journal.get': (id) => ({
      statements: [statement(WHOLE, id), statement(NEWS_OF, id)],
      onlyReads: true,
      result([rows, news]) {
        const row = rows![0] as unknown as (SessionRow & { origin: string; snapshot: string | null }) | undefined
        return row && { row, news: news as unknown as NewsRow[] }
      },
    }),
    'journal.read': (id, afterSeq, untilSeq, maxBytes) =>
      asks(statement(READ, id, afterSeq, untilSeq, maxBytes, READ_AT_ONCE), (rows) => ({
        seqs: rows.map(({ seq }) => seq as number),
        texts: rows.map(({ json }) => json as string),
      })),
    'journal.remove': (id, deliveries, notifications, usage) => ({
      // while it is still there
      statements: [...ridingStatements({ deliveries, notifications, usage }, me, id), statement(REMOVE, id)],
      again: [],
      result: () => onKnown(id, undefined),
    }),
    'journal.sweep': (limit) => ({
      statements: [statement(SWEEP, limit)],
      result: ([rows]) => rows![0]!.more as boolean,
    }),
  }) satisfies Partial<Plans>
