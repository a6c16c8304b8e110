import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { newJob } from '../src/jobs/job.js';
import { createPostgresStorage } from '../src/storage/postgres/storage.js';
import { format, interleave, line, median, percentile } from './lib/figures.js';
import { PostgresServer } from './lib/postgres-server.js';
const JOBS = 2_000;
const ROUNDS = 5;
const AT_ONCE = [10, 100];
const PICK_UPS = 50;
/** What the server has room for, beside ours. */
const MOST_CONNECTIONS = 20;
/** How often graphile-worker and pg-boss look for jobs that nobody told them of: the least that pg-boss takes. */
const POLL_MS = 500;
const OTHERS = ['graphile-worker@0.16.6', 'pg-boss@10.4.2'];
/** Jobs a second through the tables of the queue alone, without sessions, beside two queues that are made for PostgreSQL. */
export async function postgresJobs() {
    const load = othersFrom(process.env.BENCH_PACKAGES ?? tmpdir());
    const server = await PostgresServer.start();
    try {
        for (const atOnce of AT_ONCE) {
            const ours = await gatewayQueue(server, atOnce);
            for (const open of [graphileWorker, pgBoss]) {
                const other = await open(server, atOnce, load);
                const drain = (queue) => async () => {
                    await queue.submit(JOBS);
                    const start = performance.now();
                    await queue.drain(JOBS);
                    return (JOBS / (performance.now() - start)) * 1000;
                };
                const rates = await interleave(ROUNDS, drain(ours), drain(other));
                console.log(line(`jobs a second, ${atOnce} at once, beside ${other.name}`, rates, 'jobs/s'));
                if (atOnce === AT_ONCE[0])
                    console.log(`  picked up: ours ${await pickUps(ours)}, ${other.name} ${await pickUps(other)}`);
                await other.close();
            }
            await ours.close();
        }
    }
    finally {
        await server.stop();
    }
}
async function pickUps(queue) {
    const ms = [];
    for (let n = 0; n < PICK_UPS; n++)
        ms.push(await queue.pickUp());
    return `p50 ${format(median(ms))} ms, p99 ${format(percentile(ms, 0.99))} ms`;
}
/** Packages that nothing else needs. @param folder in which somebody has installed them */
function othersFrom(folder) {
    const { resolve } = createRequire(join(folder, 'package.json'));
    return async (name) => {
        try {
            return await import(pathToFileURL(resolve(name)).href);
        }
        catch (cause) {
            const how = `npm i --prefix ${folder} ${OTHERS.join(' ')}`;
            throw new Error(`${name} is not installed: run \`${how}\`, and give this bench BENCH_PACKAGES=${folder}.`, {
                cause,
            });
        }
    };
}
/** Ours: what claims and ends jobs, as the queue asks it of its adapter. */
async function gatewayQueue(server, atOnce) {
    const storage = createPostgresStorage({ url: server.url, schema: `jobs_${atOnce}` });
    await storage.open();
    const { queue } = storage;
    let n = 0;
    const add = () => {
        const request = { session: { cwd: '/', prompt: 'Nothing.' } };
        const id = `job-${++n}`;
        const info = newJob(request, { id, now: Date.now(), profile: 'bench', generation: 'g', cwd: '/' });
        return queue.add({ info, request });
    };
    /** The end of a job is said in the turn in which the next ones are claimed, so that both are one write. */
    const run = async (free) => {
        const { jobs } = await queue.claim(free);
        const ends = jobs.map(({ info: { id } }) => queue.update(id, { status: 'succeeded', finishedAt: Date.now() }, 'running'));
        return { count: jobs.length, ends: Promise.all(ends) };
    };
    return {
        name: 'session-gateway',
        async submit(jobs) {
            for (let left = jobs; left > 0; left -= 500)
                await Promise.all(Array.from({ length: Math.min(left, 500) }, add));
        },
        async drain(jobs) {
            let ended = Promise.resolve();
            for (let done = 0; done < jobs;) {
                const { count, ends } = await run(atOnce);
                done += count;
                ended = ends;
            }
            await ended;
        },
        async pickUp() {
            const start = performance.now();
            await add();
            const { ends } = await run(1);
            const ms = performance.now() - start;
            await ends;
            return ms;
        },
        close: () => storage.close(),
    };
}
async function graphileWorker(server, atOnce, load) {
    const { run, makeWorkerUtils, Logger } = (await load('graphile-worker'));
    const silent = { connectionString: server.url, logger: new Logger(() => () => { }) };
    const utils = await makeWorkerUtils(silent);
    await utils.migrate();
    const begun = new Counter();
    const start = () => run({
        ...{
            ...silent,
            concurrency: atOnce,
            maxPoolSize: MOST_CONNECTIONS,
            pollInterval: POLL_MS,
            noHandleSignals: true,
        },
        taskList: { nothing: async () => begun.add() },
    });
    let kept;
    return {
        name: 'graphile-worker',
        async submit(jobs) {
            const job = "ROW('nothing', '{}'::json, NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec";
            await server.query(`SELECT graphile_worker.add_jobs(ARRAY(SELECT ${job} FROM generate_series(1, $1)))`, [jobs]);
        },
        async drain(jobs) {
            const all = begun.after(jobs);
            const worker = await start();
            await all;
            await worker.stop();
        },
        async pickUp() {
            kept ??= start();
            await kept;
            const one = begun.after(1);
            const since = performance.now();
            await utils.addJob('nothing', {});
            await one;
            return performance.now() - since;
        },
        async close() {
            await (await kept)?.stop();
            await utils.release();
        },
    };
}
async function pgBoss(server, atOnce, load) {
    const { default: Boss } = (await load('pg-boss'));
    const boss = new Boss({ connectionString: server.url, schema: `boss_${atOnce}`, supervise: false, schedule: false });
    boss.on('error', () => { });
    await boss.start();
    await boss.createQueue('nothing');
    await boss.createQueue('alone');
    const begun = new Counter();
    let works;
    return {
        name: 'pg-boss',
        async submit(jobs) {
            await boss.insert(Array.from({ length: jobs }, () => ({ name: 'nothing' })));
        },
        async drain(jobs) {
            for (let done = 0; done < jobs;) {
                const found = await boss.fetch('nothing', { batchSize: atOnce });
                await boss.complete('nothing', found.map(({ id }) => id));
                done += found.length;
            }
        },
        async pickUp() {
            works ??= boss.work('alone', { pollingIntervalSeconds: POLL_MS / 1000 }, async () => begun.add());
            await works;
            const one = begun.after(1);
            const since = performance.now();
            await boss.send('alone', {});
            await one;
            return performance.now() - since;
        },
        close: () => boss.stop({ graceful: false, timeout: 1_000 }),
    };
}
/** Counts what begins, for whoever waits for so many. */
class Counter {
    #left = 0;
    #onAll = () => { };
    after(count) {
        this.#left = count;
        return new Promise((resolve) => (this.#onAll = resolve));
    }
    add() {
        if (--this.#left === 0)
            this.#onAll();
    }
}
//# sourceMappingURL=postgres-jobs.js.map