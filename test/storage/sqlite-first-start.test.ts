import { appendFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { backupSqlite, doctorSqlite } from '../../src/storage/sqlite/maintenance.js'
import { APPLICATION_ID } from '../../src/storage/sqlite/schema.js'
import { eventOf, firstWrite } from './sqlite-records.js'
import { sqliteAt, sqliteWorld } from './sqlite-world.js'

const Driver = await loadDriver()
const PAGE = 4096

/** A rollback journal of a database that had so many pages, with the first of them as it was. */
function journalOf(pages: number, first?: Buffer): Buffer {
  const header = Buffer.alloc(512)
  Buffer.from('d9d505f920a163d7', 'hex').copy(header)
  header.writeUInt32BE(first ? 1 : 0, 8)
  header.writeUInt32BE(pages, 16)
  header.writeUInt32BE(512, 20)
  header.writeUInt32BE(PAGE, 24)
  if (!first) return header
  let sum = 0
  for (let at = PAGE - 200; at > 0; at -= 200) sum += first[at]!
  const [number, checksum] = [Buffer.alloc(4), Buffer.alloc(4)]
  number.writeUInt32BE(1)
  checksum.writeUInt32BE(sum)
  return Buffer.concat([header, number, first, checksum])
}

/** What the first write of a new database puts into its file. */
function firstPage(path: string): Buffer {
  const db = new Driver(path)
  db.exec('PRAGMA journal_mode = WAL')
  db.close()
  return readFileSync(path)
}

t.test('a gateway that was killed in its very first start starts, wherever the kill came', async (t) => {
  const dir = t.testdir()
  const header = firstPage(join(dir, 'header.db'))
  t.equal(header.length, PAGE)
  const journal = journalOf(0)
  const unsynced = Buffer.from(journal).fill(0, 0, 12)
  const states: [string, Buffer, Buffer | undefined][] = [
    ['no file is written to', Buffer.alloc(0), undefined],
    ['the journal is made', Buffer.alloc(0), Buffer.alloc(0)],
    ['it has a header', Buffer.alloc(0), unsynced],
    ['which counts', Buffer.alloc(0), journal],
    ['the database has half a header', header.subarray(0, 40), journal],
    ['a whole one', header.subarray(0, 100), journal],
    ['a part of its page', header.subarray(0, 512), journal],
    ['its page', header, journal],
    ['the journal is emptied', header, Buffer.alloc(0)],
    ['the journal is gone', header, undefined],
  ]
  for (const [index, [state, database, beside]] of states.entries()) {
    const path = join(dir, `${index}.db`)
    writeFileSync(path, database)
    if (beside) writeFileSync(`${path}-journal`, beside)
    t.match(await doctorSqlite(path), { ok: true, schemaVersion: 0, problems: [] }, `the doctor, when ${state}`)
    t.equal(statSync(path).size, database.length, 'which only looks')
    const storage = sqliteAt(t, path)
    await storage.open()
    await storage.journal.write(firstWrite('s'))
    t.match(await storage.check(), { ok: true, tables: { sessions: { rows: 1 } } }, state)
    await storage.close()
  }
})

t.test('a gateway that was killed in its first start with a backup starts with all of it', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  await storage.journal.write({ ...firstWrite('s'), events: [eventOf(1)] })
  await storage.close()
  const copy = join(dirname(path), 'copy.db')
  await backupSqlite(path, copy)
  const before = readFileSync(copy)
  writeFileSync(`${copy}-journal`, journalOf(before.length / PAGE, before.subarray(0, PAGE)))
  const changed = Buffer.from(before)
  changed.fill(2, 18, 20)
  writeFileSync(copy, changed)
  t.match(await doctorSqlite(copy), {
    ok: false,
    problems: [],
    refusal: /next start of the gateway takes that change back/,
  })
  const restored = sqliteAt(t, copy)
  await restored.open()
  t.match(await restored.journal.list(), [{ id: 's', lastSeq: 1 }])
  t.match(await restored.check(), { ok: true })
})

t.test('what another program left half done in a file of its own is not taken back', async (t) => {
  const path = join(t.testdir(), 'foreign.db')
  const db = new Driver(path)
  db.exec('PRAGMA application_id = 7; CREATE TABLE x (y)')
  db.close()
  const before = readFileSync(path)
  writeFileSync(`${path}-journal`, journalOf(before.length / PAGE, before.subarray(0, PAGE)))
  await t.rejects(sqliteAt(t, path).open(), { code: 'SQLITE_READONLY' })
  t.ok(readFileSync(path).equals(before))
  t.equal(statSync(`${path}-journal`).size, 512 + PAGE + 8)
})

t.test(
  'the doctor says of an intact database of a newer version what the daemon says, and of a damaged one both',
  async (t) => {
    const { path, storage } = await sqliteWorld(t)
    await storage.journal.write({
      ...firstWrite('s'),
      events: Array.from({ length: 99 }, (_, at) => eventOf(at + 1, 'x'.repeat(900))),
    })
    await storage.close()
    const db = new Driver(path)
    db.exec('INSERT INTO schema_versions (version, taken_at) VALUES (99, 0)')
    db.close()
    const said: string = await storage.open().then(
      () => '',
      (error) => error.message,
    )
    t.match(said, /was written by a newer version/)
    const report = await doctorSqlite(path)
    t.match(report, { ok: false, problems: [], refusal: said })
    const { reportLines } = await import('../../src/daemon/doctor-report.js')
    t.equal(reportLines(report)[0], `refused: ${said}`)
    const { size } = statSync(path)
    truncateSync(path, size - 2 * PAGE)
    appendFileSync(path, Buffer.alloc(2 * PAGE, 0x7f))
    const both = await doctorSqlite(path)
    t.ok(both.problems.length > 0)
    t.match(reportLines(both), [/^damaged: /, `  ${said}`])
    const foreign = join(dirname(path), 'foreign.db')
    const other = new Driver(foreign)
    other.exec(`PRAGMA application_id = ${APPLICATION_ID - 1}; CREATE TABLE x (y)`)
    other.close()
    t.match(reportLines(await doctorSqlite(foreign))[0], /^refused: .*is an SQLite database of something else/)
  },
)

t.test(
  'after a clean stop nothing is left in the write-ahead log, also while somebody else has the database open',
  async (t) => {
    const { path, storage } = await sqliteWorld(t)
    const reader = new Driver(path, { readOnly: true })
    t.teardown(() => reader.close())
    reader.prepare('SELECT count(*) FROM sessions').get()
    for (let index = 0; index < 20; index++) await storage.journal.write(firstWrite(`s${index}`))
    t.ok(statSync(`${path}-wal`).size > 0)
    await storage.close()
    t.equal(statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0, 0)
  },
)
