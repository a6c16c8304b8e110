import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Test } from 'tap'
import type { DatabaseStorage } from '../../src/storage/sql/storage.js'
import type { Confirmed } from './storage-writer.js'

const MUCH = 100_000_000

/** Lets a process write until it has confirmed so much, and kills it. @returns what it had confirmed, and possibly more */
export async function killedAfter(
  t: Test,
  writer: string,
  database: readonly [place: string, detail: string],
  round: number,
  confirmations: number,
) {
  const child = fork(writer, [...database, 'write', String(round)], { execArgv: [] })
  t.teardown(() => void child.kill('SIGKILL'))
  const confirmed: Confirmed[] = []
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`it ended by itself, after ${confirmed.length} confirmations`)))
    child.on('message', (message: Confirmed | string) => {
      if (typeof message === 'object') confirmed.push(message)
      else if (message !== 'held') reject(new Error(message))
      if (confirmed.length >= confirmations) resolve()
    })
  })
  child.kill('SIGKILL')
  await once(child, 'exit')
  return confirmed
}

/** What was confirmed over all rounds, folded. */
export class Ledger {
  readonly upTo = new Map<string, number>()
  readonly removed = new Set<string>()
  readonly jobs = new Set<string>()
  readonly settled = new Set<string>()
  readonly parked = new Map<string, number>()

  add(confirmed: Confirmed): void {
    if ('events' in confirmed) this.upTo.set(confirmed.events, confirmed.upTo)
    else if ('removed' in confirmed) {
      this.removed.add(confirmed.removed)
      this.upTo.delete(confirmed.removed)
    } else if ('job' in confirmed) this.jobs.add(confirmed.job)
    else if ('settled' in confirmed) this.settled.add(confirmed.settled)
    else this.parked.set(confirmed.parked, confirmed.at)
  }
}

export async function verify(
  t: Test,
  { journal, queue, outbox, sessions }: DatabaseStorage,
  ledger: Ledger,
): Promise<void> {
  const unreadable: Error[] = []
  const listed = await journal.list((error) => unreadable.push(error))
  const wrong: string[] = []
  for (const { id, state } of listed) {
    const events = await journal.read(id, 0, MUCH, MUCH)
    const last = events.at(-1)?.seq ?? 0
    if (last !== state.info.lastSeq) wrong.push(`${id} has events to ${last}, its state says ${state.info.lastSeq}`)
    if (events.some(({ seq, json }, at) => seq !== at + 1 || JSON.parse(String(json)).seq !== seq))
      wrong.push(`${id} has gaps`)
    if (last < (ledger.upTo.get(id) ?? 0)) wrong.push(`${id} lost events after ${last}`)
    if (ledger.removed.has(id)) wrong.push(`${id} is back`)
  }
  const there = new Set(listed.map(({ id }) => id))
  for (const [id, upTo] of ledger.upTo) {
    // Its removal may have been done and not been told.
    if (there.has(id) || upTo === 40) continue
    wrong.push(`${id} is lost`)
  }
  const jobs = new Map((await queue.list()).map(({ info }) => [info.id, info.status]))
  for (const id of ledger.jobs) if (!jobs.has(id)) wrong.push(`${id} is lost`)
  for (const id of ledger.settled) if (jobs.get(id) !== 'succeeded') wrong.push(`${id} is not settled`)
  const done = [...jobs.keys()].filter((id) => jobs.get(id) === 'succeeded')
  const told = (await outbox.list()).map(({ lane }) => lane)
  t.same(told.sort(), done.sort(), 'a job has ended when and only when its delivery is there')
  t.equal(await queue.dailyTokens('2026-01-01'), done.length, 'tokens are counted once')
  for (const { id, parkedAt } of await sessions.list((error) => unreadable.push(error)))
    if (parkedAt < (ledger.parked.get(id) ?? 0)) wrong.push(`${id} went back to ${parkedAt}`)
  t.same(wrong, [])
  t.same(unreadable, [])
}
