import { copyFileSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { migrateStorage } from '../../src/storage/migration/migrate.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import type { DatabaseStorage } from '../../src/storage/sql/storage.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { hasPostgres, postgres } from './postgres-world.js'
import { firstWrite } from './sqlite-records.js'
import { sqliteAt } from './sqlite-world.js'

/** A database with one session, in a folder with room for another. */
async function oneSession(t: Test) {
  const folder = t.testdir({ first: {}, second: {} })
  const [path, other] = [join(folder, 'first', 'a.db'), join(folder, 'second', 'b.db')]
  const source = sqliteAt(t, path)
  await source.open()
  await source.journal.write(firstWrite('one'))
  await source.close()
  return { path, other, folder }
}

if (hasPostgres()) {
  const server = await postgres()

  t.test('a schema is not moved into itself; nobody else is blamed', async (t) => {
    const { path } = await oneSession(t)
    const place = { postgres: { url: server.url(), schema: 'itself' } }
    await migrateStorage({ sqlite: path }, place)
    const renamed = { postgres: { ...place.postgres, url: `${server.url()}?application_name=another` } }
    await t.rejects(migrateStorage(place, renamed), { code: 'STORAGE_SAME' })
    const other = { postgres: { ...place.postgres, schema: 'another' } }
    t.match(await migrateStorage(place, other), { isNew: true })
  })

  t.test('a target that a gateway has only been started on is left as it is', async (t) => {
    const { path, other } = await oneSession(t)
    const place = { postgres: { url: server.url(), schema: 'only_a_feed' } }
    const opened = async (work: (storage: DatabaseStorage) => Promise<unknown>) => {
      for (const storage of [sqliteAt(t, other), createPostgresStorage(place.postgres)]) {
        t.teardown(() => storage.close())
        await storage.open()
        await work(storage)
        await storage.close()
      }
    }
    await opened(({ notifications }) => notifications.open('its own'))
    for (const target of [{ sqlite: other }, place])
      await t.rejects(migrateStorage({ sqlite: path }, target), { code: 'STORAGE_NOT_EMPTY' })
    await opened(async (storage) => {
      t.match(await storage.notifications.open('another'), { epoch: 'its own' })
      t.strictSame(await storage.journal.list(), [])
    })
  })
}

t.test('what a migration that was killed has left beside its target goes with the next one', async (t) => {
  const { path, other, folder } = await oneSession(t)
  const leave = () => {
    for (const end of ['', '-wal', '-shm']) writeFileSync(`${other}.migrating${end}`, 'half of it')
  }
  leave()
  t.match(await migrateStorage({ sqlite: path }, { sqlite: other }), { isNew: true })
  const left = () => readdirSync(join(folder, 'second')).filter((name) => name.includes('migrating'))
  t.strictSame(left(), [])
  leave()
  t.match(await migrateStorage({ sqlite: path }, { sqlite: other }), { isNew: false })
  t.strictSame(left(), [])
})

t.test('a file is not moved into itself, by whatever name', async (t) => {
  const { path, folder } = await oneSession(t)
  symlinkSync(path, join(folder, 'link.db'))
  for (const to of [path, join(folder, 'link.db')])
    await t.rejects(migrateStorage({ sqlite: path }, { sqlite: to }), { code: 'STORAGE_SAME' })
  t.notOk(existsSync(`${path}.migrating`))
})

t.test('a database that is damaged, of something else or of a newer version is told as a start tells it', async (t) => {
  const { path, other, folder } = await oneSession(t)
  const Driver = await loadDriver()
  const [damaged, foreign, newer] = ['damaged', 'foreign', 'newer'].map((name) => join(folder, `${name}.db`))
  for (const copy of [damaged!, newer!]) copyFileSync(path, copy)
  const change = (file: string, sql: string) => {
    const db = new Driver(file)
    db.exec(sql)
    db.close()
  }
  change(foreign!, 'CREATE TABLE things (a)')
  change(newer!, 'INSERT INTO schema_versions VALUES (999, 0)')
  const db = new Driver(path, { readOnly: true })
  const { rootpage } = db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'sessions'").get()
  const { page_size: size } = db.prepare('PRAGMA page_size').get()
  db.close()
  writeFileSync(damaged!, readFileSync(damaged!).fill('x', (rootpage - 1) * size, rootpage * size))
  for (const [file, code] of [
    [damaged!, 'SQLITE_CORRUPT'],
    [foreign!, 'STORAGE_FOREIGN'],
    [newer!, 'STORAGE_NEWER'],
  ] as const) {
    const told = { name: 'StorageError', code, message: file }
    await t.rejects(migrateStorage({ sqlite: file }, { sqlite: other }), told)
    await t.rejects(migrateStorage({ sqlite: path }, { sqlite: file }), told)
  }
})
