import t, { type Test } from 'tap'
import { getJob } from '../../src/jobs/adapter.js'
import { WebPush } from '../../src/notifications/channels/push.js'
import type { PushSubscriptions } from '../../src/notifications/channels/subscriptions.js'
import { doctorPostgres } from '../../src/storage/postgres/maintenance.js'
import type { DatabaseStorage } from '../../src/storage/sql/storage.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { doctorSqlite, salvageSqlite } from '../../src/storage/sqlite/maintenance.js'
import { hasPostgres, postgresWorld } from './postgres-world.js'
import { eventOf, firstWrite, jobOf } from './sqlite-records.js'
import { sqliteWorld } from './sqlite-world.js'

const Driver = await loadDriver()
/** Deeper than SQLite takes for JSON. */
const DEEP = JSON.parse(`${'['.repeat(1500)}${']'.repeat(1500)}`)
/** What no gateway writes: cut off, no object, one with nothing in it, and deeper than PostgreSQL reads. */
const TEXTS = {
  'cut off': '{"half',
  null: 'null',
  'a list': '[]',
  'an empty object': ' {\n} ',
  'far too deep': '['.repeat(20_000),
}
const DAMAGED = [
  ['jobs', 'info', `id = 'bad'`],
  ['jobs', 'request', `id = 'half'`],
  ['jobs', 'info', `id = 'over'`],
  ['deliveries', 'delivery', 'n = 1'],
  ['delivery_attempts', 'attempt', 'n = 1'],
  ['push_subscriptions', 'subscription', `id = 'bad'`],
  ['sign_ins', 'sign_in', `id = 'bad'`],
  ['idempotency_keys', 'answer', `key = 'bad'`],
  ['idempotency_keys', 'made', `key = 'cut'`],
  ['sessions', 'state', `id = 'bad'`],
  ['events', 'json', 'session = 1 AND seq = 1'],
  ['profiles', 'profile', `name = 'it''s'`],
  ['gateway_keys', 'value', `name = 'vapid'`],
] as const

/** Of these an object with nothing in it may have been kept. */
const OPEN = ['deliveries', 'delivery_attempts', 'events']
const givenTo = (table: string, given: string) =>
  OPEN.includes(table) && given === TEXTS['an empty object'] ? TEXTS.null : given

const subscription = (id: string) => ({
  ...{ id, endpoint: 'https://push.example/x', keys: { p256dh: 'p', auth: 'a' }, createdAt: 1, expiresAt: 2 },
})
const signIn = (id: string) => ({ id, hash: id, token: 't', owner: 'o', createdAt: 1, lastSeenAt: 1, endsAt: 2 })
const attempt = (n: number) => ({ id: `e${n}`, type: 'x', attempt: n, at: n, ok: true })

/** Of each some that are to be damaged, and then one that is not. */
async function fill(storage: DatabaseStorage): Promise<void> {
  const { queue, outbox, channels, signIns, idempotency, profiles, journal } = storage
  for (const id of ['over', 'ended'])
    await queue.add({ ...jobOf(id), info: { ...jobOf(id).info, status: 'succeeded', finishedAt: 1 } })
  for (const id of ['bad', 'half', 'good', 'next']) await queue.add(jobOf(id))
  const odd = { ...jobOf('odd').request, metadata: { text: 'a \u0000 \ud800 ü', deep: DEEP } }
  await queue.add({ ...jobOf('odd'), request: odd as never })
  for (const id of ['bad', 'good']) {
    await outbox.add({ lane: 'l', id, delivery: id === 'good' ? {} : { id } })
    await outbox.log('l', attempt(1) as never)
    await channels.saveSubscription(subscription(id))
    await signIns.save(signIn(id) as never)
    await idempotency.begin(id, 'f')
    await idempotency.complete(id, { status: 201, headers: {}, body: '{}' })
    await journal.write({ ...firstWrite(id), events: [eventOf(1)] })
  }
  for (const key of ['cut', 'kept'])
    await idempotency.keep!({ key, fingerprint: 'f', made: { kind: 'job', id: 'good', location: '/v1/jobs/good' } })
  await profiles.save({ name: "it's", engine: 'cli', configDir: '/srv/x' })
  await channels.keyOnce('vapid', '{"publicKey":"p"}')
  await channels.keyOnce('another', 'no JSON at all')
}

