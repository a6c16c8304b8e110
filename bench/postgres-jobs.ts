import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { newJob } from '../src/jobs/job.js'
import { createPostgresStorage } from '../src/storage/postgres/storage.js'
import { format, interleave, line, median, percentile } from './lib/figures.js'
import { PostgresServer } from './lib/postgres-server.js'

const JOBS = 2_000
const ROUNDS = 5
const AT_ONCE = [10, 100] as const
const PICK_UPS = 50
/** What the server has room for, beside ours. */
const MOST_CONNECTIONS = 20
/** How often graphile-worker and pg-boss look for jobs that nobody told them of: the least that pg-boss takes. */
const POLL_MS = 500
const OTHERS = ['graphile-worker@0.16.6', 'pg-boss@10.4.2'] as const

/** A queue of jobs that do nothing: so many at once, on the database that all of them share. */
interface Queue {
  name: string
  submit(jobs: number): Promise<void>
  /** Runs what was submitted; resolves when as many jobs have ended. */
  drain(jobs: number): Promise<void>
  /** Milliseconds from the submission of one job to the begin of its work, while nothing else waits. */
  pickUp(): Promise<number>
  close(): Promise<void>
}

/** Jobs a second through the tables of the queue alone, without sessions, beside two queues that are made for PostgreSQL. */
export async function postgresJobs(): Promise<void> {
  const load = othersFrom(process.env.BENCH_PACKAGES ?? tmpdir())
  const server = await PostgresServer.start()
  try {
    for (const atOnce of AT_ONCE) {
      const ours = await gatewayQueue(server, atOnce)
      for (const open of [graphileWorker, pgBoss]) {
        const other = await open(server, atOnce, load)
        const drain = (queue: Queue) => async () => {
          await queue.submit(JOBS)
          const start = performance.now()
          await queue.drain(JOBS)
          return (JOBS / (performance.now() - start)) * 1000
        }
        const rates = await interleave(ROUNDS, drain(ours), drain(other))
        console.log(line(`jobs a second, ${atOnce} at once, beside ${other.name}`, rates, 'jobs/s'))
        if (atOnce === AT_ONCE[0])
          console.log(`  picked up: ours ${await pickUps(ours)}, ${other.name} ${await pickUps(other)}`)
        await other.close()
      }
      await ours.close()
    }
  } finally {
    await server.stop()
  }
}

async function pickUps(queue: Queue): Promise<string> {
  const ms: number[] = []
  for (let n = 0; n < PICK_UPS; n++) ms.push(await queue.pickUp())
  return `p50 ${format(median(ms))} ms, p99 ${format(percentile(ms, 0.99))} ms`
}

type Load = (name: string) => Promise<Record<string, unknown>>

/** Packages that nothing else needs. @param folder in which somebody has installed them */
function othersFrom(folder: string): Load {
  const { resolve } = createRequire(join(folder, 'package.json'))
  return async (name) => {
    try {
      return await import(pathToFileURL(resolve(name)).href)
    } catch (cause) {
      const how = `npm i --prefix ${folder} ${OTHERS.join(' ')}`
      throw new Error(`${name} is not installed: run \`${how}\`, and give this bench BENCH_PACKAGES=${folder}.`, {
        cause,
      })
    }
  }
}

/** Ours: what claims and ends jobs, as the queue asks it of its adapter. */
async function gatewayQueue(server: PostgresServer, atOnce: number): Promise<Queue> {
  const storage = createPostgresStorage({ url: server.url, schema: `jobs_${atOnce}` })
  await storage.open()
  const { queue } = storage
  let n = 0
  const add = () => {
    const request = { session: { cwd: '/', prompt: 'Nothing.' } }
    const id = `job-${++n}`
    const info = newJob(request, { id, now: Date.now(), profile: 'bench', generation: 'g', cwd: '/' })
    return queue.add({ info, request })
  }
  /** The end of a job is said in the turn in which the next ones are claimed, so that both are one write. */
  const run = async (free: number) => {
    const { jobs } = await queue.claim!(free)
    const ends = jobs.map(({ info: { id } }) =>
      queue.update(id, { status: 'succeeded', finishedAt: Date.now() } as never, 'running'),
    )
    return { count: jobs.length, ends: Promise.all(ends) }
  }
  return {
    name: 'session-gateway',
    async submit(jobs) {
      for (let left = jobs; left > 0; left -= 500) await Promise.all(Array.from({ length: Math.min(left, 500) }, add))
    },
    async drain(jobs) {
      let ended: Promise<unknown> = Promise.resolve()
      for (let done = 0; done < jobs; ) {
        const { count, ends } = await run(atOnce)
        done += count
        ended = ends
      }
      await ended
    },
    async pickUp() {
      const start = performance.now()
      await add()
      const { ends } = await run(1)
      const ms = performance.now() - start
      await ends
      return ms
    },
    close: () => storage.close(),
  }
}

