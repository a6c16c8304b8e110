import { type Archive, isTerminal } from './archive.js'
import type { JournaledSession } from './journal.js'
import type { ParkingLot } from './parking.js'
import type { ParkedSessionRecord } from './store.js'

/**
 * Takes up what an earlier process left parked or in the journal, in the order in which it was created.
 * @throws what the journal throws
 */
export async function adoptAll(parking: ParkingLot, archive: Archive | undefined): Promise<void> {
  const journaled = (await archive?.list()) ?? []
  const byId = new Map(journaled.map((session) => [session.id, session]))
  const records = await parking.records()
  // its turn is over, or the session is: the record would have gone next
  const isStale = (id: string) => {
    const state = byId.get(id)?.state
    if (!state) return false
    // what is waited for outside a turn may be parked, too
    return isTerminal(state.info) || !(state.inTurn || state.permissions || state.executions)
  }
  for (const { id } of records) if (isStale(id)) await parking.dropRecord(id)

  const parked = records.filter(({ id }) => !isStale(id))
  const parkedIds = new Set(parked.map(({ id }) => id))
  const left = [
    ...parked.map((record) => ({ record, order: orderOf(byId.get(record.id) ?? record) })),
    ...journaled.filter(({ id }) => !parkedIds.has(id)).map((session) => ({ session, order: orderOf(session) })),
  ]
  const told: (Promise<void> | undefined)[] = []
  for (const entry of left.sort((a, b) => a.order - b.order)) {
    if ('record' in entry) await parking.adopt(entry.record, byId.get(entry.record.id))
    else told.push(archive?.adopt(entry.session))
  }
  await Promise.all(told)
}

/** Where a session that was left stands in the lists; of a version that wrote no order down: as it was first written, or by time. */
export function orderOf(left: JournaledSession | ParkedSessionRecord): number {
  const { order, info } = 'state' in left ? left.state : left
  const position = 'position' in left ? left.position : undefined
  return order ?? position ?? info.createdAt
}
