import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import t, { type Test } from 'tap'
import { PostgresDatabase } from '../../src/storage/postgres/database.js'
import { Link, type LinkOptions } from '../../src/storage/postgres/link.js'
import { Membership } from '../../src/storage/postgres/membership.js'
import { createPostgresStorage, directOptions, type PostgresStorage } from '../../src/storage/postgres/storage.js'
import { until } from '../fixtures/build.js'
import { rounds } from '../fixtures/rounds.js'
import { killedAfter, Ledger, verify } from './crash-ledger.js'
import { cuttable, hasPostgres, postgres, postgresWorld } from './postgres-world.js'
import { eventOf, firstWrite, jobOf, stateOf } from './sqlite-records.js'
import { compiled } from './sqlite-world.js'

const MUCH = 100_000_000
const KILLS = rounds(4, 20)
const RESTARTS = rounds(2, 12)

const away = { name: 'StorageError', code: 'POSTGRES_UNREACHABLE' }
const seqsOf = async ({ journal }: PostgresStorage, id: string) =>
  (await journal.read(id, 0, MUCH, MUCH)).map(({ seq }) => seq)
const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

/** A storage whose writes go through a proxy that cuts them. */
async function cuttableWorld(t: Test) {
  const world = await postgresWorld(t)
  await world.storage.close()
  const proxy = await cuttable(t, world.server)
  const storage = createPostgresStorage({
    url: proxy.url,
    listenUrl: world.server.url(),
    schema: world.schema,
    namedStatements: false,
  })
  t.teardown(() => storage.close())
  await storage.open()
  return { ...world, storage, proxy }
}

/** The connection of a storage without what else it does there, through such a proxy. */
async function cuttableDatabase(t: Test, timeouts: Pick<LinkOptions, 'replyTimeoutMs'> = {}) {
  const { storage, schema, server } = await postgresWorld(t)
  await storage.close()
  const membership = await Membership.join(directOptions({ url: server.url(), schema }))
  t.teardown(() => membership.leave())
  const proxy = await cuttable(t, server)
  const link = { url: proxy.url, place: 'here', schema, namedStatements: false, ...timeouts }
  const database = await PostgresDatabase.open(link, { n: membership.n, isOneOfMany: false })
  return { database, proxy }
}

/** Tries until the database is there again. */
async function persistently<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if ((error as { code?: string }).code !== 'POSTGRES_UNREACHABLE') throw error
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
}

