import type { Call } from '../sql/call-queue.js'
import type { SessionWrite } from '../sql/rows.js'

/** A write whose texts may be elsewhere, or bytes. */
export type Write<Text> = Omit<SessionWrite, 'texts'> & { texts: Text[] }

/** Values before those of the events: the operation, the session, what is reserved, how many events there are. */
const HEAD = 4

/** What few writes have, in the order in which it is sent. */
function fewHave(write: SessionWrite) {
  const { origin, state, rest, executions, snapshot, taken, keys, deliveries, notifications, usage } = write
  return [origin, state, rest, executions, snapshot, taken, keys, deliveries, notifications, usage] as const
}

/**
 * A write of a session on its way into the thread of a database: values by their places. An object is sent, and put together again, with
 * the name of each of its members, absent ones as well, which costs several times what most writes have in them: one event.
 */
export function packed(write: SessionWrite, texts: readonly (string | number)[]): Call {
  const { id, reservedSeq, seqs } = write
  const call: Call = ['journal.write', id, reservedSeq, seqs.length, ...seqs, ...texts]
  const values = fewHave(write)
  if (values.some((value) => value !== undefined)) call.push(...values)
  return call
}

/** The write that was packed. */
export function unpacked<Text>(call: readonly unknown[]): Write<Text> {
  const [, id, reservedSeq, count] = call as unknown as [string, string, number, number]
  const end = HEAD + count
  const seqs = call.slice(HEAD, end) as number[]
  const texts = call.slice(end, end + count) as Text[]
  const values = call.slice(end + count) as unknown as Partial<ReturnType<typeof fewHave>>
  const [origin, state, rest, executions, snapshot, taken, keys, deliveries, notifications, usage] = values
  return {
    id,
    reservedSeq,
    seqs,
    texts,
    origin,
    state,
    rest,
    executions,
    snapshot,
    taken,
    keys,
    deliveries,
    notifications,
    usage,
    // one that is left behind does not compile; the rest is of several nodes
  } satisfies Record<Exclude<keyof SessionWrite, 'listed'>, unknown>
}
