import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { newJob } from '../../src/jobs/job.js';
import { createMemorySessionJournal } from '../../src/storage/memory/session-journal.js';
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js';
import { answer } from '../lib/child.js';
import { percentile } from '../lib/figures.js';
import { sessionInfo } from './session-info.js';
/** A journal of the kind that the first argument says, in the folder that the second one names. */
const [kind, folder] = process.argv.slice(2);
const SESSIONS = 100;
const TEXT = 'x'.repeat(950);
const AT_ONCE = 1_000;
const storage = createSqliteStorage({ path: join(folder, 'gateway.db') });
if (kind === 'sqlite')
    await storage.open();
const journal = kind === 'sqlite' ? storage.journal : createMemorySessionJournal();
let seq = 0;
let removed = 0;
const nameOf = (index) => `s-${removed}-${index % SESSIONS}`;
const eventOf = () => ({ seq: ++seq, json: `{"type":"event","seq":${seq},"text":"${TEXT}"}` });
const firstWrite = (id) => ({
    id,
    origin: { profile: 'bench', generation: '', config: { cwd: folder }, epoch: 'e' },
    state: { info: sessionInfo(id) },
});
/** Sessions with nothing in their logs. */
async function renew() {
    if (seq > 0)
        await Promise.all(Array.from({ length: SESSIONS }, (_, index) => journal.remove(nameOf(index))));
    removed++;
    await Promise.all(Array.from({ length: SESSIONS }, (_, index) => journal.write(firstWrite(nameOf(index)))));
}
/** Events of 1 KB, many under way at a time. @returns how many a second */
async function burst(events) {
    await renew();
    const start = performance.now();
    let left = events;
    const writer = async (index) => {
        while (left-- > 0)
            await journal.write({ id: nameOf(index), events: [eventOf()] });
    };
    await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => writer(index)));
    return (events / (performance.now() - start)) * 1000;
}
/** Writes at a rate, each with one event. @returns milliseconds: until a write was confirmed, and how late the event loop was */
async function paced({ perSecond, seconds }) {
    await renew();
    const acks = [];
    const writes = [];
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const start = performance.now();
    await new Promise((resolve) => {
        const timer = setInterval(() => {
            const elapsed = Math.min(performance.now() - start, seconds * 1000);
            while (writes.length < (elapsed * perSecond) / 1000) {
                const asked = performance.now();
                const write = journal.write({ id: nameOf(writes.length), events: [eventOf()] });
                writes.push(write.then(() => void acks.push(performance.now() - asked)));
            }
            if (elapsed < seconds * 1000)
                return;
            clearInterval(timer);
            resolve();
        }, 1);
    });
    delay.disable();
    await Promise.all(writes);
    return {
        ackP50: percentile(acks, 0.5),
        ackP99: percentile(acks, 0.99),
        delayP99: delay.percentile(99) / 1e6,
        delayMax: delay.max / 1e6,
    };
}
/** Milliseconds of appends of 1 KB to a file, each synced. */
async function synced(times) {
    const path = join(folder, 'plain');
    const file = await open(path, 'a');
    const took = [];
    for (let index = 0; index < times; index++) {
        const start = performance.now();
        await file.write(TEXT);
        await file.datasync();
        took.push(performance.now() - start);
    }
    await file.close();
    await rm(path);
    return took;
}
const parkedRecord = (id) => ({
    ...{ id, info: sessionInfo(id), profile: 'bench', generation: '', config: { cwd: folder } },
    snapshot: { engine: 'provider', state: { messages: [TEXT, TEXT] } },
    ...{ executions: [{ executionId: `${id}-e`, toolName: 'x' }], results: [], permissions: [], decisions: [] },
    ...{ hasNews: false, settled: [], log: { epoch: 'e', oldestSeq: 1, events: TEXT }, parkedAt: 1 },
});
/** Parked sessions with ten events each, and jobs of which one in ten is still queued. */
async function fill({ sessions, jobs }) {
    const inSlices = async (count, add) => {
        for (let from = 0; from < count; from += AT_ONCE)
            await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, index) => add(from + index)));
    };
    await inSlices(sessions, (index) => {
        const id = `parked-${index}`;
        const events = Array.from({ length: 10 }, (_, at) => ({ seq: at + 1, json: `{"text":"${TEXT}"}` }));
        return Promise.all([journal.write({ ...firstWrite(id), events }), storage.sessions.save(parkedRecord(id))]);
    });
    const request = { session: { cwd: folder, prompt: 'Nothing.' } };
    await inSlices(jobs, (index) => {
        const info = newJob(request, { id: `j-${index}`, now: index, profile: 'bench', generation: '', cwd: folder });
        if (index % 10 !== 0)
            Object.assign(info, { status: 'succeeded', finishedAt: index });
        return storage.queue.add({ request, info });
    });
}
/** Milliseconds of what a start reads, on what is there. */
async function boot() {
    await storage.close();
    const timed = async (work) => {
        const start = performance.now();
        await work();
        return performance.now() - start;
    };
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    return {
        open: await timed(() => storage.open()),
        journal: await timed(() => storage.journal.list()),
        parked: await timed(() => storage.sessions.list()),
        jobs: await timed(() => storage.queue.list({ status: ['queued', 'running', 'parked'] })),
        delayMax: delay.max / 1e6,
    };
}
/** Milliseconds of claims, and of pages of a hundred. */
async function jobCosts(times) {
    const claims = [];
    const pages = [];
    for (let index = 0; index < times; index++) {
        const start = performance.now();
        await storage.queue.claimNext();
        claims.push(performance.now() - start);
        await storage.queue.list({ profiles: ['bench'], status: ['succeeded'], limit: 100 });
        pages.push(performance.now() - start - claims.at(-1));
    }
    return { claims, pages };
}
answer({ burst, paced, synced, fill, boot, jobCosts });
//# sourceMappingURL=storage.js.map