if (hasPostgres()) {
  const server = await postgres({ durable: true })

  t.test('a second one is refused and told of the first, which does not notice', async (t) => {
    const { storage, schema } = await postgresWorld(t)
    const second = createPostgresStorage({ url: server.url(), schema })
    await t.rejects(second.open(), {
      code: 'STORAGE_HELD',
      message: new RegExp(`The schema ${schema} .*is in use by process ${process.pid} on host .*Stop it first`),
    })
    await storage.journal.write(firstWrite('one'))
    await storage.close()
    await second.open()
    t.match(await second.journal.list(), [{ id: 'one' }])
    await second.close()
  })

  t.test('whose schema was dropped beneath it says what to do', async (t) => {
    const { storage, schema } = await postgresWorld(t)
    await storage.journal.write(firstWrite('one'))
    await server.query(`DROP SCHEMA ${schema} CASCADE`)
    const gone = {
      code: 'POSTGRES_TABLES_GONE',
      message: /was dropped or replaced\. .*restore a backup and start it again/,
    }
    await t.rejects(storage.journal.write(firstWrite('two')), gone)
    await t.rejects(storage.journal.list(), gone)
  })

  t.test('one that was taken for dead writes nothing any more, not even what was under way', async (t) => {
    const { storage, schema } = await postgresWorld(t)
    await storage.journal.write(firstWrite('one'))
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_namespace ON nspname = $1
      WHERE locktype = 'advisory' AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('session-gateway has ' || pg_namespace.oid, 0)`,
      [schema],
    )
    const second = createPostgresStorage({ url: server.url(), schema })
    t.teardown(() => second.close())
    const isTaken = await second.open().then(
      () => true,
      (error) => (error as { code: string }).code !== 'STORAGE_HELD' && Promise.reject(error),
    )
    // the first one may have been quicker to take its lock again
    if (!isTaken) await server.query(`DELETE FROM ${schema}.members`)
    for (const again of [1, 2]) {
      const refused = await Promise.allSettled([
        storage.journal.write({ id: 'one', events: [eventOf(1)] }),
        storage.queue.add(jobOf('one')),
        storage.probe!(),
      ])
      t.match(refused, Array(3).fill({ status: 'rejected', reason: { code: 'STORAGE_FENCED' } }), `${again}`)
    }
    t.same(
      await server.query(`SELECT (SELECT count(*) FROM ${schema}.events) + (SELECT count(*) FROM ${schema}.jobs) AS n`),
      [{ n: '0' }],
    )
  })

  t.test('what was done and not answered is answered once the database is back', async (t) => {
    const { storage, proxy } = await cuttableWorld(t)
    await storage.journal.write(firstWrite('one'))
    await storage.queue.add(jobOf('job'))
    const lost = async <T>(text: RegExp, work: () => Promise<T>): Promise<T> => {
      const cut = proxy.cut('answered', text)
      const answer = work()
      await cut
      return answer
    }
    await lost(/write_1|append_1/, () =>
      storage.journal.write({ id: 'one', events: [eventOf(1)], state: stateOf('one', { lastSeq: 1 }) }),
    )
    t.same(await seqsOf(storage, 'one'), [1])
    let read: unknown
    await lost(/write_1|append_1/, () => {
      read = storage.queue.get('job').catch(({ code }) => code)
      return storage.journal.write({ id: 'one', events: [eventOf(2)] })
    })
    t.equal(await read, away.code, 'what only read, in the same batch, is not')
    t.same(await seqsOf(storage, 'one'), [1, 2])
    t.equal(await lost(/news/, () => storage.journal.deposit('one', [{ key: 'k', type: 'close' }])), true)
    const claimed = await lost(/SKIP LOCKED/, () => storage.queue.claim!(5, { begin: { at: 7, sessionIds: ['s'] } }))
    t.match(claimed, {
      jobs: [{ info: { id: 'job', status: 'running', startedAt: 7, sessionId: 's' } }],
      paused: false,
    })
    const charge = { day: '2026-01-01', tokens: 5 }
    const end = { status: 'succeeded', finishedAt: 9 } as const
    t.match(await lost(/change_jobs_1/, () => storage.queue.settle!('job', end, charge, 'running')), {
      record: { info: { status: 'succeeded' } },
      dailyTokens: 5,
    })
    t.equal(await lost(/daily_tokens/, () => storage.queue.addDailyTokens('2026-01-01', 2)), 7)
    t.equal(await lost(/gateway_keys/, () => storage.channels.keyOnce('name', 'value')), 'value')
    await lost(/usage_sums/, () =>
      storage.usage.add([{ day: '2026-01-01', profile: 'p', agent: 'a', person: 'x', turns: 1 }]),
    )
    t.match(await storage.usage.read({ from: '2026-01-01', to: '2026-01-01' }, ['profile'], 9), [{ turns: 1 }])
    await lost(/origins/, () => storage.journal.remove('one'))
    t.same(await storage.journal.list(), [])
  })

  t.test('what was done and not answered is asked again when others were in its way', async (t) => {
    const { storage, proxy, schema } = await cuttableWorld(t)
    // a sequence goes on where a transaction is undone
    await server.query(`
      CREATE SEQUENCE ${schema}.tries;
      CREATE FUNCTION ${schema}.second_deadlocks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('${schema}.tries') = 2 THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER second_deadlocks BEFORE INSERT ON ${schema}.gateway_keys
      FOR EACH ROW EXECUTE FUNCTION ${schema}.second_deadlocks()`)
    const cut = proxy.cut('answered', /gateway_keys/)
    const value = storage.channels.keyOnce('name', 'value')
    await cut
    t.equal(await value, 'value')
    t.match(await server.query(`SELECT last_value::int FROM ${schema}.tries`), [{ last_value: 3 }])
  })

  t.test('what never arrived is refused, and can be asked again', async (t) => {
    const { storage, proxy } = await cuttableWorld(t)
    await storage.journal.write(firstWrite('one'))
    const cut = proxy.cut('before', /write_1|append_1/)
    const write = { id: 'one', events: [eventOf(1)] }
    const refused = storage.journal.write(write)
    await t.rejects(refused, away)
    await cut
    await persistently(() => storage.journal.write(write))
    t.same(await seqsOf(storage, 'one'), [1])
  })

  t.test(
    'a write that waited for another one is done, whatever isolation and timeouts the role is set to',
    async (t) => {
      const { storage: usual, schema } = await postgresWorld(t)
      await usual.close()
      const settings = '-c default_transaction_isolation=serializable -c lock_timeout=1'
      const url = `${server.url()}?options=${encodeURIComponent(settings)}`
      const storage = createPostgresStorage({ url, schema })
      t.teardown(() => storage.close())
      await storage.open()
      const other = new pg.Client({ connectionString: server.url() })
      await other.connect()
      await other.query(`BEGIN; UPDATE ${schema}.members SET host = host`)
      const write = t.resolves(storage.journal.write(firstWrite('one')))
      await until(
        async () => (await server.query('SELECT FROM pg_locks WHERE NOT granted')).length > 0,
        'that it waits for the other one',
      )
      await other.query('COMMIT')
      await other.end()
      await write
    },
  )

  t.test(
    'a connection lasts while nothing is asked, and what takes long is done, whatever timeouts the role has',
    async (t) => {
      const names = ['statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout']
      const options = names.map((name) => `-c ${name}=60s`).join(' ')
      const url = `${server.url()}?options=${encodeURIComponent(options)}`
      const link = await Link.open({ url, place: 'here', schema: 'any', namedStatements: false })
      t.teardown(() => link.end())
      const { rows } = await link.client.query('SELECT setting FROM pg_settings WHERE name = ANY ($1)', [names])
      t.same(rows, Array(3).fill({ setting: '0' }))
    },
  )

  t.test("an error is one call's alone, whatever language the server tells it in", async (t) => {
    const { storage, proxy } = await cuttableWorld(t)
    const { queue } = storage
    await queue.add(jobOf('there'))
    proxy.translate()
    const answers = await Promise.allSettled([queue.add(jobOf('there')), queue.add(jobOf('new'))])
    t.match(answers, [{ reason: { code: 'STORAGE_REFUSED' } }, { status: 'fulfilled' }])
  })

  t.test('who only reads does not wait for a database that has gone away, though a write does', async (t) => {
    const { storage, proxy } = await cuttableWorld(t)
    await storage.journal.write(firstWrite('one'))
    void proxy.cut('before', /write_1|append_1/)
    const tried = proxy.shut().then(() => 'still waits')
    const write = storage.journal.write({ id: 'one', events: [eventOf(1)] }).catch(({ code }) => code)
    // in one batch with it
    const read = storage.queue.get('nobody').catch(({ code }) => code)
    t.same(await Promise.all([write, read].map((one) => Promise.race([one, tried]))), [
      'still waits',
      'POSTGRES_UNREACHABLE',
    ])
  })

  t.test('the goodbye of a host that is gone is not waited for', async (t) => {
    const { database, proxy } = await cuttableDatabase(t)
    await database.call('profiles.save', 'one', '{}')
    proxy.deafen()
    await database.close()
    await t.rejects(database.call('profiles.list'), { code: 'STORAGE_CLOSED' })
  })

  t.test('nor is the answer of one that goes away in the middle of a call', async (t) => {
    const { database, proxy } = await cuttableDatabase(t, { replyTimeoutMs: 100 })
    proxy.deafen()
    const refused = t.rejects(database.call('profiles.save', 'one', '{}'), { name: 'StorageError' })
    await database.close()
    await refused
  })

  t.test('a new connection that goes silent once it is let in is given up, and the next one tried', async (t) => {
    const { database, proxy } = await cuttableDatabase(t, { replyTimeoutMs: 500 })
    const lost = proxy.lose(/pg_backend_pid/)
    void proxy.cut('before', /profiles/)
    await t.rejects(database.call('profiles.list'), away)
    await lost
    t.same(await persistently(() => database.call('profiles.list')), [])
    await database.close()
  })

  t.test('restarted and crashed under load, it keeps what it confirmed, once', async (t) => {
    const { storage } = await postgresWorld(t)
    let isOver = false
    const refusals = new Set<string>()
    const writing = async (id: string) => {
      await persistently(() => storage.journal.write(firstWrite(id)))
      let seq = 0
      while (!isOver)
        await storage.journal.write({ id, events: [eventOf(seq + 1, 'x'.repeat(500))], usage: [usageOf(id)] }).then(
          () => seq++,
          (error) => {
            refusals.add((error as { code: string }).code)
            return new Promise((resolve) => setTimeout(resolve, 5))
          },
        )
      return [id, seq] as const
    }
    const usageOf = (person: string) => ({ day: '2026-01-01', profile: 'p', agent: 'a', person, turns: 1 })
    const writers = Promise.all(upTo(8).map((n) => writing(`s${n}`)))
    for (let round = 0; round < RESTARTS; round++) {
      // some of it is under way whenever it ends
      for (let written = 0; written < 20; written++)
        await persistently(() => storage.queue.addDailyTokens('2026-01-01', 1))
      await server.end(round % 2 ? 'SIGQUIT' : 'SIGINT')
      await t.rejects(storage.queue.get('nobody'), away, 'nothing is read while it is away')
      await server.restart()
    }
    await persistently(() => storage.queue.addDailyTokens('2026-01-01', 1))
    isOver = true
    for (const [id, seq] of await writers) t.same(await seqsOf(storage, id), upTo(seq), `${id} to ${seq}`)
    const counted = await storage.usage.read({ from: '2026-01-01', to: '2026-01-01' }, ['person'], 9)
    t.same(Object.fromEntries(counted.map(({ person, turns }) => [person, turns])), Object.fromEntries(await writers))
    t.equal(await storage.queue.dailyTokens('2026-01-01'), 20 * RESTARTS + 1)
    t.same([...refusals], ['POSTGRES_UNREACHABLE'])
  })

  t.test('a database that has less than it confirmed is not gone on with', async (t) => {
    const { storage, schema } = await postgresWorld(t)
    await storage.journal.write(firstWrite('one'))
    // it sweeps by itself: nothing of that comes between what is taken back and the cut
    await server.query(`UPDATE ${schema}.members SET batch = batch - 2;
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'session-gateway'`)
    const code = await persistently(() => storage.journal.write(firstWrite('two'))).catch(({ code }) => code)
    t.equal(code, 'STORAGE_FORGOTTEN')
  })

  t.test('events of removed sessions go, some at a time', async (t) => {
    const { storage, schema } = await postgresWorld(t)
    await storage.journal.write({ ...firstWrite('one'), events: upTo(1_200).map((seq) => eventOf(seq)) })
    await storage.journal.write({ ...firstWrite('two'), events: [eventOf(1)] })
    await storage.journal.remove('one')
    for (let left = 2; left > 1; ) {
      const [row] = await server.query(
        `SELECT (SELECT count(*) FROM ${schema}.events) + (SELECT count(*) FROM ${schema}.removed_sessions) AS n`,
      )
      left = Number(row!.n)
    }
    t.same(await seqsOf(storage, 'two'), [1])
  })

  t.test('killed at any moment, it has what was confirmed, and nothing by halves', async (t) => {
    const writer = fileURLToPath(compiled('test/storage/storage-writer.ts'))
    const { storage, schema } = await postgresWorld(t)
    await storage.close()
    const ledger = new Ledger()
    for (let round = 0; round < KILLS; round++) {
      const confirmations = 1 + Math.floor(Math.random() * 200)
      for (const one of await killedAfter(t, writer, [server.url(), schema], round, confirmations)) ledger.add(one)
      await storage.open()
      await verify(t, storage, ledger)
      await storage.close()
    }
  })

  t.test('a process that has nothing left to do ends, with its write done', async (t) => {
    const writer = fileURLToPath(compiled('test/storage/storage-writer.ts'))
    const { storage, schema } = await postgresWorld(t)
    await storage.close()
    const child = spawn(process.execPath, [writer, server.url(), schema, 'once'], { stdio: 'inherit' })
    t.same(await once(child, 'exit'), [0, null])
    await storage.open()
    t.match(await storage.journal.list(), [{ id: 'once' }])
  })
}
