import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { KeptSignIn } from '../../src/console/store.js'
import type { KeptSubscription } from '../../src/notifications/channels/store.js'
import type { KeptNotification } from '../../src/notifications/store.js'
import { type Database, loadDriver } from '../../src/storage/sqlite/driver.js'
import { doctorSqlite } from '../../src/storage/sqlite/maintenance.js'
import { SCHEMA_VERSION } from '../../src/storage/sqlite/schema.js'
import type { SqliteStorage } from '../../src/storage/sqlite/storage.js'
import { eventOf, firstWrite, jobOf, readTexts, stateOf } from './sqlite-records.js'
import { sqliteAt, sqliteWorld } from './sqlite-world.js'

const FIXTURES = fileURLToPath(new URL('../fixtures/databases', import.meta.url))
const current = join(FIXTURES, `v${SCHEMA_VERSION}.sql`)
const Driver = await loadDriver()

const ANSWER = { status: 201, headers: { location: '/v1/sessions/kept' }, body: '{}' }
const ATTEMPT = { id: 'd1', type: 'job_completed', attempt: 1, at: 1_760_000_000_000, status: 503, durationMs: 4 }
const TOLD: KeptNotification = {
  ...{ number: 12, type: 'session_closed', sessionId: 'removed', profile: 'one', ts: 1_760_000_000_000 },
  json: '{"id":"the-feed:000000000012"}',
}
const SUBSCRIBED: KeptSubscription = {
  ...{ id: 's1', endpoint: 'https://push.example/1', keys: { p256dh: 'p', auth: 'a' } },
  ...{ principal: 'ada', createdAt: 1_760_000_000_000, expiresAt: 1_765_000_000_000 },
}
const SIGNED_IN: KeptSignIn = {
  ...{ id: 'i1', secretHash: 'h', sealedToken: 's', owner: 'ada' },
  ...{ createdAt: 1_760_000_000_000, lastSeenAt: 1_760_000_000_000, endsAt: 1_765_000_000_000 },
}
const COUNTED = { day: '2026-01-01', profile: 'one', agent: 'claude', person: 'ada', turns: 2, costUsd: 0.5 }
const SNAPSHOT = { engine: 'provider', state: { messages: [] } }
const parked = { id: 'parked', parkedAt: 7, settled: ['e1'] } as unknown as Parameters<
  SqliteStorage['sessions']['save']
>[0]

/** A bit of everything, some of it in the middle of what a gateway does with it. */
async function fill({
  journal,
  sessions,
  profiles,
  queue,
  idempotency,
  outbox,
  notifications,
  channels,
  signIns,
  usage,
}: SqliteStorage): Promise<void> {
  await journal.write({ ...firstWrite('kept'), snapshot: SNAPSHOT, reservedSeq: 64 })
  await journal.write({
    id: 'kept',
    state: stateOf('kept', { lastSeq: 3 }),
    events: [1, 2, 3].map((seq) => eventOf(seq, '🥊')),
  })
  await journal.write({ ...firstWrite('removed'), events: [eventOf(1)] })
  await journal.remove('removed')
  await sessions.save(parked)
  await profiles.save({ name: 'one', engine: 'cli', configDir: '/srv/agents/one' })
  for (const [id, priority] of Object.entries({ low: -1, high: 5, done: 9, running: 8, delayed: 0 }))
    await queue.add(jobOf(id, priority))
  await queue.claimNext()
  await queue.settle!('done', { status: 'succeeded', finishedAt: 5 }, { day: '2026-01-01', tokens: 12 }, 'running')
  await queue.claimNext()
  await queue.update('delayed', { nextRunAt: 1_760_000_000_000, attempt: 2 })
  for (const key of ['answered', 'open']) await idempotency.begin(key, 'f')
  await idempotency.complete('answered', ANSWER)
  await outbox.add({ lane: 'done', id: 'd1', delivery: { url: 'https://hooks.example/1' } })
  await outbox.log('done', ATTEMPT)
  await notifications.open('the-feed')
  await notifications.add(TOLD)
  await channels.saveKey('vapid', '{"kept":true}')
  await channels.saveSubscription(SUBSCRIBED)
  await signIns.save(SIGNED_IN)
  await usage.add([COUNTED])
}