/** What is used of graphile-worker. */
interface GraphileWorker {
  run(options: object): Promise<{ stop(): Promise<void> }>
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>
    addJob(task: string, payload: object): Promise<unknown>
    release(): Promise<void>
  }>
  Logger: new (factory: () => () => void) => object
}

async function graphileWorker(server: PostgresServer, atOnce: number, load: Load): Promise<Queue> {
  const { run, makeWorkerUtils, Logger } = (await load('graphile-worker')) as unknown as GraphileWorker
  const silent = { connectionString: server.url, logger: new Logger(() => () => {}) }
  const utils = await makeWorkerUtils(silent)
  await utils.migrate()
  const begun = new Counter()
  const start = () =>
    run({
      ...{
        ...silent,
        concurrency: atOnce,
        maxPoolSize: MOST_CONNECTIONS,
        pollInterval: POLL_MS,
        noHandleSignals: true,
      },
      taskList: { nothing: async () => begun.add() },
    })
  let kept: ReturnType<typeof start> | undefined
  return {
    name: 'graphile-worker',
    async submit(jobs) {
      const job = "ROW('nothing', '{}'::json, NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec"
      await server.query(`SELECT graphile_worker.add_jobs(ARRAY(SELECT ${job} FROM generate_series(1, $1)))`, [jobs])
    },
    async drain(jobs) {
      const all = begun.after(jobs)
      const worker = await start()
      await all
      await worker.stop()
    },
    async pickUp() {
      kept ??= start()
      await kept
      const one = begun.after(1)
      const since = performance.now()
      await utils.addJob('nothing', {})
      await one
      return performance.now() - since
    },
    async close() {
      await (await kept)?.stop()
      await utils.release()
    },
  }
}

/** What is used of pg-boss. */
interface PgBoss {
  on(event: 'error', listener: () => void): void
  start(): Promise<unknown>
  createQueue(name: string): Promise<void>
  send(name: string, data: object): Promise<unknown>
  insert(jobs: readonly { name: string }[]): Promise<unknown>
  fetch(name: string, options: { batchSize: number }): Promise<{ id: string }[]>
  complete(name: string, ids: readonly string[]): Promise<unknown>
  work(name: string, options: object, work: () => Promise<void>): Promise<unknown>
  stop(options: object): Promise<void>
}

async function pgBoss(server: PostgresServer, atOnce: number, load: Load): Promise<Queue> {
  const { default: Boss } = (await load('pg-boss')) as { default: new (options: object) => PgBoss }
  const boss = new Boss({ connectionString: server.url, schema: `boss_${atOnce}`, supervise: false, schedule: false })
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue('nothing')
  await boss.createQueue('alone')
  const begun = new Counter()
  let works: Promise<unknown> | undefined
  return {
    name: 'pg-boss',
    async submit(jobs) {
      await boss.insert(Array.from({ length: jobs }, () => ({ name: 'nothing' })))
    },
    async drain(jobs) {
      for (let done = 0; done < jobs; ) {
        const found = await boss.fetch('nothing', { batchSize: atOnce })
        await boss.complete(
          'nothing',
          found.map(({ id }) => id),
        )
        done += found.length
      }
    },
    async pickUp() {
      works ??= boss.work('alone', { pollingIntervalSeconds: POLL_MS / 1000 }, async () => begun.add())
      await works
      const one = begun.after(1)
      const since = performance.now()
      await boss.send('alone', {})
      await one
      return performance.now() - since
    },
    close: () => boss.stop({ graceful: false, timeout: 1_000 }),
  }
}

/** Counts what begins, for whoever waits for so many. */
class Counter {
  #left = 0
  #onAll = () => {}

  after(count: number): Promise<void> {
    this.#left = count
    return new Promise((resolve) => (this.#onAll = resolve))
  }

  add(): void {
    if (--this.#left === 0) this.#onAll()
  }
}
