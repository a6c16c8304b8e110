import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { migrateStorage } from '../../src/storage/migration/migrate.js'
import { postgresTarget } from '../../src/storage/migration/postgres-side.js'
import { sqliteSource } from '../../src/storage/migration/sqlite-side.js'
import { COPIED, sumOf } from '../../src/storage/migration/tables.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import type { DatabaseStorage } from '../../src/storage/sql/storage.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { hasPostgres, postgres } from './postgres-world.js'
import { eventOf, firstWrite, jobOf, readTexts, stateOf } from './sqlite-records.js'
import { sqliteAt } from './sqlite-world.js'

const AWKWARD = 'a \u0000 NUL, "quotes", \\ and 🥊\n'
const DAY = '2026-01-01'

type Schema = { url: string; schema: string }

/** Something of each kind, and numbers that must not be given again. */
async function fill(storage: DatabaseStorage) {
  const { journal, queue, idempotency, outbox, profiles, notifications, channels, ...others } = storage
  for (const id of ['gone', 'one', 'two', 'last']) await journal.write(firstWrite(id, { title: `${AWKWARD}${id}` }))
  await journal.write({
    id: 'one',
    events: [eventOf(1, AWKWARD), eventOf(3)],
    snapshot: { state: [AWKWARD] } as never,
    reservedSeq: 900,
  })
  await journal.write({
    id: 'two',
    events: Array.from({ length: 300 }, (_, at) => eventOf(at + 1)),
    state: stateOf('two', { lastSeq: 300 }),
  })
  await journal.deposit('two', [{ key: 'k', type: 'close' }])
  await journal.write({ id: 'gone', events: [eventOf(1)] })
  for (const id of ['gone', 'last']) await journal.remove(id)
  for (const id of ['done', 'running', 'later', 'ready', 'pruned']) await queue.add(jobOf(id, id === 'ready' ? -1 : 0))
  await queue.update('later', { nextRunAt: Date.now() + 3_600_000 })
  await queue.update('pruned', { status: 'canceled', finishedAt: 1 })
  await queue.claim!(2, { begin: { at: 7, sessionIds: ['s1', 's2'] } })
  await queue.settle!('done', { status: 'succeeded', finishedAt: Date.now() }, { day: DAY, tokens: 12.5 }, 'running')
  await queue.prune(1_000)
  await idempotency.begin('key', 'f')
  await idempotency.complete('key', { status: 201, headers: { a: 'b' }, body: AWKWARD })
  await profiles.save(
    { name: 'p', engine: 'cli', configDir: '/srv/p' },
    { key: 'kept', fingerprint: 'f', made: { kind: 'profile', id: 'p', location: '/p' } },
  )
  await outbox.add({ id: 'd', lane: 'l', delivery: { to: AWKWARD } })
  await outbox.log('l', { attempt: 1 } as never)
  await outbox.rememberGone!('target')
  await notifications.open('epoch')
  for (const number of [1, 2, 3])
    await notifications.add({
      number,
      type: 'turn_completed',
      sessionId: 'one',
      profile: 'p',
      ts: number + 0.5,
      json: AWKWARD,
    })
  await notifications.prune(3, 0)
  await channels.keyOnce('name', 'value')
  await channels.saveSubscription({
    id: 'sub',
    endpoint: 'e',
    keys: { p256dh: 'p', auth: 'a' },
    createdAt: 1,
    expiresAt: 2,
  })
  await others.signIns.save({
    id: 'in',
    secretHash: 'h',
    sealedToken: 's',
    owner: 'o',
    createdAt: 1,
    lastSeenAt: 2,
    endsAt: 3,
  })
  await others.usage.add([{ day: DAY, profile: 'p', agent: 'a', person: 'x', turns: 2, costUsd: 0.1 }])
  await others.sessions.save({ id: 'old', settled: [AWKWARD] } as never)
}

