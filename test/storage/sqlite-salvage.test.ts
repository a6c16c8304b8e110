import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { salvageLines } from '../../src/daemon/doctor-report.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { salvageSqlite } from '../../src/storage/sqlite/maintenance.js'
import { salvageFile } from '../../src/storage/sqlite/salvage.js'
import { TABLES } from '../../src/storage/sqlite/schema.js'
import { eventOf, firstWrite, jobOf } from './sqlite-records.js'
import { sqliteAt, sqliteWorld } from './sqlite-world.js'

const Driver = await loadDriver()
const PAGE = 4096
const SESSIONS = 12
const EVENTS = 30

/** A closed database with some of everything, and a page of it by page what it belongs to. */
async function filled(t: Test) {
  const { path, storage } = await sqliteWorld(t)
  const { journal, queue, profiles, idempotency, outbox } = storage
  await profiles.save({ name: 'one', engine: 'cli', configDir: '/srv/agents/one' })
  for (let index = 0; index < SESSIONS; index++) await journal.write(firstWrite(`s${index}`))
  for (let seq = 1; seq <= EVENTS; seq++)
    await Promise.all(
      Array.from({ length: SESSIONS }, (_, index) =>
        journal.write({ id: `s${index}`, events: [eventOf(seq, 'x'.repeat(seq === 7 ? 9_000 : 100))] }),
      ),
    )
  await journal.write({ id: 's3', snapshot: { engine: 'provider', state: { messages: ['y'.repeat(6_000)] } } })
  for (let index = 0; index < 40; index++) await queue.add(jobOf(`j${index}`))
  await idempotency.begin('k', 'f')
  await idempotency.complete('k', { status: 201, headers: {}, body: '{}' })
  await outbox.add({ lane: 'l', id: 'd', delivery: {} })
  await storage.close()
  const db = new Driver(path, { readOnly: true })
  const pages: { pageno: number; ncell: number; table: string; name: string }[] = db
    .prepare(
      'SELECT pageno, ncell, name, coalesce((SELECT tbl_name FROM sqlite_master m WHERE m.name = d.name), name) AS "table" FROM dbstat d',
    )
    .all()
  const rows = new Map<string, unknown[]>(TABLES.map((table) => [table, db.prepare(`SELECT * FROM ${table}`).all()]))
  db.close()
  return { path, pages, rows, sound: readFileSync(path) }
}

function overwrite(path: string, sound: Buffer, pages: readonly number[], fill = 0x7f): void {
  const holed = Buffer.from(sound)
  for (const page of pages) holed.fill(fill, (page - 1) * PAGE, page * PAGE)
  for (const beside of ['-wal', '-shm']) rmSync(`${path}${beside}`, { force: true })
  writeFileSync(path, holed)
}

t.test(
  'whichever page is lost: what is in the others is saved, the rest is named, and nothing is made up',
  async (t) => {
    const { path, pages, rows, sound } = await filled(t)
    const target = join(dirname(path), 'saved.db')
    const wrong: string[] = []
    const kinds = new Set<string>()
    for (const fill of [0, 0x7f])
      for (const { pageno, ncell, table, name } of pages) {
        if (table === 'sqlite_schema' || table === 'sqlite_master') continue
        overwrite(path, sound, [pageno], fill)
        const before = readFileSync(path)
        rmSync(target, { force: true })
        writeFileSync(target, '')
        const { tables, ok } = await salvageFile(path, target)
        const at = `page ${pageno} (${name}, ${fill})`
        kinds.add(name)
        if (!readFileSync(path).equals(before)) wrong.push(`${at}: the damaged one was changed`)
        const db = new Driver(target, { readOnly: true })
        for (const known of TABLES) {
          const had = new Set(rows.get(known)!.map((row) => JSON.stringify(row)))
          const has: string[] = db
            .prepare(`SELECT * FROM ${known}`)
            .all()
            .map((row) => JSON.stringify(row))
          const { missingRows, unknown } = tables[known]!
          if (!has.every((row) => had.has(row))) wrong.push(`${at}: ${known} has rows that never were`)
          const follows = known === 'sessions' && table === 'origins'
          if (known !== table && !follows && has.length < had.size)
            wrong.push(`${at}: ${known} lost ${had.size - has.length}`)
          if (has.length < had.size && missingRows === 0 && !unknown) wrong.push(`${at}: ${known} lost rows in silence`)
          if (has.length < had.size && ok) wrong.push(`${at}: said to be whole`)
        }
        db.close()
        if (!TABLES.includes(table as (typeof TABLES)[number])) continue
        const lost = rows.get(table)!.length - tables[table as (typeof TABLES)[number]]!.rows
        const isRoot = pages.find((page) => page.name === name)!.pageno === pageno
        const mine = name === table ? Math.max(1, ncell) : 0
        if (lost > mine && !isRoot) wrong.push(`${at}: ${lost} rows were lost, it had ${mine}`)
      }
    t.same(wrong, [])
    t.ok(kinds.has('events') && kinds.has('jobs') && kinds.has('sessions') && kinds.has('origins'))
  },
)

