import t from 'tap'
import { backupHelp } from '../../src/storage/postgres/maintenance.js'
import { hasPostgres, postgresWorld } from './postgres-world.js'
import { firstWrite } from './sqlite-records.js'

if (hasPostgres()) {
  t.test('a copy goes on in the place of its original as one of SQLite does', async (t) => {
    const { server, schema, storage, reopen } = await postgresWorld(t)
    const { origin, ...first } = firstWrite('s')
    const config = { ...origin!.config, meta: { epoch: 'mine', text: '"epoch":"\u0000\ud800' } }
    const written = { ...origin!, config, createdBy: '"epoch":"x"' }
    await storage.journal.write({ ...first, origin: written, reservedSeq: 64 })
    await storage.journal.write(firstWrite('other'))
    await storage.notifications!.open('feed')
    const json = '{"id":"feed:000000000007","big":9007199254740993,"text":"\\ud800\\u0000"}'
    const told = { type: 'turn_completed' as const, sessionId: 's', profile: 'one', ts: 1, json }
    await storage.notifications!.add({ ...told, number: 7 })
    await storage.close()

    const help = backupHelp({ url: server.url(), schema }, 'copy.dump').join('\n')
    await server.query(/psql --command='(.*?)'/.exec(help)![1]!)

    const restored = await reopen()
    const found = await restored.journal.get('s')
    t.same({ ...found, epoch: origin!.epoch }, { ...found, ...written }, 'nothing else is changed')
    t.equal(found!.reservedSeq, 64 + 1_000_000, 'no number of it is given twice')
    const other = await restored.journal.get('other')
    const feed = await restored.notifications!.open('other')
    t.equal(new Set([origin!.epoch, found!.epoch, other!.epoch, 'feed', feed.epoch]).size, 5, 'its logs are others')
    t.equal(feed.lastNumber, 7)
    const range = { after: 0, until: 9, since: 0 }
    const [kept] = await restored.notifications!.read(range, { limit: 9, maxBytes: 999, newest: false })
    t.equal(kept!.json, json.replace('feed', feed.epoch))
  })
}
