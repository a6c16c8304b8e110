import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'

const Driver = await loadDriver()
const TABLES = 'SELECT count(*) AS tables FROM sqlite_master WHERE name = ?'

async function opened(test: Test, pragmas: string[] = []) {
  const path = join(test.testdir(), 'gateway.db')
  const storage = createSqliteStorage({ path }, { pragmas })
  await storage.open()
  test.teardown(() => storage.close())
  return { path, storage }
}

t.test('a storage that is asked whether it takes something keeps nothing of the question', async (t) => {
  const { path, storage } = await opened(t)
  for (let n = 0; n < 3; n++) await storage.probe!()
  await storage.close()
  const db = new Driver(path, { readOnly: true })
  t.same({ ...db.prepare(TABLES).get('probe') }, { tables: 0 })
  db.close()
})

t.test('a full database says so when it is asked, and again that it takes something once there is room', async (t) => {
  const { storage } = await opened(t, ['max_page_count = 80'])
  const filler = 'x'.repeat(8 * 1024)
  const save = (n: number) => storage.profiles.save({ name: `p${n}`, engine: 'cli', description: filler })
  let saved = 0
  try {
    for (; saved < 1_000; saved++) await save(saved)
  } catch (error) {
    t.match(error, { code: 'SQLITE_FULL' })
  }
  t.ok(saved > 0 && saved < 1_000, `${saved} fitted`)
  await t.rejects(storage.probe!(), { code: 'SQLITE_FULL' })
  await t.rejects(storage.probe!(), { code: 'SQLITE_FULL' }, 'and again')
  for (let n = 0; n < Math.min(saved, 12); n++) await storage.profiles.delete(`p${n}`)
  await storage.probe!()
  await save(1_001)
})

t.test('a question that a crash cut off is no hindrance to the next', async (t) => {
  const { path, storage } = await opened(t)
  await storage.close()
  const db = new Driver(path)
  db.exec('CREATE TABLE probe (filler BLOB); INSERT INTO probe VALUES (zeroblob(10))')
  db.close()
  await storage.open()
  await storage.probe!()
  await storage.close()
  const after = new Driver(path, { readOnly: true })
  t.same({ ...after.prepare(TABLES).get('probe') }, { tables: 0 })
  after.close()
})
