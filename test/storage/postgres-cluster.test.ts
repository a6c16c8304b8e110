import t from 'tap'
import type { Taken } from '../../src/storage/cluster.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { hasPostgres, postgres } from './postgres-world.js'
import { firstWrite } from './sqlite-records.js'

if (hasPostgres()) {
  const server = await postgres()
  t.test('smoke', async (t) => {
    const make = async (name: string) => {
      const storage = createPostgresStorage({ url: server.url(), schema: 'many' })
      storage.cluster.announce({ name, url: `http://${name}`, protocol: 1, version: '1', slots: 1, config: 'c' }, 2_000)
      t.teardown(() => storage.close())
      await storage.open()
      return storage
    }
    const a = await make('a')
    const b = await make('b')
    t.match(a.cluster.state, 'serving')
    await a.journal.write(firstWrite('one'))
    t.match(await b.cluster.placeOfSession('one'), { id: 'one', owner: { name: 'a' } })
    t.match(await b.cluster.claim('one'), { id: 'one', owner: { name: 'a' } })
    t.match((await b.journal.listed!({ limit: 9 })).sessions, [{ id: 'one', owner: a.cluster.n }])
    const taken = new Promise<Taken>((resolve) => b.cluster.on('taken', resolve))
    await a.close()
    t.match(await taken, { from: { name: 'a' }, sessionIds: ['one'] })
    t.match((await b.journal.unended!()).length, 1)
    const single = createPostgresStorage({ url: server.url(), schema: 'many' })
    await t.rejects(single.open(), { code: 'STORAGE_HELD', message: /node b/ })
    await b.cluster.release(['one'])
    t.match(await b.cluster.placeOfSession('one'), { owner: undefined })
  })
}