const statuses = async ({ queue }: DatabaseStorage) =>
  (await queue.list()).map(({ info: { id, status } }) => `${id} ${status}`)

/** The others are as if it were not there. */
async function goesOn(t: Test, storage: DatabaseStorage, mend: (table: string, where: string) => unknown) {
  const { queue, outbox, channels, signIns, idempotency, journal } = storage
  const said: string[] = []
  const tell = ({ message }: Error) => void said.push(message)
  const ids = (list: readonly { id: string }[]) => list.map(({ id }) => id)
  const hears = async <T>(work: Promise<T>, ...lines: RegExp[]): Promise<T> => {
    const result = await work
    t.match(said.splice(0), lines)
    return result
  }
  t.same(
    (await hears(queue.list({}, tell), /^The job half .* table jobs/, /^The job bad /, /^The job over /)).map(
      ({ info }) => info.id,
    ),
    ['odd', 'next', 'good', 'ended'],
  )
  t.same(ids(await hears(outbox.list(undefined, tell), /^The delivery bad \(n = 1\) .* table deliveries/)), ['good'])
  t.equal((await outbox.attempts('l')).length, 1)
  t.same(ids(await hears(channels.subscriptions(tell), /subscription bad .* table push_subscriptions/)), ['good'])
  t.same(ids(await hears(signIns.list(tell), /sign-in bad .* table sign_ins/)), ['good'])
  t.same(ids(await hears(journal.list(tell), /^Session bad .* table sessions/)), ['good'])
  const left = await hears(idempotency.left!(undefined, tell), /key cut .* table idempotency_keys/)
  t.match(left, [{ key: 'kept' }])
  t.match(await idempotency.begin('cut', 'f'), { state: 'in_flight' }, 'nobody makes it a second time')
  await t.rejects(idempotency.begin('bad', 'f'), { code: 'STORAGE_UNREADABLE', message: /table idempotency_keys/ })
  t.match(await idempotency.begin('good', 'f'), { state: 'answered' })
  t.same(ids(await queue.ended!(0, 1)), ['ended'], 'it takes no place among those that are over')

  t.match(
    (await queue.unreadable!()).map(({ message }) => message),
    [/^The job bad .* doctor/, /^The job half /],
  )
  for (const id of ['bad', 'half']) {
    await t.rejects(queue.get(id), { code: 'STORAGE_UNREADABLE', message: RegExp(`^The job ${id} .* table jobs`) })
    t.equal(await getJob(queue, id), null)
    await t.rejects(queue.update(id, { status: 'canceled' }, 'queued'), { code: 'STORAGE_UNREADABLE' })
    await t.rejects(queue.settle!(id, { status: 'canceled' }, { day: 'd', tokens: 5 }), { code: 'STORAGE_UNREADABLE' })
  }
  t.equal(await queue.dailyTokens('d'), 0, 'what is asked again is not charged again')
  const [refused, done] = await Promise.allSettled([
    queue.update('bad', { status: 'canceled' }),
    queue.update('next', { error: 'touched' }),
  ])
  t.match([refused, done], [{ status: 'rejected' }, { value: { info: { error: 'touched' } } }], 'in one batch')

  const claim = async (...sessionIds: string[]) =>
    (await queue.claim!(sessionIds.length, { begin: { at: 1, sessionIds } })).jobs.map(({ info }) => [
      ...[info.id, info.status, info.sessionId],
    ])
  t.same(await claim('s1', 's2'), [
    ['good', 'running', 's1'],
    ['next', 'running', 's2'],
  ])
  t.same(await claim('s3', 's4'), [['odd', 'running', 's3']], 'what is only odd is not damaged')
  t.same(await claim('s4'), [])
  await mend('jobs', `id = 'bad'`)
  await mend('jobs', `id = 'half'`)
  t.same(await claim('s5', 's6'), [
    ['bad', 'running', 's5'],
    ['half', 'running', 's6'],
  ])
  t.same(await queue.unreadable!(), [])
  t.same(await statuses(storage), [
    ...['odd', 'next', 'good', 'half', 'bad'].map((id) => `${id} running`),
    'ended succeeded',
  ])
}

