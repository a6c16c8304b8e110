import type { Call } from '../sql/call-queue.js'
import type { RestColumns, SessionWrite } from '../sql/rows.js'

/** A write whose texts may be elsewhere, or bytes. */
export type Write<Text> = Omit<SessionWrite, 'texts'> & { texts: Text[] }

type Kept = NonNullable<SessionWrite['notifications']>[number]

/** Values before those of the events: the operation, the session, what is reserved, how many events there are. */
const HEAD = 4

/**
 * A write of a session on its way into the thread of a database: values by their places. An object is sent, and put together again, with
 * the name of each of its members, absent ones as well, which costs several times what most writes have in them: one event.
 */
export function packed(write: SessionWrite, texts: readonly (string | number)[]): Call {
  const { id, reservedSeq, seqs, origin, state, rest, executions, snapshot, taken, keys, deliveries } = write
  const { notifications, usage } = write
  const call: unknown[] = ['journal.write', id, reservedSeq, seqs.length, ...seqs, ...texts]
  const values = [
    ...[origin && originValues(origin), state, rest && restValues(rest), executions, snapshot, taken, keys, deliveries],
    ...[notifications?.map(keptValues), usage],
  ]
  if (values.some((value) => value !== undefined)) call.push(...values)
  return call as Call
}

type Values = [
  origin: ReturnType<typeof originValues> | undefined,
  state: string | undefined,
  rest: ReturnType<typeof restValues> | undefined,
  executions: SessionWrite['executions'],
  snapshot: string | undefined,
  taken: SessionWrite['taken'],
  keys: SessionWrite['keys'],
  deliveries: SessionWrite['deliveries'],
  notifications: ReturnType<typeof keptValues>[] | undefined,
  usage: SessionWrite['usage'],
]

/** The write that was packed. */
export function unpacked<Text>(call: readonly unknown[]): Write<Text> {
  const [, id, reservedSeq, count] = call as unknown as [string, string, number, number]
  const end = HEAD + count
  const seqs = call.slice(HEAD, end) as number[]
  const texts = call.slice(end, end + count) as Text[]
  const values = call.slice(end + count) as Partial<Values>
  const [origin, state, rest, executions, snapshot, taken, keys, deliveries, notifications, usage] = values
  return {
    id,
    reservedSeq,
    seqs,
    texts,
    origin: origin && originOf(origin),
    state,
    rest: rest && restOf(rest),
    executions,
    snapshot,
    taken,
    keys,
    deliveries,
    notifications: notifications?.map(keptOf),
    usage,
    // one that is left behind does not compile; the rest is of several nodes
  } satisfies Record<Exclude<keyof SessionWrite, 'listed'>, unknown>
}

type Origin = NonNullable<SessionWrite['origin']>

const originValues = ({ profile, generation, text }: Origin) => [profile, generation, text] as const
const originOf = ([profile, generation, text]: ReturnType<typeof originValues>): Origin => ({
  profile,
  generation,
  text,
})

export const restValues = ({ ended, endedAt, asleep, wakesAt, sdkSession, engine, place }: RestColumns) =>
  [ended, endedAt, asleep, wakesAt, sdkSession, engine, place] as const
const restOf = (values: ReturnType<typeof restValues>): RestColumns => {
  const [ended, endedAt, asleep, wakesAt, sdkSession, engine, place] = values
  return { ended, endedAt, asleep, wakesAt, sdkSession, engine, place }
}

const keptValues = ({ number, type, sessionId, profile, ts, json }: Kept) =>
  [number, type, sessionId, profile, ts, json] as const
const keptOf = ([number, type, sessionId, profile, ts, json]: ReturnType<typeof keptValues>): Kept => ({
  ...{ number, type, sessionId, profile, ts, json },
})
