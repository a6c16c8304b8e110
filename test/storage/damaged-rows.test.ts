import t, { type Test } from 'tap'
import { getJob } from '../../src/jobs/adapter.js'
import { WebPush } from '../../src/notifications/channels/push.js'
import type { PushSubscriptions } from '../../src/notifications/channels/subscriptions.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import type { DatabaseStorage } from '../../src/storage/sql/storage.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { doctorSqlite, salvageSqlite } from '../../src/storage/sqlite/maintenance.js'
import { hasPostgres, postgres } from './postgres-world.js'
import { jobOf } from './sqlite-records.js'
import { sqliteWorld } from './sqlite-world.js'

const Driver = await loadDriver()
const DAMAGED = '{"half'
const DAMAGE = [
  ['jobs', 'info', 'id', 'bad'],
  ['deliveries', 'delivery', 'id', 'bad'],
  ['delivery_attempts', 'attempt', 'n', 1],
  ['push_subscriptions', 'subscription', 'id', 'bad'],
  ['sign_ins', 'sign_in', 'id', 'bad'],
  ['idempotency_keys', 'answer', 'key', 'bad'],
] as const

const subscription = (id: string) => ({
  ...{ id, endpoint: 'https://push.example/x', keys: { p256dh: 'p', auth: 'a' }, createdAt: 1, expiresAt: 2 },
})
const signIn = (id: string) => ({ id, hash: id, token: 't', owner: 'o', createdAt: 1, lastSeenAt: 1, endsAt: 2 })
const attempt = (n: number) => ({ id: `e${n}`, type: 'x', attempt: n, at: n, ok: true })

/** Two of each, of which the first is to be damaged. */
async function fill({ queue, outbox, channels, signIns, idempotency, profiles }: DatabaseStorage): Promise<void> {
  for (const id of ['bad', 'good']) {
    await queue.add(jobOf(id))
    await outbox.add({ lane: 'l', id, delivery: { id } })
    await outbox.log('l', attempt(1) as never)
    await channels.saveSubscription(subscription(id))
    await signIns.save(signIn(id) as never)
    await idempotency.begin(id, 'f')
    await idempotency.complete(id, { status: 201, headers: {}, body: '{}' })
    await profiles.save({ name: id, engine: 'cli', configDir: `/srv/${id}` })
  }
  await channels.keyOnce('vapid', '{}')
}

/** Named, and without what became of the others. */
async function holds(t: Test, { queue, outbox, channels, signIns, idempotency }: DatabaseStorage): Promise<void> {
  const said: string[] = []
  const tell = ({ message }: Error) => void said.push(message)
  const ids = (list: readonly { id: string }[]) => list.map(({ id }) => id)
  t.same(
    (await queue.list({}, tell)).map(({ info }) => info.id),
    ['good'],
  )
  t.same(ids(await outbox.list(undefined, tell)), ['good'])
  t.equal((await outbox.attempts('l')).length, 1)
  t.same(ids(await channels.subscriptions(tell)), ['good'])
  t.same(ids(await signIns.list(tell)), ['good'])
  t.match(said, [
    /^The job .* table jobs/,
    /^The delivery bad .* table deliveries/,
    /table push_subs/,
    /table sign_ins/,
  ])
  await t.rejects(idempotency.begin('bad', 'f'), {
    code: 'STORAGE_UNREADABLE',
    message: /"bad" .* table idempotency_keys/,
  })
  t.match(await idempotency.begin('good', 'f'), { state: 'answered' })
  await t.rejects(queue.get('bad'), { code: 'STORAGE_UNREADABLE' })
  t.equal(await getJob(queue, 'bad'), null)
  t.equal(await queue.update('bad', { status: 'canceled' }, 'queued'), null)
  const begin = { at: 1, sessionIds: ['s1', 's2'] }
  const claimed = (await queue.claim!(2, { begin }, tell)).jobs
  t.match(claimed, [{ info: { id: 'good', status: 'running' } }])
  t.equal(said.filter((line) => line.startsWith('The job')).length, 2)
  t.same((await queue.claim!(2, {}, tell)).jobs, [])
  t.equal(
    said.filter((line) => line.startsWith('The job')).length,
    2,
    'one that was passed over is not asked for again',
  )
  const owned = []
  for await (const page of queue.owned!(tell)) owned.push(...page.map(({ info }) => info.id))
  t.same(owned, ['good'])
}

async function refuses(t: Test, { profiles, channels }: DatabaseStorage): Promise<void> {
  await t.rejects(async () => profiles.list(), {
    code: 'STORAGE_UNREADABLE',
    message: /profile bad .* table profiles .*Mend or delete/,
  })
  const push = new WebPush(channels, { load: async () => {} } as PushSubscriptions)
  await t.rejects(push.open(), {
    code: 'STORAGE_UNREADABLE',
    message: /key vapid .* table gateway_keys .*delete that row/,
  })
}

const REFUSED = [
  ['profiles', 'profile', 'name', 'bad'],
  ['gateway_keys', 'value', 'name', 'vapid'],
] as const

t.test('SQLite: a row with damaged text is named and takes no other', async (t) => {
  const world = await sqliteWorld(t)
  await fill(world.storage)
  await world.storage.close()
  const db = new Driver(world.path)
  for (const [table, column, key, value] of [...DAMAGE, ...REFUSED])
    db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${key} = ?`).run(DAMAGED, value)
  db.close()
  const { ok, problems } = await doctorSqlite(world.path)
  t.equal(ok, false)
  t.same(
    problems.toSorted(),
    [...DAMAGE, ...REFUSED]
      .map(([table, column, key, value]) => {
        return `table ${table}, row with ${key} = ${JSON.stringify(value)}: the text in column ${column} is damaged`
      })
      .toSorted(),
  )
  const target = `${world.path}.salvaged`
  const { tables } = await salvageSqlite(world.path, target)
  for (const [table] of [...DAMAGE, ...REFUSED]) t.equal(tables[table]!.rows, table === 'gateway_keys' ? 0 : 1, table)
  t.equal((await doctorSqlite(target)).ok, true)
  const storage = await world.reopen()
  await holds(t, storage)
  await refuses(t, storage)
})

if (hasPostgres())
  t.test('PostgreSQL: the same', async (t) => {
    const server = await postgres()
    const storage = createPostgresStorage({ url: server.url(), schema: 'damaged' })
    await storage.open()
    t.teardown(() => storage.close())
    await fill(storage)
    for (const [table, column, key, value] of [...DAMAGE, ...REFUSED])
      await server.query(`UPDATE damaged.${table} SET ${column} = $1 WHERE ${key} = $2`, [DAMAGED, value])
    await holds(t, storage)
    await refuses(t, storage)
  })
