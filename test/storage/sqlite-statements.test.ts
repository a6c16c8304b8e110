import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Call } from '../../src/storage/sql/call-queue.js'
import { runBatch } from '../../src/storage/sqlite/batch.js'
import { openDatabase, operationsOf } from '../../src/storage/sqlite/connection.js'
import type { Database, SqlValue, Statement } from '../../src/storage/sqlite/driver.js'

/** A database that says which statements were run. */
function watched(db: Database): { db: Database; ran: string[] } {
  const ran: string[] = []
  const prepare = (sql: string): Statement => {
    const statement = db.prepare(sql)
    const running =
      <T>(run: (...values: SqlValue[]) => T) =>
      (...values: SqlValue[]): T => {
        ran.push(sql)
        return run.apply(statement, values)
      }
    const { run, get, all, iterate } = statement
    return { run: running(run), get: running(get), all: running(all), iterate: running(iterate) }
  }
  return { db: { prepare, exec: (sql) => db.exec(sql), close: () => db.close() }, ran }
}

async function world(t: Test) {
  const path = join(t.testdir(), 'gateway.db')
  writeFileSync(path, '')
  const opened = await openDatabase({ path, synchronous: 'normal', pragmas: [] })
  t.teardown(() => opened.close())
  const { db, ran } = watched(opened)
  const operations = operationsOf(db)
  const run = (call: Call, along?: () => void) => {
    ran.length = 0
    const { failures } = runBatch(db, operations, [call], path, along)
    t.same(failures, [])
    return [...ran]
  }
  return { run, operations }
}

const events = (...seqs: number[]) => ({ id: 's', reservedSeq: 0, seqs, texts: seqs.map((seq) => `{"seq":${seq}}`) })
const birth: Call = [
  'journal.write',
  { ...events(1, 2), origin: { profile: 'one', generation: '', text: '{}' }, state: '{}', reservedSeq: 1_000 },
]

t.test('a session that was written is not looked for again: one statement for each event', async (t) => {
  const { run } = await world(t)
  t.equal(run(birth).length, 5, 'looked for once, itself, its origin, two events')
  t.equal(run(['journal.write', events(3)]).length, 1)
  t.equal(run(['journal.write', events(4, 5)]).length, 2)
  t.equal(run(['journal.remove', 's']).length, 5, 'four tables, and what is swept later')
  t.equal(run(birth).length, 5, 'as one that was never there')
})

t.test('what was taken back was never known', async (t) => {
  const { run, operations } = await world(t)
  const fails = () => {
    throw new Error('the disk is bad there')
  }
  run(birth, fails)
  run(['journal.write', events(3)], fails)
  run(['journal.remove', 's'], fails)
  t.same(operations['journal.read']('s', 0, 9, 1_000).seqs, [])
  run(birth)
  t.same(operations['journal.read']('s', 0, 9, 1_000).seqs, [1, 2])
})
