import { setTimeout as sleep } from 'node:timers/promises';
import { format, median, verdict } from './lib/figures.js';
import { PostgresServer } from './lib/postgres-server.js';
import { RawHttp } from './lib/raw-http.js';
import { ServerProcess } from './lib/server-process.js';
const ROUNDS = 3;
const LEASE_MS = 10_000;
const TARGET_S = 1;
const RUNNING = 10;
const LOOK_AGAIN_MS = 20;
/** When what a killed node had goes on at another, by the clock: its sessions that were in a turn answer, and its jobs run again. */
export async function postgresTakeover() {
    const server = await PostgresServer.start();
    try {
        const few = [];
        const many = [];
        for (let round = 0; round < ROUNDS; round++) {
            few.push(await takeOver(server, `few_${round}`, { sessions: 1, queued: 0 }));
            many.push(await takeOver(server, `many_${round}`, { sessions: 1_000, queued: 10_000 }));
        }
        for (const [what, of] of [
            ['the first of 1,000 sessions answers', 'first'],
            ['the last of them answers', 'all'],
            [`the last of ${RUNNING} jobs that ran runs again, before 10,000 that wait`, 'jobs'],
        ]) {
            const [ours, baseline] = [many, few].map((all) => median(all.map((one) => one[of])));
            console.log(`after a kill ${what}: lease ${ours < 0 ? '-' : '+'} ${format(Math.abs(ours))} s, with one session and no queue ` +
                `${baseline < 0 ? '-' : '+'} ${format(Math.abs(baseline))} s${verdict(ours, TARGET_S, 's')}`);
        }
    }
    finally {
        await server.stop();
    }
}
async function takeOver(server, schema, { sessions, queued }) {
    const node = (name) => ServerProcess.start('servers/node.js', { argv: [name, server.url, schema] });
    const dies = await node('dies');
    await dies.call('submit', { count: RUNNING, prompt: 'long', priority: 1 });
    await until(async () => (await dies.call('begun')) === RUNNING);
    const ids = await dies.call('createBusy', sessions);
    const stays = await node('stays');
    try {
        await stays.call('submit', { count: queued, prompt: 'short', priority: 0 });
        const asked = await RawHttp.open(await stays.call('url'));
        const killed = performance.now();
        const beyond = () => (performance.now() - killed - LEASE_MS) / 1_000;
        await dies.kill();
        const again = until(async () => (await stays.call('begun')) >= RUNNING).then(beyond);
        const isThere = (id) => async () => (await asked.request('GET', `/v1/sessions/${id}`)).status === 200;
        await until(isThere(ids[0]));
        const first = beyond();
        for (const id of ids)
            await until(isThere(id));
        const all = beyond();
        const jobs = await again;
        asked.close();
        return { first, all, jobs };
    }
    finally {
        await stays.stop();
    }
}
async function until(isSo) {
    while (!(await isSo()))
        await sleep(LOOK_AGAIN_MS);
}
//# sourceMappingURL=postgres-takeover.js.map