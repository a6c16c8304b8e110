import { fork } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { migrateStorage } from '../../src/storage/migration/migrate.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { backupSqlite, checkSqlite, doctorSqlite, salvageSqlite } from '../../src/storage/sqlite/maintenance.js'
import { migrate, SCHEMA_VERSION } from '../../src/storage/sqlite/schema.js'
import { eventOf, firstWrite } from './sqlite-records.js'
import { compiled, sqliteAt, sqliteWorld, workerFile } from './sqlite-world.js'

const Driver = await loadDriver()

/** A process that holds a database until it is killed. */
async function holder(t: Test, path: string) {
  const child = fork(fileURLToPath(compiled('test/storage/storage-writer.ts')), [path, workerFile().href, 'hold'], {
    execArgv: [],
  })
  t.teardown(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

t.test('directory and files are this account’s alone; closed, there is one file and no lock', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  await storage.journal.write(firstWrite('s'))
  t.equal(statSync(dirname(path)).mode & 0o777, 0o700)
  for (const name of readdirSync(dirname(path))) t.equal(statSync(join(dirname(path), name)).mode & 0o777, 0o600, name)
  await storage.close()
  t.same(readdirSync(dirname(path)), ['gateway.db'])
})

t.test('it opens once, closes once, and opens again', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  await Promise.all([storage.open(), storage.open()])
  const written = storage.journal.write(firstWrite('s'))
  await Promise.all([storage.close(), storage.close()])
  await written
  await t.rejects(storage.journal.list(), { code: 'STORAGE_CLOSED', message: `${path} is not open.` })
  await storage.open()
  t.match(await storage.journal.list(), [{ id: 's' }])
  const closed = storage.close()
  await storage.open()
  await closed
  t.match(await storage.journal.list(), [{ id: 's' }], 'also right after a close')
})

t.test('a second storage of this process is refused, by whichever name', async (t) => {
  const { path } = await sqliteWorld(t)
  symlinkSync(path, `${path}.link`)
  for (const name of [path, `${path}.link`])
    await t.rejects(sqliteAt(t, name).open(), /in use by another storage of this process/)
})

t.test(
  'a database that is in use under another name of its own is refused, and one that is not is taken',
  { skip: !existsSync('/proc/locks') && 'no list of locks' },
  async (t) => {
    const { path, storage } = await sqliteWorld(t)
    await storage.journal.write(firstWrite('s'))
    const linked = join(dirname(dirname(path)), 'linked.db')
    linkSync(path, linked)
    const second = sqliteAt(t, linked)
    const says = new RegExp(`linked.db is in use by process ${process.pid} under another name`)
    await t.rejects(second.open(), { code: 'STORAGE_HELD', message: says })
    t.same(readdirSync(dirname(linked)), ['linked.db', 'state'], 'nothing is left beside it')
    await storage.journal.write(firstWrite('s2'))
    await storage.close()
    await second.open()
    t.equal((await second.journal.list()).length, 2)
  },
)

t.test('a second process is refused and told who holds it; once that one is killed it is let in', async (t) => {
  const path = join(t.testdir(), 'gateway.db')
  const child = await holder(t, path)
  const storage = sqliteAt(t, path)
  await t.rejects(storage.open(), new RegExp(`In use by process ${child.pid} on host ${hostname()}, started at`))
  child.kill('SIGKILL')
  await once(child, 'exit')
  await storage.open()
  t.match(await storage.journal.list(), [{ id: 'held' }])
})

for (const suffix of ['', '-wal', '-shm'])
  t.test(`gateway.db${suffix}, moved while it is in use: nothing is confirmed until it is back`, async (t) => {
    const { path, storage, reopen } = await sqliteWorld(t)
    await storage.journal.write(firstWrite('before'))
    const file = `${path}${suffix}`
    renameSync(file, `${file}.aside`)
    const moved = { code: 'STORAGE_MOVED', message: new RegExp(`^${file} was moved, removed or replaced`) }
    await t.rejects(storage.journal.write(firstWrite('meanwhile')), moved)
    writeFileSync(file, '')
    await t.rejects(storage.probe!(), moved, 'nor with another file in its place')
    renameSync(`${file}.aside`, file)
    await storage.probe!()
    await storage.journal.write(firstWrite('after'))
    const again = await reopen()
    t.match(await again.journal.list(), [{ id: 'before' }, { id: 'after' }])
  })

