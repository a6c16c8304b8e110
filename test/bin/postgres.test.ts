import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkPostgres } from '../../src/storage/postgres/maintenance.js'
import { SCHEMA_VERSION } from '../../src/storage/postgres/schema.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { until } from '../fixtures/build.js'
import { sessionsToCutOff } from '../fixtures/cut-off.js'
import { DEMO, reach, runDaemon, startDaemon } from '../fixtures/daemon-process.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'
import { firstWrite } from '../storage/sqlite-records.js'
import { sqliteAt } from '../storage/sqlite-world.js'

const ANYBODY = { listen: { port: 0 }, allowUnauthenticated: true, profiles: [DEMO] }

/** Runs a command on a configuration of its own. */
async function command(t: Test, cwd: string, storage: object | string, args: string[]) {
  writeFileSync(join(cwd, 'other.json'), JSON.stringify({ ...ANYBODY, storage }), { mode: 0o600 })
  const run = runDaemon(t, [...args, '--config', 'other.json'], { cwd })
  const { code } = await run.exited
  return { code, said: run.stdout + run.stderr }
}

if (hasPostgres()) {
  const server = await postgres()
  const url = server.url()
  const password = new URL(url).password

  t.test('a daemon on PostgreSQL goes on where a kill has cut it off', async (t) => {
    const storage = { postgres: { url, schema: 'killed' } }
    const first = await startDaemon(t, { storage, queue: {} })
    const { daemon, cwd, call } = first
    const sessions = await sessionsToCutOff(t, first)
    const job = (await (await call('/jobs', { session: { cwd: join(cwd, 'work'), prompt: 'a job' } })).json()) as {
      id: string
    }
    const jobAt = async (at: typeof call) => ((await (await at(`/jobs/${job.id}`)).json()) as { status: string }).status
    await until(async () => (await jobAt(call)) === 'succeeded')
    const later = { session: { cwd: join(cwd, 'work'), prompt: 'later' }, runAt: Date.now() + 3_600_000 }
    t.equal((await call('/jobs', later)).status, 201)

    const other = await command(t, cwd, storage, [])
    t.match(other, { code: 3, said: `The schema killed of postgres://gateway@` })
    t.match(other.said, `is in use by process ${daemon.child.pid} on host`)
    t.notMatch(other.said, password)
    const doctor = await command(t, cwd, storage, ['doctor'])
    t.match(
      doctor,
      { code: 0, said: new RegExp(`^ok: the schema killed of .* is sound, schema ${SCHEMA_VERSION}`) },
      'while it is in use',
    )
    t.match(doctor.said, `in use by          process ${daemon.child.pid} on host`)
    t.match(doctor.said, /orphans +none/)
    t.match(await command(t, cwd, storage, ['rotate-keys']), { code: 0, said: /has a new key/ })
    daemon.child.kill('SIGKILL')
    await daemon.exited

    const second = runDaemon(t, [], { cwd })
    const { call: again } = await reach(second)
    await sessions.areTold(again)
    t.equal(await jobAt(again), 'succeeded')
    t.match(await (await again('/jobs?status=queued')).json(), [{ prompt: 'later' }])
    const usage = (await (await again('/usage?by=profile')).json()) as object
    t.match(JSON.stringify(usage), /"profile":"demo"/, 'what was used is counted')
    await sessions.goOn(again)

    await server.end('SIGINT')
    // a write that is under way as the server goes waits for it: what only reads does not, and shows that it has gone
    t.match((await again('/jobs')).status, 503, 'what has to be read there is refused')
    const refused = await again('/sessions', { cwd: join(cwd, 'work'), prompt: 'now' })
    t.match([refused.status, ((await refused.json()) as { code: string }).code], [503, 'SG_ERR_STORE_UNAVAILABLE'])
    t.equal((await again(`/sessions/${sessions.hanging.id}`)).status, 200, 'what lives is told')
    await server.restart()
    await until(async () => (await again('/sessions', { cwd: join(cwd, 'work'), prompt: 'now' })).status === 201)
    second.child.kill('SIGTERM')
    t.match(await second.exited, { code: 0 }, second.stderr)
    t.notMatch(second.stdout + second.stderr, password, 'the password is in no log')
    t.match((await command(t, cwd, storage, ['doctor'])).said, /in use by +nobody/)
  })

  t.test('a daemon that nobody asks for anything says that its database is gone, and that it is back', async (t) => {
    const { url: at, daemon } = await startDaemon(t, { storage: { postgres: { url, schema: 'idle' } } })
    const readiness = async () => (await (await fetch(new URL('/readyz', at))).json()) as { status: string }
    const says = (status: string) => until(async () => (await readiness()).status === status, status)
    await says('ready')
    await server.end('SIGINT')
    await says('storage_unavailable')
    t.match(await daemon.logged('the storage fails; nothing that has to be kept is taken until it works'), {
      err: { code: 'POSTGRES_UNREACHABLE' },
    })
    await server.restart()
    await says('ready')
    await daemon.logged('the storage takes what it is given again')

    await server.query(`DELETE FROM idle.members;
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'session-gateway'`)
    await says('storage_unavailable')
    t.match(await daemon.logged('this process has lost the storage; nothing is taken any more'), {
      err: { code: 'STORAGE_FENCED' },
    })
  })

  t.test('what is wrong with the database is told with what to do about it, and never with the password', async (t) => {
    const cwd = t.testdir()
    await server.query(`CREATE ROLE guest LOGIN PASSWORD 'guest-secret'`)
    const guest = server.url({ user: 'guest', password: 'guest-secret' })
    const cases: [url: string, said: RegExp][] = [
      [server.url({ database: 'nowhere' }), /there is no such database. Make it with CREATE DATABASE/],
      ['postgres://gateway:some-secret@127.0.0.1:1/postgres', /cannot be reached. Is PostgreSQL running there/],
      ['postgres://gateway:some-secret@127.0.0.1:99999/postgres', /the url is not one of PostgreSQL/],
      // what stands before the slash or the question mark looks like a port
      [
        'postgres://gateway:12/ab-secret@127.0.0.1:1/postgres',
        /not one of PostgreSQL: .* percent-encoded \(%2F for \//,
      ],
      ['postgres://gateway:12?ab-secret@127.0.0.1:1/postgres', /percent-encoded/],
      ['postgres://gateway:12#ab-secret@127.0.0.1:1/postgres', /percent-encoded/],
      ['mysql://gateway:some-secret@127.0.0.1:1/postgres', /the url is not one of PostgreSQL/],
      ['127.0.0.1:1/postgres', /the url is not one of PostgreSQL/],
      [`postgres://gateway:some-secret@/postgres?port=1&host=${server.directory}`, /cannot be reached/],
      [
        'postgres://gateway:some-secret@one:5432,two:5432/postgres',
        /names several hosts, of which the driver takes one/,
      ],
      ['postgres://gateway:some-secret@one,two/postgres', /names several hosts/],
      ['postgres://gateway:some-secret@/postgres?host=one,two', /names several hosts/],
      ['postgres://gateway:1,2/ab-secret@127.0.0.1:1/postgres', /percent-encoded/],
      [`${url}?sslmode=verify-full`, /TLS does not fit. Look at sslmode .*The server does not support SSL/],
      [`${url}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem`, /TLS does not fit. .*nowhere.ca\.pem/],
      [server.url({ database: 'ssl' }), /there is no such database/],
      ['postgres://gateway:some-secret@/postgres?port=1&host=/nowhere/tls', /cannot be reached/],
      [server.url({ password: '' }), /asks for a password. Put it into the url, or into PGPASSWORD/],
      [guest, /guest may not make the schema session_gateway: GRANT CREATE ON DATABASE/],
    ]
    for (const [wrong, said] of cases) {
      const { message } = (await checkPostgres({ url: wrong }).catch((error) => error)) as Error
      t.match(message, said)
      t.notMatch(message, /-secret|:12\b/)
    }
    await t.rejects(checkPostgres({ url, schema: 'pg_gateway' }), { message: /begin with pg_ .* another one/ })
    await t.rejects(createPostgresStorage({ url, schema: 'pg_gateway' }).open(), { code: 'POSTGRES_SCHEMA' })
    const open = createPostgresStorage({ url: guest }).open()
    await t.rejects(open, { code: 'POSTGRES_RIGHTS', message: /this user lacks rights/ })
    await server.query(`GRANT CREATE ON DATABASE postgres TO guest`)
    const restored = createPostgresStorage({ url: guest, schema: 'restored' })
    await restored.open()
    await restored.close()
    await server.query('ALTER TABLE restored.events OWNER TO gateway; REVOKE CREATE ON DATABASE postgres FROM guest')
    await t.rejects(checkPostgres({ url: guest, schema: 'restored' }), {
      message: 'guest may not use every table of the schema restored: ALTER TABLE restored.events OWNER TO guest',
    })
    await server.query('ALTER SCHEMA restored OWNER TO gateway')
    await t.rejects(checkPostgres({ url: guest, schema: 'restored' }), {
      message: 'guest may not use the schema restored: ALTER SCHEMA "restored" OWNER TO guest, and its tables',
    })
    await server.query(`GRANT USAGE ON SCHEMA restored TO guest;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA restored TO guest`)
    await checkPostgres({ url: guest, schema: 'restored' })
    await restored.open()
    await restored.close()
    await server.query(
      `DELETE FROM restored.schema_versions WHERE version = (SELECT max(version) FROM restored.schema_versions)`,
    )
    await t.rejects(checkPostgres({ url: guest, schema: 'restored' }), {
      message: /^guest may not bring the schema restored from version \d+ to \d+: start this version once as its owner/,
    })
    await server.query('ALTER ROLE guest CONNECTION LIMIT 1; ALTER ROLE guest SET default_transaction_read_only = on')
    await t.rejects(checkPostgres({ url: guest }), {
      message:
        /only reads for guest: turn default_transaction_read_only off.* may have 1 connection here, and the gateway needs two/,
    })
    await server.query('ALTER ROLE guest CONNECTION LIMIT -1; ALTER ROLE guest RESET default_transaction_read_only')
    await server.query(`CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
    const latin = { url: server.url({ database: 'latin' }) }
    await t.rejects(checkPostgres(latin), { message: /encoded in LATIN1: make one with ENCODING 'UTF8'/ })
    await t.rejects(createPostgresStorage(latin).open(), {
      code: 'POSTGRES_ENCODING',
      message: /encoded in LATIN1, .*make one with CREATE DATABASE … ENCODING 'UTF8'/,
    })
    await server.query('CREATE SCHEMA foreigner; CREATE TABLE foreigner.members (id int)')
    await t.rejects(checkPostgres({ url, schema: 'foreigner' }), { message: /has tables of something else/ })
    await t.rejects(createPostgresStorage({ url, schema: 'foreigner' }).open(), { code: 'STORAGE_FOREIGN' })
    await server.query('INSERT INTO killed.schema_versions VALUES (99, now())')
    await t.rejects(createPostgresStorage({ url, schema: 'killed' }).open(), { code: 'STORAGE_NEWER' })

    const check = await command(t, cwd, { postgres: { url: server.url({ password: 'wrong-secret' }) } }, ['check'])
    t.match(check, {
      code: 2,
      said: /does not let this user in. Look at user and password of the url, which a gateway reads when it starts,/,
    })
    t.notMatch(check.said, /-secret/)
    // a failover may be under way: whoever starts it is to try again
    const apart = await command(t, cwd, { postgres: { url, listenUrl: latin.url } }, [])
    t.match(apart, { code: 3, said: /\(listenUrl\) is another database than/ })
    const printed = await command(t, cwd, { postgres: { url } }, ['--print-config'])
    t.match(printed, { code: 0, said: /"schema": "session_gateway"/ })
    t.notMatch(printed.said, password)
  })

  t.test('what is done with tools of PostgreSQL says with which', async (t) => {
    const cwd = t.testdir()
    const storage = { postgres: { url, schema: 'copied' } }
    const backup = await command(t, cwd, storage, ['backup', 'copy.dump'])
    t.match(backup, {
      code: 2,
      said: /pg_dump --format=custom --encoding=UTF8 --schema='"copied"' --file='.*copy\.dump'/,
    })
    t.notOk(existsSync(join(cwd, 'copy.dump')))
    t.match(
      backup.said,
      `'postgres://gateway@${encodeURIComponent(server.directory)}/postgres'`,
      'where its sockets are',
    )
    const encrypted = { postgres: { url: `${url}?sslmode=verify-full&password=${password}`, schema: 'copied' } }
    const { said } = await command(t, cwd, encrypted, ['backup', 'copy.dump'])
    t.match(said, `/postgres?sslmode=verify-full' `)
    t.notMatch(said, password)

    const path = join(cwd, 'state', 'small.db')
    const small = sqliteAt(t, path)
    await small.open()
    await small.journal.write(firstWrite('one'))
    const migrate = () => runDaemon(t, ['migrate', '--from', path, '--to', url, '--schema', 'small'], { cwd })
    for (const to of [url.replace('postgres:', 'postgress:'), `mysql://gateway:${password}@127.0.0.1/postgres`]) {
      const refused = runDaemon(t, ['migrate', '--from', path, '--to', to], { cwd })
      t.match(await refused.exited, { code: 1 })
      t.match(refused.stderr, /There is no storage for (postgress|mysql):\/\/ addresses/)
      t.notMatch(refused.stderr, password)
      t.notOk(existsSync(join(cwd, to.slice(0, to.indexOf('/')))), 'nor is it made as a file')
    }
    for (const name of ['Small', '1st', 'a;b', 'pg_small', 'a'.repeat(64), '']) {
      const refused = runDaemon(t, ['migrate', '--from', path, '--to', url, '--schema', name], { cwd })
      t.match(await refused.exited, { code: 2 }, name)
      t.match(refused.stderr, 'error: --schema: small letters from a to z, digits and _')
    }
    const elsewhere = runDaemon(t, ['migrate', '--from', path, '--to', `${url}?schema=small`], { cwd })
    t.match(await elsewhere.exited, { code: 1 })
    t.match(elsewhere.stderr, 'The schema of a postgres:// URL is not read: name it with --schema.')
    t.notMatch(elsewhere.stderr, password)
    const inUse = migrate()
    t.match(await inUse.exited, { code: 3 })
    t.match(inUse.stderr, `In use by process ${process.pid} `)
    await small.close()
    const done = migrate()
    t.match(await done.exited, { code: 0 }, done.stderr)
    t.match(
      done.stdout,
      /^ok: postgres:\/\/gateway@.*, schema small has everything now that is in .*small\.db, which was left as/,
    )
    t.match(done.stdout, /sessions +1 rows/)
    t.notMatch(done.stdout, password)
    const used = createPostgresStorage({ url, schema: 'small' })
    t.teardown(() => used.close())
    await used.open()
    const refused = migrate()
    t.match(await refused.exited, { code: 3 })
    t.match(refused.stderr, `in use by process ${process.pid} `)
  })
}
