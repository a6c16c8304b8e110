import { format, interleave, line, median, verdict } from './lib/figures.js';
import { ServerProcess } from './lib/server-process.js';
const KNOWN = [2_000, 20_000, 100_000];
const JOBS_PER_SLICE = 5_000;
const ROUNDS = 15;
const TARGET = 1.2;
const DRAINED_PER_SECOND = 20_000;
const DRAINS_IN_A_ROW = 21;
const PAGES = 2_000;
/** What a job costs from its submission to its end, by how many jobs the queue knows already; and a page of them. */
export async function jobQueue() {
    const queues = await Promise.all(KNOWN.map((known) => ServerProcess.start('servers/job-queue.js', { argv: [`${known}`] })));
    const [few, some, many] = queues;
    const cpu = (queue) => async () => (await queue.cpuOf(() => drain(queue))) / JOBS_PER_SLICE;
    console.log(line('a job with 20,000 known, against 2,000, CPU', await interleave(ROUNDS, cpu(some), cpu(few)), 'us', TARGET));
    console.log(line('a job with 100,000 known, against 2,000, CPU', await interleave(ROUNDS, cpu(many), cpu(few)), 'us', TARGET));
    await Promise.all([few.stop(), some.stop()]);
    await drainedPerSecond('sessions removed as they end', []);
    await drainedPerSecond('default options but for 50 slots', ['kept']);
    const { pageMs, stringifyMs } = await many.call('page', PAGES);
    const ratio = (pageMs + stringifyMs) / stringifyMs;
    const figures = `${format(pageMs * 1000)} us to find, ${format(stringifyMs * 1000)} us to stringify`;
    console.log(`a page of 100 among 100,000: ${figures}${verdict(ratio, TARGET, 'x')}`);
    await many.stop();
}
/** In a row and by a process of its own: in the pauses between slices V8 makes the young generation small again. */
async function drainedPerSecond(how, argv) {
    const queue = await ServerProcess.start('servers/job-queue.js', { argv: [`${KNOWN[0]}`, ...argv] });
    const perSecond = [];
    const submitUs = [];
    for (let round = 0; round < DRAINS_IN_A_ROW; round++) {
        const { submitMs, drainMs } = await drain(queue);
        perSecond.push((JOBS_PER_SLICE / drainMs) * 1000);
        submitUs.push((submitMs / JOBS_PER_SLICE) * 1000);
    }
    const rate = median(perSecond);
    const met = rate >= DRAINED_PER_SECOND ? 'met' : 'MISSED';
    console.log(`jobs submitted and drained, ${how}: ${format(rate)} per second  [target >= ${DRAINED_PER_SECOND}: ${met}]`);
    console.log(`submission of a job among ${JOBS_PER_SLICE} at once: ${format(median(submitUs))} us`);
    await queue.stop();
}
const drain = (queue) => queue.call('drain', JOBS_PER_SLICE);
//# sourceMappingURL=job-queue.js.map