t.test('emptied while it is in use, it takes nothing more, and what is left of it is refused as it is', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  await storage.journal.write(firstWrite('before'))
  const left = join(dirname(path), 'left.db')
  copyFileSync(`${path}-wal`, `${left}-wal`)
  truncateSync(path)
  const emptied = { code: 'STORAGE_MOVED', message: /gateway\.db was emptied while it was in use\. .* restore/ }
  await t.rejects(storage.journal.write(firstWrite('meanwhile')), emptied)

  // as a kill, or a copy onto a full disk, leaves it
  writeFileSync(left, '')
  const { size } = statSync(`${left}-wal`)
  t.ok(size > 0)
  const damaged = {
    code: 'SQLITE_CORRUPT',
    message:
      /left\.db is damaged: it is empty, and its write-ahead log is not: .* remove the -wal and -shm files beside it/,
  }
  await t.rejects(sqliteAt(t, left).open(), damaged)
  await t.rejects(checkSqlite(left), damaged)
  await t.rejects(backupSqlite(left, `${left}.copy`), damaged)
  await t.rejects(migrateStorage({ sqlite: left }, { sqlite: `${left}.copy` }), damaged)
  t.match(await doctorSqlite(left), { ok: false, problems: [damaged.message] })
  await t.rejects(salvageSqlite(left, `${left}.copy`), { message: /^(?!.*--salvage)/ }, 'nor advised what is refused')
  rmSync(left)
  await t.rejects(checkSqlite(left), damaged, 'removed without its log, it could not be used either')
  t.equal(statSync(`${left}-wal`).size, size)
})

t.test('whoever has lost the lock writes nothing any more, also when the other is gone again', async (t) => {
  const path = join(t.testdir(), 'gateway.db')
  const storage = sqliteAt(t, path)
  await storage.open()
  rmSync(`${path}.lock`)
  const child = await holder(t, path)
  const fenced = { code: 'STORAGE_FENCED', message: /gateway\.db\.lock was removed while it was held/ }
  await t.rejects(storage.journal.write(firstWrite('late')), fenced)
  child.kill('SIGKILL')
  await once(child, 'exit')
  rmSync(`${path}.lock`)
  await t.rejects(storage.probe!(), fenced)
  await storage.close()
  await storage.open()
  t.match(await storage.journal.list(), [{ id: 'held' }])
})

t.test(
  'a lock that was removed is told from another in its place, also where the file system uses numbers again',
  async (t) => {
    const { path, storage } = await sqliteWorld(t)
    const lock = `${path}.lock`
    const text = readFileSync(lock, 'utf8')
    rmSync(lock)
    writeFileSync(lock, text)
    await t.rejects(storage.probe!(), { code: 'STORAGE_FENCED' })
  },
)

t.test('what cannot be a place for a database is told', async (t) => {
  const dir = t.testdir({ file: 'x', folder: {} })
  const open = (path: string) => sqliteAt(t, path).open()
  await t.rejects(open(join(dir, 'file', 'gateway.db')), /gateway\.db cannot be used as a database: E/)
  await t.rejects(open(join(dir, 'folder')), /folder cannot be used as a database: EISDIR/)
  t.same(readdirSync(dir), ['file', 'folder'], 'and no lock is left')
  await t.rejects(open('/proc/gateway.db'), /cannot be used as a database: E/)
  chmodSync(join(dir, 'folder'), 0o777)
  await t.rejects(open(join(dir, 'folder', 'gateway.db')), /Every account of this machine may write into/)
  t.same(readdirSync(join(dir, 'folder')), [])
})

t.test('a directory that may not be written to is told', { skip: process.getuid?.() === 0 && 'root' }, async (t) => {
  const { path, storage } = await sqliteWorld(t)
  await storage.close()
  chmodSync(dirname(path), 0o500)
  t.teardown(() => chmodSync(dirname(path), 0o700))
  await t.rejects(storage.open(), /cannot be used as a database: EACCES/)
})

t.test('and what to do about it', { skip: !process.seteuid && 'no accounts' }, async (t) => {
  const dir = t.testdir({ folder: {} })
  const folder = join(dir, 'folder')
  chmodSync(folder, 0o555)
  t.teardown(() => chmodSync(folder, 0o755))
  const isRoot = process.getuid!() === 0
  if (isRoot) process.seteuid!(65_534)
  const refused = await sqliteAt(t, join(folder, 'gateway.db'))
    .open()
    .catch((error) => error.message)
    .finally(() => isRoot && process.seteuid!(0))
  t.match(
    refused,
    /EACCES.* Let this user write to it and to .*\/folder, or put the database elsewhere: storage\.sqlite\.$/,
  )
})

