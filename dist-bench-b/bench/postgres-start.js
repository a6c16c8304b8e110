import { format, median, ratioOf, verdict } from './lib/figures.js';
import { PostgresServer } from './lib/postgres-server.js';
import { measureStarts, seedStart } from './lib/starts.js';
/** By default a tenth of what the figures in `README.md` are of. */
const SCALE = Number(process.env.BENCH_START_SCALE ?? 0.1);
const TARGET_MS = 2_000;
const FIRST_COPY = 1_000_000;
const SCHEMA = 'started';
/** What a start on PostgreSQL takes, alone and as a node, with very much that an earlier process left, beside the opening of it. */
export async function postgresStart() {
    const many = (count) => Math.max(1, Math.round(count * SCALE));
    const server = await PostgresServer.start();
    try {
        await seedStart([server.url]);
        await measure('nothing', server);
        await multiplySession(server, 'asleep IS NOT NULL', FIRST_COPY, many(100_000));
        await multiplySession(server, "ended IS NOT NULL AND (state::json -> 'info' ->> 'jobId') IS NULL", 3 * FIRST_COPY, many(1_000_000));
        await copyJobs(server, many(1_000_000));
        // as autovacuum leaves it, which would come in the middle of what is measured
        await server.query('VACUUM (ANALYZE)');
        const what = `${many(100_000)} parked sessions, ${many(1_000_000)} that ended, and as many jobs that ended`;
        await measure(what, server);
    }
    finally {
        await server.stop();
    }
}
async function measure(what, { url }) {
    for (const node of [undefined, 'a']) {
        const argv = [url, ...(node === undefined ? [] : [node])];
        const { cpu, took, heap } = await measureStarts(argv);
        console.log(`start on PostgreSQL ${node === undefined ? 'alone' : 'as a node'} with ${what}: ${format(median(took.ours))} ms, opening it ${format(median(took.baseline))} ms; ` +
            `CPU ${format(median(cpu.ours))} ms (${format(ratioOf(cpu))}x); heap ${format(median(heap))} MB${verdict(median(took.ours), TARGET_MS, 'ms')}`);
    }
}
/** The rows of one session as so many others, each under an id and numbers of its own. */
async function multiplySession(server, which, from, count) {
    const [seed] = await server.query(`SELECT key, id FROM ${SCHEMA}.sessions WHERE ${which} LIMIT 1`);
    const { key, id } = seed;
    const of = (column, type) => {
        if (column === 'key' || column === 'session')
            return `${from} + c.n`;
        if (column === 'place')
            return `o.place + c.n + ${from}`;
        if (type === 'bigint' && column === 'owner')
            return 'NULL';
        return type === 'text' ? `replace(o.${column}, '${id}', 'copy-${from}-' || c.n)` : `o.${column}`;
    };
    for (const [table, numbered] of [
        ...[
            ['sessions', 'key'],
            ['origins', 'session'],
            ['snapshots', 'session'],
            ['events', 'session'],
        ],
        ['executions', 'session'],
    ])
        await copy(server, { table, where: `o.${numbered} = ${key}`, count, of });
}
async function copyJobs(server, count) {
    const [seed] = await server.query(`SELECT n, id FROM ${SCHEMA}.jobs WHERE status = 'succeeded' LIMIT 1`);
    const { n, id } = seed;
    const of = (column, type) => {
        if (column === 'n')
            return `${FIRST_COPY} + c.n`;
        return type === 'text' ? `replace(o.${column}, '${id}', 'copy-' || c.n)` : `o.${column}`;
    };
    await copy(server, { table: 'jobs', where: `o.n = ${n}`, count, of });
}
async function copy(server, { table, where, count, of }) {
    const found = await server.query(`SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_schema = '${SCHEMA}' AND table_name = '${table}'`);
    const columns = found;
    const values = columns.map(({ name, type }) => of(name, type));
    await server.query(`INSERT INTO ${SCHEMA}.${table} (${columns.map(({ name }) => name).join(', ')}) OVERRIDING SYSTEM VALUE
     SELECT ${values.join(', ')} FROM ${SCHEMA}.${table} AS o, generate_series(1, ${count}) AS c (n) WHERE ${where}`);
}
//# sourceMappingURL=postgres-start.js.map