t.test(
  'two lost pages with sound ones between them cost only their own rows, and the sessions are named',
  async (t) => {
    const { path, pages, sound } = await filled(t)
    const leaves = pages.filter(({ name }) => name === 'events').map(({ pageno }) => pageno)
    const target = join(dirname(path), 'saved.db')
    const one = async (page: number) => {
      overwrite(path, sound, [page])
      rmSync(target, { force: true })
      writeFileSync(target, '')
      return (await salvageFile(path, target)).tables.events!.missingRows
    }
    const costs = new Map<number, number>()
    for (const page of leaves.slice(1)) costs.set(page, await one(page))
    const [first, second] = [...costs]
      .filter(([, rows]) => rows > 5 && rows < 60)
      .map(([page]) => page)
      .slice(1)
    overwrite(path, sound, [first!, second!])
    rmSync(target)
    const report = await salvageSqlite(path, target)
    const { events } = report.tables
    t.equal(events!.missingRows, costs.get(first!)! + costs.get(second!)!)
    t.equal(events!.rows + events!.missingRows, SESSIONS * EVENTS)
    t.match(events!.missing[0], { of: /^s\d+$/, rows: Number })
    t.match(salvageLines(report), [/^incomplete: .*saved\.db has what can be read of .*gateway\.db, which was left/])
    t.match(salvageLines(report).join('\n'), /events +\d+ rows, \d+ NOT COPIED: \d+ of session s\d/)

    const storage = sqliteAt(t, target)
    await storage.open()
    t.equal((await storage.journal.list()).length, SESSIONS)
    await storage.journal.write({ id: 's0', events: [eventOf(EVENTS + 1)] })
    t.equal((await storage.queue.list()).length, 40)
    await storage.journal.write(firstWrite('new'))
    t.same(await storage.journal.read('new', 0, 1_000, 1_000_000), [], 'no session has the events of another')
    t.match(await storage.check(), { ok: true, orphans: { events: 0 } })
  },
)

t.test('the refusal of a damaged database stays, and names the way out', async (t) => {
  const { path, pages, sound } = await filled(t)
  const [, leaf] = pages.filter(({ name }) => name === 'events')
  overwrite(path, sound, [leaf!.pageno])
  await t.rejects(sqliteAt(t, path).open(), { code: 'SQLITE_CORRUPT', message: /doctor --salvage FILE/ })
})

t.test('nothing is overwritten, and nothing is left where nothing can be read', async (t) => {
  const { path, sound } = await filled(t)
  const target = join(dirname(path), 'saved.db')
  writeFileSync(target, 'precious')
  await t.rejects(salvageSqlite(path, target), { code: 'EEXIST', message: /overwrite nothing/ })
  const lost = join(dirname(path), 'lost.db')
  writeFileSync(lost, Buffer.alloc(8192, 'x'))
  // not to do what has just been done
  const told = { code: 'SQLITE_NOTADB', message: /nothing is found without it.*database\. Restore a backup/ }
  await t.rejects(salvageSqlite(lost, join(dirname(path), 'none.db')), told)
  t.equal(readFileSync(target, 'utf8'), 'precious')
  rmSync(target)
  overwrite(path, sound, [1])
  await t.rejects(salvageSqlite(path, target), { code: 'SQLITE_NOTADB', message: /list of its tables cannot be read/ })
  await t.rejects(salvageSqlite(`${path}-none`, target), { code: 'ENOENT' })
  t.notOk(existsSync(target))
  t.same(
    readdirSync(dirname(path)).filter((name) => name.startsWith('saved')),
    [],
  )
})
