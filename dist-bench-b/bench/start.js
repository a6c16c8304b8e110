import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadDriver } from '../src/storage/sqlite/driver.js';
import { format, median, ratioOf } from './lib/figures.js';
import { measureStarts, seedStart } from './lib/starts.js';
/** By default a tenth of what the figures in `README.md` are of. */
const SCALE = Number(process.env.BENCH_START_SCALE ?? 0.1);
/** What a start costs beside the opening of the same database, with what an earlier process left in it. */
export async function start() {
    const many = (count) => Math.max(1, Math.round(count * SCALE));
    const rows = [
        ['an empty database', {}],
        [`${many(100_000)} parked sessions`, { parked: many(100_000) }],
        [`${many(100_000)} sessions that wait for a person`, { asking: many(100_000) }],
        [`1,000 sessions that ended, of ${many(1_000)} events each`, { ended: 1_000, eventsEach: many(1_000) }],
        [`${many(1_000_000)} sessions that ended`, { ended: many(1_000_000) }],
        [`${many(1_000_000)} jobs that ended`, { jobs: many(1_000_000) }],
        [`${many(100_000)} queued jobs that wait for their time`, { queued: many(100_000) }],
        [
            `${many(100_000)} parked sessions, ${many(1_000_000)} that ended, and as many jobs that ended`,
            { parked: many(100_000), ended: many(1_000_000), jobs: many(1_000_000) },
        ],
    ];
    for (const [what, left] of rows) {
        const folder = mkdtempSync(join(tmpdir(), 'bench-start-'));
        try {
            await leave(folder, left);
            await measure(what, folder);
        }
        finally {
            rmSync(folder, { recursive: true, force: true });
        }
    }
}
async function measure(what, folder) {
    const { cpu, took, heap } = await measureStarts([folder]);
    const size = statSync(join(folder, 'gateway.db')).size / 1024 / 1024;
    console.log(`start with ${what} (${format(size)} MB): ${format(median(took.ours))} ms, opening the database ${format(median(took.baseline))} ms; ` +
        `CPU ${format(median(cpu.ours))} ms, opening ${format(median(cpu.baseline))} ms (${format(ratioOf(cpu))}x); heap ${format(median(heap))} MB`);
}
/** Rows of a gateway's own making, as often as they are wanted. */
async function leave(folder, { parked = 0, asking = 0, ended = 0, eventsEach = 0, jobs = 0, queued = 0 }) {
    await seedStart([folder]);
    const db = new (await loadDriver())(join(folder, 'gateway.db'));
    db.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN');
    const seeds = db.prepare('SELECT key, id, state FROM sessions').all();
    const isParked = ({ state }) => JSON.parse(state).midTurn !== undefined;
    const over = seeds.find((seed) => !isParked(seed) && JSON.parse(seed.state).info.jobId === undefined);
    if (eventsEach > 0)
        db.prepare(`INSERT INTO events (session, seq, json) WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?)
       SELECT session, seq + n, replace(json, '"seq":' || seq, '"seq":' || (seq + n)) FROM c, (SELECT * FROM events WHERE session = ? ORDER BY seq DESC LIMIT 1)`).run(eventsEach, over.key);
    const only = (count, of, from = FIRST_COPY) => {
        if (of && count > 0)
            multiply(db, ['sessions', 'origins', 'snapshots', 'events'], of, count, from);
    };
    const asks = ({ state }) => JSON.parse(state).permissions !== undefined;
    only(parked, seeds.find((seed) => isParked(seed) && !asks(seed)));
    only(asking, seeds.find(asks), FIRST_COPY + parked);
    only(ended, over, FIRST_COPY + parked + asking);
    const jobOf = (is) => db.prepare(`SELECT n AS key, id FROM jobs WHERE status ${is} 'queued'`).get();
    if (jobs > 0)
        multiply(db, ['jobs'], jobOf('<>'), jobs);
    if (queued > 0)
        multiply(db, ['jobs'], jobOf('='), queued);
    db.exec('COMMIT; ANALYZE');
    db.close();
}
const FIRST_COPY = 1_000_000;
/** The rows of one session, or job, as so many others, each under an id and a number of its own. */
function multiply(db, tables, { key, id }, count, from = FIRST_COPY) {
    for (const table of tables) {
        const columns = db.prepare(`PRAGMA table_info(${table})`).all();
        const numbered = { sessions: 'key', jobs: 'n' }[table] ?? 'session';
        const values = columns.map(({ name, type }) => {
            if (name === numbered)
                return `${from} + c.n`;
            if (table === 'sessions' && name === 'state')
                return `json_set(replace(o.state, '${id}', c.id), '$.order', json_extract(o.state, '$.order') + c.n)`;
            return type === 'TEXT' ? `replace(o.${name}, '${id}', c.id)` : `o.${name}`;
        });
        db.prepare(`INSERT INTO ${table} (${columns.map(({ name }) => name).join(', ')})
       WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?),
       c (n, id) AS (SELECT n, printf('copy-%08d-${id.slice(0, 8)}', n) FROM n)
       SELECT ${values.join(', ')} FROM c, ${table} AS o WHERE o.${numbered} = ?`).run(count, key);
    }
}
//# sourceMappingURL=start.js.map