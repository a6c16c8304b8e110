import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { JobStatus } from '../../schemas/jobs.js'
import { providerEngine } from '../../src/engines/provider/index.js'
import { newJob } from '../../src/jobs/job.js'
import { silentLogger } from '../../src/lib/logger.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import type { DatabaseStorage } from '../../src/storage/sql/storage.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { jobRequest, jobWorld } from '../fixtures/job-world.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'
import { workerFile } from '../storage/sqlite-world.js'

/** A database, and how its rows are changed by hand. */
interface Place {
  open(): DatabaseStorage
  text(column: string, id: string): Promise<string>
  put(column: string, id: string, text: string): Promise<void>
}

async function sqlitePlace(t: Test): Promise<Place> {
  const Driver = await loadDriver()
  const path = join(t.testdir(), 'gateway.db')
  const db = () => new Driver(path)
  return {
    open: () => createSqliteStorage({ path }, { worker: workerFile() }),
    async text(column, id) {
      const one = db()
      const { text } = one.prepare(`SELECT ${column} AS text FROM jobs WHERE id = ?`).get(id)
      one.close()
      return text
    },
    async put(column, id, text) {
      const one = db()
      one.prepare(`UPDATE jobs SET ${column} = ? WHERE id = ?`).run(text, id)
      one.close()
    },
  }
}

async function postgresPlace(): Promise<Place> {
  const server = await postgres()
  return {
    open: () => createPostgresStorage({ url: server.url(), schema: 'jobs' }),
    async text(column, id) {
      const [row] = await server.query(`SELECT ${column} AS text FROM jobs.jobs WHERE id = $1`, [id])
      return row!.text as string
    },
    async put(column, id, text) {
      await server.query(`UPDATE jobs.jobs SET ${column} = $1 WHERE id = $2`, [text, id])
    },
  }
}

const REQUEST = { session: { cwd: SOME_CWD, prompt: 'hello' } }
const record = (id: string, status: JobStatus = 'queued') => {
  const given = { id, now: Date.now(), profile: 'demo', generation: '', cwd: SOME_CWD }
  // without its generation it is whoever has the profile's name
  const { notes: _none, ...info } = newJob(REQUEST, given)
  const begun = status === 'running' && { startedAt: 1, sessionId: 'gone' }
  return { request: REQUEST, info: { ...info, status, ...begun } }
}

const DAMAGED = [
  ['info', 'bad'],
  ['request', 'half'],
  ['info', 'was-running'],
] as const

