import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { sqliteSource } from '../../src/storage/migration/sqlite-side.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { backupSqlite, doctorSqlite, salvageSqlite } from '../../src/storage/sqlite/maintenance.js'
import { SCHEMA_VERSION } from '../../src/storage/sqlite/schema.js'
import { until } from '../fixtures/build.js'
import { eventOf, firstWrite, jobOf } from './sqlite-records.js'
import { compiled, sqliteAt, sqliteWorld, workerFile } from './sqlite-world.js'

t.test('a backup is one moment of a storage that goes on, and opens like it', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  await storage.journal.write({ ...firstWrite('s'), events: [eventOf(1)], reservedSeq: 64 })
  await storage.queue.add(jobOf('before'))
  const copy = join(dirname(path), 'copy.db')
  const backup = storage.backup(copy)
  let seq = 1
  for (let over = false; !over; ) {
    const done = backup.then(() => true)
    await storage.journal.write({ id: 's', events: [eventOf(++seq)] })
    over = await Promise.race([done, new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))])
  }
  t.equal(statSync(copy).mode & 0o777, 0o600)
  t.same(
    readdirSync(dirname(path)).filter((name) => name.startsWith('copy')),
    ['copy.db'],
  )
  const restored = sqliteAt(t, copy)
  await restored.open()
  t.match(await restored.queue.list(), [{ info: { id: 'before' } }])
  const events = await restored.journal.read('s', 0, 1_000_000, 100_000_000)
  t.ok(events.length >= 1 && events.length <= seq)
  t.equal((await restored.journal.get('s'))?.reservedSeq, Math.max(64, events.length) + 1_000_000)
  await restored.journal.write({ id: 's', events: [eventOf(seq + 1)] })
})

t.test('who was told more than a copy has is told so when it is put in the place of the database', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  await storage.notifications!.open('feed')
  const origin = {
    ...firstWrite('s').origin!,
    createdBy: 'ünï',
    config: { cwd: '/srv', meta: { big: 1e300, n: 9007199254740991 } },
  }
  await storage.journal.write({ ...firstWrite('s'), origin, events: [eventOf(1)], reservedSeq: 64 })
  const told = {
    type: 'turn_completed' as const,
    sessionId: 's',
    profile: 'one',
    ts: 1,
    json: '{"id":"feed:000000000007","big":9007199254740993,"text":"\\ud800\u00fc"}',
  }
  await storage.notifications!.add({ ...told, number: 7 })
  const [copy, salvaged, copyOfCopy] = ['copy.db', 'salvaged.db', 'again.db'].map((name) => join(dirname(path), name))
  await storage.backup(copy!)
  await salvageSqlite(path, salvaged!)
  await backupSqlite(copy!, copyOfCopy!)
  const epochs = new Set([origin.epoch, 'feed'])
  for (const [file, times] of [
    [copy!, 1],
    [salvaged!, 1],
    [copyOfCopy!, 2],
  ] as const) {
    const restored = sqliteAt(t, file)
    await restored.open()
    const found = await restored.journal.get('s')
    t.same({ ...found, epoch: origin.epoch, config: origin.config }, { ...found, ...origin }, 'nothing else is changed')
    t.notOk(epochs.has(found!.epoch), 'its log is another')
    epochs.add(found!.epoch)
    t.equal(found!.reservedSeq, 64 + times * 1_000_000, 'and no number of it is given twice')
    const feed = await restored.notifications!.open('other')
    t.equal(feed.lastNumber, 7)
    t.notOk(epochs.has(feed.epoch), 'the feed is another, too')
    epochs.add(feed.epoch)
    const range = { after: 0, until: 9, since: 0 }
    const [kept] = await restored.notifications!.read(range, { limit: 9, maxBytes: 999, newest: false })
    t.match(kept, {
      number: 7,
      json: `{"id":"${feed.epoch}:000000000007","big":9007199254740993,"text":"\\ud800\u00fc"}`,
    })
  }
  t.equal((await storage.journal.get('s'))?.epoch, origin.epoch, 'the database itself goes on as it was')
})

t.test('a backup overwrites nothing, and leaves nothing behind when it fails', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  const target = join(dirname(path), 'there')
  writeFileSync(target, 'precious')
  await t.rejects(storage.backup(target), { code: 'EEXIST', message: /backups overwrite nothing/ })
  await t.rejects(storage.backup(path), { code: 'EEXIST' })
  await t.rejects(storage.backup(join(target, 'x')), { code: 'ENOTDIR' })
  await t.rejects(backupSqlite(`${path}-none`, `${target}-copy`), {
    code: 'ENOENT',
    message: /There is no database .* first start/,
  })
  await t.rejects(backupSqlite(target, `${target}-copy`), { code: 'SQLITE_NOTADB' })
  const empty = `${target}-empty`
  writeFileSync(empty, '')
  await t.rejects(backupSqlite(empty, `${target}-copy`), { message: /-empty is empty: there is nothing to copy/ })
  t.notOk(existsSync(`${target}-copy`))
  await storage.close()
  await t.rejects(storage.backup(`${target}-copy`), { code: 'STORAGE_CLOSED' })
})