async function refuses(t: Test, { profiles, channels }: DatabaseStorage): Promise<void> {
  await t.rejects(async () => profiles.list(), {
    code: 'STORAGE_UNREADABLE',
    message: /profile it's .* table profiles .*mend it, delete it/,
  })
  const push = new WebPush(channels, { load: async () => {} } as PushSubscriptions)
  await t.rejects(push.open(), {
    code: 'STORAGE_UNREADABLE',
    message: /key vapid .* table gateway_keys .*delete that row/,
  })
}

const LINES = [
  `the text of 1 row of the table sessions is damaged: id = 'bad'`,
  'the text of 1 row of the table events is damaged: session = 1 AND seq = 1',
  `the text of 1 row of the table profiles is damaged: name = 'it''s'`,
  `the text of 3 rows of the table jobs is damaged: id = 'bad'; id = 'half'; id = 'over'`,
  `the text of 2 rows of the table idempotency_keys is damaged: key = 'bad'; key = 'cut'`,
  ...['deliveries', 'delivery_attempts'].map((table) => `the text of 1 row of the table ${table} is damaged: n = 1`),
  `the text of 1 row of the table gateway_keys is damaged: name = 'vapid'`,
  ...['push_subscriptions', 'sign_ins'].map(
    (table) => `the text of 1 row of the table ${table} is damaged: id = 'bad'`,
  ),
].toSorted()

async function onSqlite(t: Test, given: string): Promise<void> {
  const world = await sqliteWorld(t)
  await fill(world.storage)
  await world.storage.close()
  t.match(await doctorSqlite(world.path), { ok: true, problems: [] })
  const before = new Map<string, string>()
  const run = (table: string, column: string, where: string, text: string) => {
    const db = new Driver(world.path)
    db.exec('PRAGMA busy_timeout = 5000')
    const [{ text: was } = {}] = db.prepare(`SELECT ${column} AS text FROM ${table} WHERE ${where}`).all()
    before.set(`${table} ${where}`, was as string)
    db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${where}`).run(text)
    db.close()
  }
  for (const [table, column, where] of DAMAGED) run(table, column, where, givenTo(table, given))
  const { ok, problems } = await doctorSqlite(world.path)
  t.equal(ok, false)
  t.same(problems.toSorted(), LINES)
  const target = `${world.path}.salvaged`
  const { tables } = await salvageSqlite(world.path, target)
  for (const [table, , where] of DAMAGED)
    t.ok(tables[table]!.unknown || tables[table]!.missingRows > 0, `${table} ${where}`)
  t.match(await doctorSqlite(target), { ok: true, problems: [] })
  const storage = await world.reopen()
  await refuses(t, storage)
  const columns = new Map(DAMAGED.map(([table, column, where]) => [`${table} ${where}`, column]))
  await goesOn(t, storage, (table, where) =>
    run(table, columns.get(`${table} ${where}`)!, where, before.get(`${table} ${where}`)!),
  )
}

async function onPostgres(t: Test, given: string): Promise<void> {
  const { server, schema, storage } = await postgresWorld(t)
  await fill(storage)
  const options = { url: server.url(), schema }
  t.match(await doctorPostgres(options), { ok: true, problems: [], damage: [] })
  const before = new Map<string, [column: string, text: string]>()
  for (const [table, column, where] of DAMAGED) {
    const at = `${schema}.${table} SET ${column} = $1 WHERE ${where}`
    const [row] = await server.query(`SELECT ${column} AS text FROM ${schema}.${table} WHERE ${where}`)
    before.set(`${table} ${where}`, [column, row!.text as string])
    await server.query(`UPDATE ${at}`, [givenTo(table, given)])
  }
  const { ok, problems, damage } = await doctorPostgres(options)
  t.same([ok, problems, damage.toSorted()], [false, [], LINES])
  await refuses(t, storage)
  await goesOn(t, storage, (table, where) => {
    const [column, text] = before.get(`${table} ${where}`)!
    return server.query(`UPDATE ${schema}.${table} SET ${column} = $1 WHERE ${where}`, [text])
  })
}

for (const [kind, given] of Object.entries(TEXTS))
  t.test(`SQLite: a row with damaged text (${kind}) is named and takes no other`, (t) => onSqlite(t, given))

if (hasPostgres())
  for (const [kind, given] of Object.entries(TEXTS))
    t.test(`PostgreSQL: the same (${kind})`, (t) => onPostgres(t, given))