/** What anybody can ask of it. */
async function asked(storage: DatabaseStorage) {
  const { journal, queue, idempotency, outbox, profiles, notifications, channels, ...others } = storage
  const list = await journal.list()
  return {
    list,
    whole: await Promise.all(list.map(({ id }) => journal.get(id))),
    events: await Promise.all(list.map(({ id }) => readTexts(journal, id))),
    // each database counts changes by itself
    jobs: (await queue.list()).map(({ rev, ...job }) => job),
    tokens: await queue.dailyTokens(DAY),
    left: await idempotency.left!(),
    answered: await idempotency.begin('key', 'f'),
    outbox: [await outbox.list(), await outbox.attempts('l'), await outbox.gone!()],
    feed: await notifications.open('another'),
    kept: [
      await profiles.list(),
      await channels.subscriptions(),
      await channels.key('name'),
      await others.signIns.list(),
    ],
    usage: await others.usage.read({ from: DAY, to: DAY }, ['day', 'profile', 'agent', 'person'], 9),
    sessions: await others.sessions.list(),
  }
}

const digestOf = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')

if (hasPostgres()) {
  const server = await postgres()

  t.test('everything goes over to PostgreSQL and back, is the same there, and goes on', async (t) => {
    const folder = t.testdir({ first: {}, second: {} })
    const [first, second] = [join(folder, 'first', 'a.db'), join(folder, 'second', 'b.db')]
    const before = sqliteAt(t, first)
    await before.open()
    await fill(before)
    await t.rejects(migrateStorage({ sqlite: first }, { sqlite: second }), { code: 'STORAGE_HELD' })
    const expected = await asked(before)
    await before.close()
    const bytes = digestOf(first)
    const place = { postgres: { url: server.url(), schema: 'moved' } }

    const there = await migrateStorage({ sqlite: first }, place)
    t.equal(there.isNew, true)
    t.match(there.tables, {
      sessions: { rows: 2 },
      events: { rows: 302 },
      jobs: { rows: 4 },
      notifications: { rows: 0 },
    })
    const again = await migrateStorage({ sqlite: first }, place)
    t.same(again, { ...there, isNew: false }, 'repeated, it finds everything')
    const back = await migrateStorage(place, { sqlite: second })
    t.same(back.tables, there.tables)
    t.equal(digestOf(first), bytes, 'the source is as it was')

    const moved = createPostgresStorage(place.postgres)
    t.teardown(() => moved.close())
    await moved.open()
    t.same(await asked(moved), expected)
    await t.rejects(migrateStorage({ sqlite: first }, place), { code: 'STORAGE_HELD' })
    await t.rejects(migrateStorage(place, { sqlite: second }), { code: 'STORAGE_HELD' })
    const returned = sqliteAt(t, second)
    await returned.open()
    t.same(await asked(returned), expected)
    for (const storage of [moved, returned]) {
      await storage.journal.write(firstWrite('new'))
      await storage.queue.add(jobOf('new'))
      t.equal((await storage.journal.list()).at(-1)!.position, 5, 'no number is given again')
      t.equal((await storage.queue.list())[0]!.position, 6)
      t.match(await storage.queue.claimNext(), { info: { id: 'new' } })
      t.match(await storage.queue.claimNext(), { info: { id: 'ready', status: 'running' } })
      t.equal(await storage.queue.claimNext(), null)
      await storage.close()
    }
    await t.rejects(migrateStorage({ sqlite: first }, place), { code: 'STORAGE_NOT_EMPTY' })
    await t.rejects(migrateStorage(place, { sqlite: first }), { code: 'STORAGE_NOT_EMPTY' })
    t.equal(digestOf(first), bytes)
  })

  t.test('it goes over and back exactly, whatever the role is set to', async (t) => {
    await server.query(`CREATE ROLE inexact LOGIN PASSWORD 'p'; GRANT CREATE ON DATABASE postgres TO inexact;
      ALTER ROLE inexact SET extra_float_digits = 0; ALTER ROLE inexact SET array_nulls = off;
      ALTER ROLE inexact SET bytea_output = escape; ALTER ROLE inexact SET datestyle = german`)
    const folder = t.testdir({ first: {}, second: {} })
    const [first, second] = [join(folder, 'first', 'a.db'), join(folder, 'second', 'b.db')]
    const before = sqliteAt(t, first)
    await before.open()
    await fill(before)
    await before.usage.add([{ day: DAY, profile: 'p', agent: 'a', person: 'x', turns: 1, costUsd: 0.2 }])
    const expected = await asked(before)
    await before.close()
    const place = { postgres: { url: server.url({ user: 'inexact', password: 'p' }), schema: 'exactly' } }
    const { tables } = await migrateStorage({ sqlite: first }, place)
    t.same((await migrateStorage(place, { sqlite: second })).tables, tables)
    const moved = createPostgresStorage(place.postgres)
    t.teardown(() => moved.close())
    await moved.open()
    t.same(await asked(moved), expected)
  })

  t.test('what a claim has left in PostgreSQL is moved as it is read', async (t) => {
    const path = join(t.testdir({ state: {} }), 'state', 'c.db')
    const place = { postgres: { url: server.url(), schema: 'claimed' } }
    const storage = createPostgresStorage(place.postgres)
    t.teardown(() => storage.close())
    await storage.open()
    await fill(storage)
    const expected = await asked(storage)
    await storage.close()
    const { tables } = await migrateStorage(place, { sqlite: path })
    t.same((await migrateStorage({ sqlite: path }, place)).tables, tables)
    const moved = sqliteAt(t, path)
    await moved.open()
    t.same(await asked(moved), expected)
    await moved.close()
    await t.rejects(migrateStorage({ sqlite: join(t.testdir(), 'none.db') }, place), { code: 'ENOENT' })
    await t.rejects(migrateStorage({ postgres: { url: server.url(), schema: 'empty' } }, place), {
      code: 'STORAGE_EMPTY',
    })
  })

  t.test('a row whose text is damaged is named, and nothing is kept of what was copied before it', async (t) => {
    const path = join(t.testdir({ state: {} }), 'state', 'd.db')
    const storage = sqliteAt(t, path)
    await storage.open()
    await fill(storage)
    await storage.close()
    const Driver = await loadDriver()
    const place = { postgres: { url: server.url(), schema: 'damaged' } }
    for (const [table, column, id] of [
      ['jobs', 'info', 'later'],
      ['sessions', 'state', 'two'],
    ]) {
      const db = new Driver(path)
      const [{ text } = {}] = db.prepare(`SELECT ${column} AS text FROM ${table} WHERE id = ?`).all(id!)
      const put = db.prepare(`UPDATE ${table} SET ${column} = ? WHERE id = ?`)
      put.run('{"cut', id!)
      await t.rejects(migrateStorage({ sqlite: path }, place), {
        code: 'STORAGE_UNREADABLE',
        message: RegExp(`${id} cannot be read: the text of its row in the table ${table} .* damaged`),
      })
      put.run(text as string, id!)
      db.close()
    }
    t.ok((await migrateStorage({ sqlite: path }, place)).tables)
  })

  t.test('files of agents for other nodes go over to another schema, byte by byte', async (t) => {
    const [from, to] = ['carries', 'carried_on'].map((schema) => ({ url: server.url(), schema })) as [Schema, Schema]
    const storage = createPostgresStorage(from)
    t.teardown(() => storage.close())
    await storage.open()
    await storage.journal.write(firstWrite('one'))
    await server.query(`INSERT INTO carries.carried
      SELECT key, path, 2, 3, 'd', bytes FROM carries.sessions, (VALUES ('p/é.jsonl', '\\x00ff0a'::bytea), ('p/b', decode(repeat('5c', 900), 'hex'))) given (path, bytes)`)
    await storage.close()
    const { tables } = await migrateStorage({ postgres: from }, { postgres: to })
    t.match(tables, { carried: { rows: 2 } })
    const kept = (schema: string) => server.query(`SELECT * FROM ${schema}.carried ORDER BY path`)
    t.same(await kept(to.schema), await kept(from.schema))
    t.match(await migrateStorage({ postgres: from }, { postgres: to }), { isNew: false, tables })
  })

  t.test('a feed of several nodes is in another schema in the order in which it came to be read', async (t) => {
    const [from, to] = ['of_several', 'several_moved'].map((schema) => ({ url: server.url(), schema })) as [
      Schema,
      Schema,
    ]
    const read = async (place: Schema, work: (store: DatabaseStorage['notifications']) => Promise<unknown>) => {
      const storage = createPostgresStorage(place)
      t.teardown(() => storage.close())
      await storage.open()
      await work(storage.notifications)
      const { shared, ...store } = storage.notifications
      const range = { after: 0, until: Number.MAX_SAFE_INTEGER, since: 0 }
      const found = await store.read(range, { limit: 9, maxBytes: 1_000 })
      const answer = { found, lost: await shared!.placeOf(900), last: await shared!.placeOf(500) }
      await storage.close()
      return answer
    }
    const add = {
      type: 'turn_completed' as const,
      sessionId: 's',
      profile: 'p',
      ts: 1,
      isPlacedWhenKept: true as const,
    }
    const before = await read(from, async (store) => {
      await store.open('e')
      for (const number of [900, 500, 1_000]) await store.add({ ...add, number, json: String(number) })
      await store.shared!.keepNewest(2)
    })
    t.match(before, { found: [{ json: '500' }, { json: '1000' }], lost: { forgotten: 900 } })
    await migrateStorage({ postgres: from }, { postgres: to })
    t.same(await read(to, async () => {}), before)
  })

  t.test('a database that goes away in the middle is told as at a start', async (t) => {
    const path = join(t.testdir({ state: {} }), 'state', 'cut.db')
    const storage = sqliteAt(t, path)
    await storage.open()
    await fill(storage)
    await storage.close()
    const place = { url: server.url(), schema: 'cut' }
    const target = await postgresTarget({ ...place, url: `${place.url}?application_name=cut` })
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut'")
    const side = await sqliteSource(path)
    const [sessions] = COPIED
    const written = sumOf(side, sessions!, (rows) => target.write(sessions!, rows))
    await t.rejects(written, { name: 'StorageError', code: 'POSTGRES_UNREACHABLE', message: /schema cut/ })
    await side.close()
    await target.close()
  })

  t.test('a job that waits for its node waits for it in another schema, too', async (t) => {
    const [from, to] = ['at_home', 'home_moved'].map((schema) => ({ url: server.url(), schema })) as [Schema, Schema]
    const storage = createPostgresStorage(from)
    t.teardown(() => storage.close())
    await storage.open()
    const { info, request } = jobOf('of a')
    await storage.queue.add({ info: { ...info, notes: { home: 'a' } }, request })
    await storage.close()
    await migrateStorage({ postgres: from }, { postgres: to })
    const moved = createPostgresStorage(to)
    t.teardown(() => moved.close())
    await moved.open()
    const claim = async (home: string) => (await moved.queue.claim!(1, { home })).jobs.map(({ info: { id } }) => id)
    t.same(await claim('b'), [])
    t.same(await claim('a'), ['of a'])
  })
}

t.test('a table that is read in parts outlives collections of garbage in between', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const path = join(t.testdir({ state: {} }), 'state', 'much.db')
  const storage = sqliteAt(t, path)
  await storage.open()
  await storage.journal.write({ ...firstWrite('one'), events: Array.from({ length: 500 }, (_, n) => eventOf(n + 1)) })
  await storage.close()
  const side = await sqliteSource(path)
  let rows = 0
  for await (const some of side.read(COPIED.find(({ name }) => name === 'events')!)) {
    rows += some.length
    collect()
    // a statement that is collected is finalized in a turn of its own
    await turn()
  }
  await side.close()
  t.equal(rows, 500)
})