t.test('a database that this account may not look for is not said to be missing', async (t) => {
  const dir = t.testdir()
  const path = join(dir, 'gateway.db')
  writeFileSync(path, '')
  chmodSync(dir, 0)
  const isRoot = process.geteuid!() === 0
  const refusal = { code: 'EACCES', message: /^This account may not look for .*gateway\.db: be the one/ }
  // root may look everywhere
  if (isRoot) process.seteuid!(65534)
  try {
    await t.rejects(doctorSqlite(path), refusal)
    await t.rejects(backupSqlite(path, `${path}-copy`), refusal)
    await t.rejects(sqliteSource(path), refusal)
  } finally {
    if (isRoot) process.seteuid!(0)
    chmodSync(dir, 0o700)
  }
})

t.test('both work on a database that another process holds', async (t) => {
  const dir = t.testdir()
  const path = join(dir, 'gateway.db')
  const writer = fileURLToPath(compiled('test/storage/storage-writer.ts'))
  const child = fork(writer, [path, workerFile().href, 'write', '0'], { execArgv: [] })
  t.teardown(() => void child.kill('SIGKILL'))
  const told = () => once(child, 'message')
  for (let count = 0; count < 50; count++) await told()
  const report = await doctorSqlite(path)
  t.match(report, { path, ok: true, problems: [], schemaVersion: SCHEMA_VERSION, orphans: { events: 0, snapshots: 0 } })
  t.ok(report.bytes.database + report.bytes.wal > 0)
  t.ok(report.tables.events!.bytes > 0 && report.tables.jobs!.rows > 0)
  await backupSqlite(path, join(dir, 'copy.db'))
  await told()
  t.match(await doctorSqlite(join(dir, 'copy.db')), { ok: true, schemaVersion: SCHEMA_VERSION })
})

t.test('the doctor tells what is wrong, and what belongs to nobody', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  await storage.sessions.save({ id: 'alone' } as Parameters<typeof storage.sessions.save>[0])
  t.match(await storage.check(), { ok: true, orphans: { events: 0, snapshots: 0, parked: 1 } })
  await storage.close()
  writeFileSync(path, 'no database'.repeat(1_000))
  t.match(await doctorSqlite(path), { ok: false, problems: [/gateway\.db is not a database/] })
  await t.rejects(doctorSqlite(`${path}-none`), { code: 'ENOENT' })
})

t.test(
  'a file that this account may not open is not called damaged',
  { skip: process.getuid?.() === 0 && 'root' },
  async (t) => {
    const { path, storage } = await sqliteWorld(t)
    await storage.close()
    chmodSync(path, 0o000)
    t.match(await doctorSqlite(path), {
      ok: false,
      problems: [],
      refusal: /gateway\.db cannot be opened; this account has to/,
    })
  },
)

t.test('a path that is too long is called that', async (t) => {
  const dir = join(t.testdir(), ...Array<string>(3).fill('x'.repeat(200)))
  mkdirSync(dir, { recursive: true })
  await t.rejects(sqliteAt(t, join(dir, 'gateway.db')).open(), {
    message: /SQLite takes no path of more than 504 bytes/,
  })
})

const BIG = 'x'.repeat(50_000)
const events = (from: number, count: number) => Array.from({ length: count }, (_, at) => eventOf(from + at, BIG))

t.test('what is free is given back to the file system, but for a reserve', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  await storage.journal.write({ ...firstWrite('s'), events: events(1, 400) })
  await storage.journal.write({ ...firstWrite('stays'), events: events(1, 10) })
  await until(() => statSync(path).size > 20_000_000, 'a large file')
  await storage.journal.remove('s')
  await until(() => statSync(path).size < 6_000_000, 'a small file')
  const { bytes, shrinks, unswept } = await storage.check()
  t.match({ shrinks, unswept }, { shrinks: true, unswept: 0 })
  t.ok(bytes.free > 3_000_000, 'some stays for what comes next')
  t.equal((await storage.journal.read('stays', 0, 100, 10_000_000)).length, 10)
})

t.test(
  'a database of before that is written anew once, so that it gives back too, and so does a backup of it',
  async (t) => {
    const { path, storage, reopen } = await sqliteWorld(t)
    await storage.journal.write({ ...firstWrite('s'), events: events(1, 10) })
    await storage.close()
    const Driver = await loadDriver()
    const db = new Driver(path)
    db.exec('PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM')
    db.close()
    t.equal((await doctorSqlite(path)).shrinks, false)
    const copy = join(dirname(path), 'copy.db')
    await backupSqlite(path, copy)
    t.match(await doctorSqlite(copy), { ok: true, shrinks: true })
    const again = await reopen()
    t.match(await again.check(), { ok: true, shrinks: true })
    t.equal((await again.journal.read('s', 0, 100, 10_000_000)).length, 10)
  },
)