/** The database as SQL that makes it again. */
function dump(db: Database): string {
  const quoted = (value: unknown) =>
    value === null || typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`
  const { application_id: application } = db.prepare('PRAGMA application_id').get()
  const made: { type: string; name: string; sql: string }[] = db
    .prepare(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    )
    .all()
  const tables = made.filter(({ type }) => type === 'table').map(({ name }) => name)
  const rows = [...tables, 'sqlite_sequence'].flatMap((table) =>
    db
      .prepare(`SELECT * FROM ${table}`)
      .all()
      .map((row) => `INSERT INTO ${table} VALUES (${Object.values(row).map(quoted).join(', ')});`),
  )
  return [`PRAGMA application_id = ${application};`, ...made.map(({ sql }) => `${sql};`), ...rows, ''].join('\n')
}

t.test('this version is among the fixtures; the first run of a new one writes it', async (t) => {
  const { path, storage } = await sqliteWorld(t, { now: () => 1_760_000_000_000 })
  await fill(storage)
  await storage.close()
  const db = new Driver(path, { readOnly: true })
  const sql = dump(db)
  db.close()
  mkdirSync(FIXTURES, { recursive: true })
  if (!existsSync(current)) writeFileSync(current, sql)
  const schemaOf = (text: string) => text.slice(0, text.indexOf('INSERT INTO'))
  t.equal(schemaOf(readFileSync(current, 'utf8')), schemaOf(sql), 'a released step was changed: add one instead')
})

for (const name of readdirSync(FIXTURES))
  t.test(`a database of ${name} opens with all that was in it`, async (t) => {
    const path = join(t.testdir(), 'gateway.db')
    const db = new Driver(path)
    db.exec(readFileSync(join(FIXTURES, name), 'utf8'))
    db.close()
    t.match(await doctorSqlite(path), { ok: true, problems: [], schemaVersion: Number(/\d+/.exec(name)) }, 'before')
    const storage = sqliteAt(t, path, () => 1_760_000_060_000)
    await storage.open()
    const { journal, sessions, profiles, queue, idempotency, outbox } = storage
    const { origin } = firstWrite('kept')
    t.same(await journal.list(), [
      {
        id: 'kept',
        profile: 'one',
        generation: 'g1',
        state: stateOf('kept', { lastSeq: 3 }),
        reservedSeq: 64,
        lastSeq: 3,
        position: 1,
      },
    ])
    t.match(await journal.get('kept'), { ...origin, snapshot: SNAPSHOT })
    t.same(
      await readTexts(journal, 'kept'),
      [1, 2, 3].map((seq) => eventOf(seq, '🥊')),
    )
    t.same(await sessions.list(), [parked])
    t.match(await profiles.list(), [{ name: 'one', configDir: '/srv/agents/one' }])
    t.same(
      (await queue.list()).map(({ info }) => [info.id, info.status, info.attempt]),
      [
        ['delayed', 'queued', 2],
        ['running', 'running', 1],
        ['done', 'succeeded', 1],
        ['high', 'queued', 1],
        ['low', 'queued', 1],
      ],
    )
    const claimed: (string | undefined)[] = []
    for (let at = 0; at < 4; at++) claimed.push((await queue.claimNext())?.info.id)
    t.same(claimed, ['high', 'delayed', 'low', undefined])
    t.equal(await queue.addDailyTokens('2026-01-01', 1), 13)
    t.same(await idempotency.begin('answered', 'f'), { state: 'answered', answer: ANSWER })
    t.same(await idempotency.begin('open', 'other'), { state: 'new' })
    t.same(await outbox.list(), [{ lane: 'done', id: 'd1', delivery: { url: 'https://hooks.example/1' } }])
    t.same(await outbox.attempts('done'), [ATTEMPT])
    const isNew = Number(/\d+/.exec(name)) >= 4
    t.same(await storage.notifications.open('another'), {
      epoch: isNew ? 'the-feed' : 'another',
      lastNumber: isNew ? 12 : 0,
    })
    const told = await storage.notifications.read({ after: 0, until: 99, since: 0 }, { limit: 9, maxBytes: 10_000 })
    t.same(told, isNew ? [TOLD] : [])
    const hasChannels = Number(/\d+/.exec(name)) >= 6
    t.equal(await storage.channels.key('vapid'), hasChannels ? '{"kept":true}' : undefined)
    t.same(await storage.channels.subscriptions(), hasChannels ? [SUBSCRIBED] : [])
    t.same(await storage.signIns.list(), Number(/\d+/.exec(name)) >= 7 ? [SIGNED_IN] : [])
    const sums = await storage.usage.read({ from: '2026-01-01', to: '2026-01-01' }, ['person'], 9)
    t.match(sums, Number(/\d+/.exec(name)) >= 8 ? [{ person: 'ada', turns: 2, costUsd: 0.5 }] : [])
    t.equal(sums.length, Number(/\d+/.exec(name)) >= 8 ? 1 : 0)
    await journal.write({ ...firstWrite('new'), events: [eventOf(1)] })
    t.same(await readTexts(journal, 'new'), [eventOf(1)])
    t.match(await storage.check(), { ok: true, schemaVersion: SCHEMA_VERSION, orphans: { events: 0 } })
  })