async function hurtsOnlyItself(t: Test, place: Place): Promise<void> {
  const start = async (queue: object | null = { maxConcurrency: 4 }) => {
    const said: string[] = []
    const error = ({ err }: { err?: Error }) => void said.push(err?.message ?? '')
    const storage = place.open()
    const server = await buildServer(t, {
      ...{ storage, ...(queue && { queue }), logger: { info() {}, warn() {}, error } },
      profiles: [{ name: 'demo', engine: 'provider', provider: { id: 'demo' } }],
      createEngineRunner: providerEngine({ demoChunkDelayMs: 0 }),
    })
    const job = async (id: string) => (await server.call('GET', `/jobs/${id}`)).json
    const succeeds = (id: string) => until(async () => (await job(id)).status === 'succeeded', `the end of ${id}`)
    return { ...server, said, job, succeeds, keyState: () => storage.idempotency.begin('key', 'f') }
  }
  const storage = place.open()
  await storage.open()
  for (const [, id] of DAMAGED) await storage.queue.add(record(id, id === 'was-running' ? 'running' : 'queued'))
  await storage.queue.add(record('good'))
  // whose process ended before it was answered
  await storage.idempotency.keep!({
    ...{ key: 'key', fingerprint: 'f', made: { kind: 'job', id: 'bad', location: '/v1/jobs/bad' } },
  })
  await storage.close()
  const texts = new Map<string, string>()
  for (const [column, id] of DAMAGED) {
    texts.set(id, await place.text(column, id))
    await place.put(column, id, texts.get(id)!.slice(0, -9))
  }
  const without = await start(null)
  t.match(await without.keyState(), { state: 'in_flight' }, 'a gateway without a queue starts, too')
  await without.worker.close()
  const first = await start()
  await first.succeeds('good')
  const { id: submitted } = (await first.call('POST', '/jobs', REQUEST)).json
  await first.succeeds(submitted)
  for (const [, id] of DAMAGED) {
    t.match(await first.job(id), { status: 404, code: 'SG_ERR_JOB_NOT_FOUND' }, id)
    t.match(await first.call('POST', `/jobs/${id}/cancel`), { status: 404 }, id)
    t.ok(
      first.said.some((line) => line.includes(`The job ${id} cannot be read`) && line.includes('doctor')),
      id,
    )
  }
  t.match(await first.keyState(), { state: 'in_flight' }, 'a request that comes again makes no second job')
  const listed = (await first.call('GET', '/jobs')).json
  t.strictSame(listed.map(({ id }: { id: string }) => id).toSorted(), ['good', submitted].toSorted())
  const sessions = new Set(listed.map(({ sessionId }: { sessionId: string }) => sessionId))
  t.equal(sessions.size, 2, 'each in a session of its own')
  for (const [column, id] of DAMAGED)
    t.equal(await place.text(column, id), texts.get(id)!.slice(0, -9), `${id} as it was`)

  for (const [column, id] of DAMAGED) await place.put(column, id, texts.get(id)!)
  // work of any kind has the queue look again
  await first.succeeds((await first.call('POST', '/jobs', REQUEST)).json.id)
  await first.succeeds('bad')
  await first.succeeds('half')
  await first.worker.close()
  const second = await start()
  await second.succeeds('was-running')
  t.match(await second.keyState(), { state: 'answered' })
  t.strictSame(second.said, [])
}

/** Its end can be written nowhere before it is mended: no other waits for that. */
async function leavesItsSlot(t: Test, place: Place): Promise<void> {
  const storage = place.open()
  await storage.open()
  t.teardown(() => storage.close())
  const said: string[] = []
  const error = ({ err }: { err?: Error }) => void said.push(err?.message ?? '')
  const { queue, sessions, job } = await jobWorld(t, {
    ...{ adapter: storage.queue, maxConcurrency: 1, logger: { ...silentLogger, error } },
  })
  const runs = (count: number) => until(() => sessions.all.length === count, `run ${count}`)
  const damaged = await queue.submit(jobRequest())
  await runs(1)
  const text = await place.text('info', damaged.id)
  await place.put('info', damaged.id, '{"cut')
  sessions.last.complete()
  const next = await queue.submit(jobRequest())
  await runs(2)
  sessions.last.complete()
  await until(async () => (await job(next)).status === 'succeeded', 'the end of the next one')
  t.match(said, [RegExp(`The job ${damaged.id} cannot be read`)])
  t.equal(await queue.get(damaged.id), undefined)
  t.equal(await place.text('info', damaged.id), '{"cut', 'as it was')
  await place.put('info', damaged.id, text)
  t.match(await queue.get(damaged.id), { status: 'running' }, 'the next start takes it up')
  await queue.drain()
}

t.test('SQLite: a job whose text is damaged while it runs holds up no other', async (t) =>
  leavesItsSlot(t, await sqlitePlace(t)),
)

t.test('SQLite: a job whose text is damaged hurts no other, and runs once it is mended', async (t) =>
  hurtsOnlyItself(t, await sqlitePlace(t)),
)

if (hasPostgres()) {
  t.test('PostgreSQL: the same', async (t) => hurtsOnlyItself(t, await postgresPlace()))
  t.test('PostgreSQL: the same while it runs', async (t) => leavesItsSlot(t, await postgresPlace()))
}
