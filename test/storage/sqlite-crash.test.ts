import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { doctorSqlite } from '../../src/storage/sqlite/maintenance.js'
import { rounds } from '../fixtures/rounds.js'
import { killedAfter, Ledger, verify } from './crash-ledger.js'
import { compiled, sqliteAt, workerFile } from './sqlite-world.js'

const ROUNDS = rounds(4, 20)

t.test('killed at any moment, it has what was confirmed, and nothing by halves', async (t) => {
  const writer = fileURLToPath(compiled('test/storage/storage-writer.ts'))
  const path = join(t.testdir(), 'gateway.db')
  const database = [path, workerFile().href] as const
  const ledger = new Ledger()
  for (let round = 0; round < ROUNDS; round++) {
    for (const one of await killedAfter(t, writer, database, round, 1 + Math.floor(Math.random() * 300)))
      ledger.add(one)
    const storage = sqliteAt(t, path)
    await storage.open()
    await verify(t, storage, ledger)
    await storage.close()
  }
  const report = await doctorSqlite(path)
  t.match(report, { ok: true, problems: [], orphans: { events: 0, snapshots: 0 } })
})