t.test('a file that is no sound database of ours is refused and left as it is', async (t) => {
  const dir = t.testdir()
  const write = (name: string, make: (path: string) => void) => {
    const path = join(dir, name)
    make(path)
    return path
  }
  const database = (sql: string) => (path: string) => {
    const db = new Driver(path)
    db.exec(sql)
    db.close()
  }
  const whole = await sqliteWorld(t)
  await whole.storage.journal.write({
    ...firstWrite('s'),
    events: Array.from({ length: 300 }, (_, i) => eventOf(i + 1, 'x'.repeat(500))),
  })
  await whole.storage.close()
  const sound = readFileSync(whole.path)
  const holed = Buffer.from(sound)
  for (let at = 4096 * 4; at < holed.length; at += 4096) holed.fill(0x7f, at, at + 4096)
  const refused: [string, RegExp][] = [
    [
      write('text.db', (path) => writeFileSync(path, 'this is no database at all\n'.repeat(50))),
      /text\.db is not a database/,
    ],
    [write('foreign.db', database('CREATE TABLE x (y)')), /is an SQLite database of something else/],
    [write('holed.db', (path) => writeFileSync(path, holed)), /holed\.db is damaged.*doctor.*restore a backup/],
    [write('cut.db', (path) => writeFileSync(path, sound.subarray(0, 4096 * 6))), /cut\.db is damaged/],
    [
      write('newer.db', (path) => {
        writeFileSync(path, sound)
        database(`INSERT INTO schema_versions (version, taken_at) VALUES (${SCHEMA_VERSION + 1}, 0)`)(path)
      }),
      new RegExp(
        `newer version: its schema is version ${SCHEMA_VERSION + 1}, this one knows versions up to ${SCHEMA_VERSION}\\b`,
      ),
    ],
  ]
  for (const [path, message] of refused) {
    const before = readFileSync(path)
    await t.rejects(sqliteAt(t, path).open(), { message, code: String }, path)
    t.ok(readFileSync(path).equals(before), 'left as it was')
    t.notOk(existsSync(`${path}.lock`), 'not held')
    t.notOk(statSync(`${path}-wal`, { throwIfNoEntry: false })?.size, 'nothing waits to be written')
  }
  writeFileSync(refused[0]![0], sound)
  const storage = sqliteAt(t, refused[0]![0])
  await storage.open()
  t.match(await storage.journal.list(), [{ id: 's' }], 'a backup in its place is taken')
})

t.test('migrations: each step whole or not at all, none twice', async (t) => {
  const path = join(t.testdir(), 'x.db')
  const db = new Driver(path)
  t.teardown(() => db.close())
  const tables = () =>
    db
      .prepare("SELECT name FROM sqlite_master WHERE name LIKE 'step%'")
      .all()
      .map(({ name }) => name)
  const bad = 'CREATE TABLE step2 (x); CREATE TABLE step1 (x)'
  t.throws(() => migrate(db, path, ['CREATE TABLE step1 (x)', bad]), /already exists/)
  t.same(tables(), ['step1'])
  migrate(db, path, ['CREATE TABLE step1 (x)', 'CREATE TABLE step2 (x)', 'CREATE TABLE step3 (x)'])
  migrate(db, path, ['CREATE TABLE step1 (x)', 'CREATE TABLE step2 (x)', 'CREATE TABLE step3 (x)'])
  t.same(tables(), ['step1', 'step2', 'step3'])
  t.throws(
    () => migrate(db, path, ['CREATE TABLE step1 (x)']),
    /its schema is version 3, this one knows versions up to 1\b/,
  )
})

t.test('records that cannot be read are told and left in place, the others are listed', async (t) => {
  const { path, storage } = await sqliteWorld(t)
  for (const id of ['one', 'two']) await storage.journal.write(firstWrite(id))
  await storage.close()
  mkdirSync(dirname(path), { recursive: true })
  const db = new Driver(path)
  db.exec(`UPDATE sessions SET state = '{"info' WHERE id = 'one'; INSERT INTO parked (id, record) VALUES ('p', '')`)
  db.close()
  await storage.open()
  const errors: Error[] = []
  t.match(await storage.journal.list((error) => errors.push(error)), [{ id: 'two' }])
  t.same(await storage.sessions.list((error) => errors.push(error)), [])
  t.match(errors, [/Session one cannot be read.*left in place/, /parked session p cannot be read/])
  await t.rejects(storage.journal.get('one'), /cannot be read/)
  t.match(await storage.journal.list(), [{ id: 'two' }])
})
