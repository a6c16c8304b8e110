import { setTimeout as sleep } from 'node:timers/promises'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'
import { eventOf, firstWrite, jobOf, stateOf } from './sqlite-records.js'

/** What was confirmed to the writer, as it tells its parent. */
export type Confirmed =
  | { events: string; upTo: number }
  | { removed: string }
  | { job: string }
  | { settled: string }
  | { parked: string; at: number }

/**
 * A process that uses the database it is given, a file with the code of its thread or a URL with a schema, until it is killed. Tells its
 * parent `held` once it has it, or why not; then writes all kinds of things side by side, if told to, and tells what was confirmed.
 */
const [place, detail, task, round] = process.argv.slice(2) as [string, string, string, string?]
process.on('disconnect', () => process.exit())
const tell = (what: Confirmed | string) => process.send?.(what)
const storage = place.startsWith('postgres:')
  ? createPostgresStorage({ url: place, schema: detail })
  : createSqliteStorage({ path: place }, { worker: new URL(detail) })

async function writeEvents(id: string): Promise<void> {
  await storage.journal.write(firstWrite(id))
  for (let seq = 1; seq <= 40; seq += 2) {
    const events = [eventOf(seq, 'x'.repeat(seq * 50)), eventOf(seq + 1)]
    await storage.journal.write({ id, events, state: stateOf(id, { lastSeq: seq + 1 }) })
    tell({ events: id, upTo: seq + 1 })
  }
}

async function sessions(name: string): Promise<void> {
  for (let index = 0; ; index++) {
    const id = `${name}-${round}-${index}`
    await writeEvents(id)
    if (index % 3 === 0) continue
    await storage.journal.remove(id)
    tell({ removed: id })
  }
}

/** A job's end and the delivery that tells of it are asked for in one turn. */
async function jobs(): Promise<void> {
  for (let index = 0; ; index++) {
    const id = `job-${round}-${index}`
    await storage.queue.add(jobOf(id))
    tell({ job: id })
    const claimed = (await storage.queue.claimNext())!.info.id
    await Promise.all([
      storage.queue.settle!(
        claimed,
        { status: 'succeeded', finishedAt: 1 },
        { day: '2026-01-01', tokens: 1 },
        'running',
      ),
      storage.outbox.add({ id: 'done', lane: claimed, delivery: { job: claimed } }),
    ])
    tell({ settled: claimed })
  }
}

async function parks(): Promise<void> {
  for (let at = 1; ; at++) {
    const id = `parked-${at % 5}`
    await storage.sessions.save({ ...parkedRecord(id), parkedAt: Number(round) * 1_000_000 + at })
    tell({ parked: id, at: Number(round) * 1_000_000 + at })
  }
}

/** Tries every write again until it is taken, and tells why it was not. */
async function persistently(): Promise<void> {
  await storage.journal.write(firstWrite('persistent'))
  for (let seq = 1; ; ) {
    try {
      await storage.journal.write({ id: 'persistent', events: [eventOf(seq, 'x'.repeat(20_000))] })
      tell({ events: 'persistent', upTo: seq++ })
    } catch (error) {
      tell((error as Error).message)
      await sleep(20)
    }
  }
}

const parkedRecord = (id: string) =>
  ({ id, settled: Array(500).fill('x') }) as unknown as Parameters<typeof storage.sessions.save>[0]

try {
  await storage.open()
  if (task === 'hold') {
    await storage.journal.write(firstWrite('held'))
    tell('held')
    setInterval(() => {}, 60_000)
  } else if (task === 'leave') {
    const events = Array.from({ length: 15_000 }, (_, index) => eventOf(index + 1))
    void storage.journal.write({ ...firstWrite('left'), events })
    setTimeout(() => process.exit(7), Number(round))
  } else if (task === 'once') void storage.journal.write(firstWrite('once'))
  else if (task === 'persist') await persistently()
  else {
    tell('held')
    await Promise.all([sessions('a'), sessions('b'), jobs(), parks()])
  }
} catch (error) {
  tell((error as Error).message)
}
