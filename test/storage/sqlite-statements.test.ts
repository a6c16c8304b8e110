import { existsSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { tried } from '../../src/lib/tried.js'
import type { Call } from '../../src/storage/sql/call-queue.js'
import { runBatch } from '../../src/storage/sqlite/batch.js'
import { openDatabase, operationsOf } from '../../src/storage/sqlite/connection.js'
import type { Database, SqlValue, Statement } from '../../src/storage/sqlite/driver.js'
import { jobOf } from './sqlite-records.js'

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
  const runAll = (calls: Call[], along?: () => void) => {
    ran.length = 0
    const { failures } = runBatch(db, operations, calls, path, along)
    t.same(failures, [])
    return [...ran]
  }
  const run = (call: Call, along?: () => void) => runAll([call], along)
  const explained = (sql: string) =>
    opened
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all('[]', 0, 1)
      .map(({ detail }) => detail)
      .join('\n')
  return { run, runAll, explained, operations: operationsOf(opened) }
}

const events = (...seqs: number[]) => ({ id: 's', reservedSeq: 0, seqs, texts: seqs.map((seq) => `{"seq":${seq}}`) })
const birth: Call = [
  'journal.write',
  { ...events(1, 2), origin: { profile: 'one', generation: '', text: '{}' }, state: '{}', reservedSeq: 1_000 },
]

t.test(
  'a session that was written is not looked for again: one statement for its row, one for its events',
  async (t) => {
    const { run } = await world(t)
    t.equal(run(birth).length, 3, 'itself, its origin, its events')
    t.equal(run(['journal.write', events(3)]).length, 1)
    t.equal(run(['journal.write', events(4, 5, 6, 7, 8)]).length, 1)
    const rest = { ended: null, endedAt: null, wakesAt: null, sdkSession: null, engine: 'cli', place: 1 }
    t.equal(run(['journal.write', { ...events(), state: '{}', rest: { ...rest, asleep: 'idle' } }]).length, 1)
    t.equal(run(['journal.write', { ...events(), state: '{}' }]).length, 1, 'that it is awake, with what it is')
    t.equal(run(['journal.remove', 's']).length, 5, 'four tables, and its events')
    t.equal(run(birth).length, 3, 'as one that was never there')
  },
)

t.test(
  'events come back as they were written, however many at once; many are swept once their session is gone',
  async (t) => {
    const { run, operations } = await world(t)
    run(birth)
    const seqs = Array.from({ length: 40 }, (_, index) => index + 3)
    t.equal(run(['journal.write', events(...seqs)]).length, 3)
    t.same(operations['journal.read']('s', 0, 99, 10_000).seqs, [1, 2, ...seqs])
    t.equal(run(['journal.remove', 's']).length, 5, 'four tables, and what is swept later')
    t.equal(operations['journal.sweep'](30), true)
    run(birth)
    t.equal(operations['journal.sweep'](30), false)
    t.same(operations['journal.read']('s', 0, 99, 10_000).seqs, [1, 2])
  },
)

const OPEN_FILES = '/proc/self/fd'

t.test(
  'events need no file but those of the database: there may be none that can be made',
  { skip: !existsSync(OPEN_FILES) && 'nothing tells which files are open' },
  async (t) => {
    const { run } = await world(t)
    const open = () => {
      const files = readdirSync(OPEN_FILES).map((fd) => tried(() => readlinkSync(join(OPEN_FILES, fd))) ?? '')
      return files.filter((file) => basename(file).startsWith('etilqs_'))
    }
    const seqs = Array.from({ length: 100 }, (_, index) => index + 1)
    const texts = seqs.map(() => '"'.padEnd(20_000, 'x'))
    run(['journal.write', { ...(birth[1] as object), seqs, texts }], () => t.same(open(), []))
  },
)

t.test('what a batch counts for one key is added once', async (t) => {
  const { run, runAll, operations } = await world(t)
  const count = (person: string, more: object) => ({ day: '2026-01-01', profile: 'one', agent: 'cli', person, ...more })
  run(birth)
  const calls: Call[] = [
    [
      'journal.write',
      { ...events(3), usage: [count('ann', { turns: 1, approvalWaitMaxMs: 5 }), count('bob', { jobs: 1 })] },
    ],
    ['usage.add', [count('ann', { turns: 2, costUsd: 0.5, approvalWaitMaxMs: 3 })]],
  ]
  t.equal(runAll(calls).length, 3, 'its event, and both keys')
  t.equal(runAll(calls.slice(1)).length, 1)
  const range = { from: '2026-01-01', to: '2026-01-01' }
  t.match(operations['usage.read'](range, ['person'], 9), [
    { person: 'ann', turns: 5, costUsd: 1, approvalWaitMaxMs: 5, jobs: 0 },
    { person: 'bob', turns: 0, jobs: 1 },
  ])
  t.equal(runAll([...calls.slice(1), ['usage.read', range, ['person'], 9]]).length, 2, 'before it is asked for')
  const fails = () => {
    throw new Error('the disk is bad there')
  }
  t.equal(runAll(calls.slice(1), fails).length, 2, 'once more without what failed')
  t.match(operations['usage.read'](range, ['person'], 1), [{ person: 'ann', turns: 9, costUsd: 2 }])
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

t.test(
  'what runs next of somebody who has little is found by their profiles, not among all that is queued',
  async (t) => {
    const { run, runAll, explained, operations } = await world(t)
    const add = (id: string, profile: string, more: object = {}): Call => {
      const { info, request } = jobOf(id)
      return ['jobs.add', JSON.stringify({ ...info, profile, ...more }), JSON.stringify(request), 0]
    }
    runAll(Array.from({ length: 1_000 }, (_, index) => add(`many ${index}`, 'many')))
    runAll([add('later', 'few', { nextRunAt: 5_000 }), add('first', 'few'), add('due', 'few', { nextRunAt: 1_000 })])
    for (const profiles of [['few'], ['few', 'many']])
      t.match(
        operations['jobs.next'](2_000, 2_000, profiles),
        profiles.length > 1 ? { length: 1_003 } : ['first', 'due', 'later'],
      )
    const planOf = (profiles: string[]) => explained(run(['jobs.next', 2_000, 10, profiles]).at(-1)!)
    t.notMatch(planOf(['few']), /jobs_ready|jobs_delayed/)
    t.match(planOf(['few', 'many']), /SCAN jobs USING INDEX jobs_ready/)
  },
)
