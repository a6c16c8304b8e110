import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Call } from '../../src/storage/sql/call-queue.js'
import { runBatch } from '../../src/storage/sqlite/batch.js'
import { openDatabase, operationsOf } from '../../src/storage/sqlite/connection.js'
import { Housekeeping } from '../../src/storage/sqlite/housekeeping.js'
import { InUse } from '../../src/storage/sqlite/in-use.js'

const session = (id: string, events: number): Call => [
  'journal.write',
  {
    ...{ id, origin: { profile: 'one', generation: '', text: '{}' }, state: '{}', reservedSeq: events },
    ...{ seqs: Array.from({ length: events }, (_, at) => at + 1), texts: Array(events).fill('{}') },
  },
]

t.test('events of removed sessions go with writes, some with each, and make none of what only reads', async (t) => {
  const path = join(t.testdir(), 'gateway.db')
  writeFileSync(path, '')
  const db = await openDatabase({ path, synchronous: 'normal', pragmas: [] })
  t.teardown(() => db.close())
  const operations = operationsOf(db)
  const housekeeping = new Housekeeping(db, operations, new InUse())
  const run = (...calls: Call[]) => {
    const { failures } = runBatch(db, operations, calls, path, housekeeping.along(calls))
    t.same(failures, [])
  }
  // no pause comes in between: nothing is waited for
  const left = (): number => db.prepare('SELECT count(*) AS n FROM events').get().n
  const removed = (): number => db.prepare('SELECT count(*) AS n FROM removed_sessions').get().n

  run(session('short', 3), session('long', 120))
  run(['journal.remove', 'short'])
  t.same([left(), removed()], [120, 0], 'a few go with their session')
  run(['journal.remove', 'long'])
  t.same([left(), removed()], [70, 1])
  run(['jobs.get', 'none'])
  t.equal(left(), 70)
  run(['jobs.charge', '2026-01-01', 1])
  run(['jobs.charge', '2026-01-01', 1])
  run(['jobs.charge', '2026-01-01', 1])
  t.same([left(), removed()], [0, 0])
})

t.test('a sweep that fails takes no call with it', async (t) => {
  const path = join(t.testdir(), 'gateway.db')
  writeFileSync(path, '')
  const db = await openDatabase({ path, synchronous: 'normal', pragmas: [] })
  t.teardown(() => db.close())
  const operations = operationsOf(db)
  const fails = () => {
    throw new Error('the disk is bad there')
  }
  t.same(runBatch(db, operations, [['jobs.charge', '2026-01-01', 4]], path, fails), { results: [4], failures: [] })
  t.equal(operations['jobs.tokens']('2026-01-01'), 4, 'once')
})
