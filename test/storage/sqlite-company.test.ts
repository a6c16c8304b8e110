import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runBatch } from '../../src/storage/sqlite/batch.js'
import { openDatabase, operationsOf } from '../../src/storage/sqlite/connection.js'

const DAY = '2026-01-01'

/** A database that another program has open, too. */
async function world(t: Test, pragmas: readonly string[] = []) {
  const path = join(t.testdir(), 'gateway.db')
  writeFileSync(path, '')
  const db = await openDatabase({ path, synchronous: 'normal', pragmas })
  t.teardown(() => db.close())
  const other = await openDatabase({ path, synchronous: 'normal', pragmas: [] })
  t.teardown(() => other.close())
  return { path, db, other, operations: operationsOf(db) }
}

t.test('what reads before it writes is done though another program writes in between', async (t) => {
  const { path, db, other, operations } = await world(t)
  let times = 0
  const charge = (day: string, tokens: number) => {
    const before = operations['jobs.tokens'](day)
    if (times++ === 0) other.exec("INSERT INTO gone_targets (key) VALUES ('meanwhile')")
    return operations['jobs.charge'](day, before + tokens)
  }
  const outcome = runBatch(db, { ...operations, 'jobs.charge': charge }, [['jobs.charge', DAY, 4]], path)
  t.same(outcome, { results: [4], failures: [] })
  t.equal(operations['jobs.tokens'](DAY), 4, 'once')
})

t.test(
  'while another program writes, what reads is answered, and what writes waits once, all of it together',
  async (t) => {
    const { path, db, other, operations } = await world(t, ['busy_timeout = 20'])
    const waits: number[] = []
    const charge = (day: string, tokens: number) => {
      waits.push(db.prepare('PRAGMA busy_timeout').get().timeout)
      return operations['jobs.charge'](day, tokens)
    }
    other.exec('BEGIN IMMEDIATE')
    const calls = [
      ['jobs.charge', DAY, 1],
      ['jobs.tokens', DAY],
      ['jobs.charge', DAY, 2],
    ] as const
    const { results, failures } = runBatch(db, { ...operations, 'jobs.charge': charge }, calls as never, path)
    t.equal(results[1], 0)
    t.match(failures, [
      { index: 0, failure: { code: 'SQLITE_BUSY', message: /another program has locked/ } },
      { index: 2, failure: { code: 'SQLITE_BUSY' } },
    ])
    t.same(waits, [20, 0, 0])
    t.equal(db.prepare('PRAGMA busy_timeout').get().timeout, 5_000)
    other.exec('COMMIT')
    t.same(runBatch(db, operations, calls as never, path), { results: [1, 1, 3], failures: [] })
  },
)
