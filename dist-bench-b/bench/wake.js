import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DiskProbe } from './lib/disk-probe.js';
import { interleave, line, median, verdict } from './lib/figures.js';
import { Lot } from './lib/lot.js';
const AT_ONCE = 50;
const WAKES_PER_SLICE = 60;
const BURSTS_PER_SLICE = 3;
const ROUNDS = 6;
const TARGET_MS = 0.5;
const TARGET_A_SECOND = 3_000;
const TARGET_SYNCS = 2;
/** From a result over HTTP to the first event of the session that it wakes, at a socket that looks on. */
export async function wake() {
    const folder = await mkdtemp(join(tmpdir(), 'bench-wake-'));
    const disk = await DiskProbe.open(folder);
    const [memory, sqlite, bare] = await Promise.all([
        Lot.open('servers/parked.js', ['memory'], AT_ONCE),
        Lot.open('servers/parked.js', ['sqlite'], AT_ONCE),
        Lot.open('servers/bare-parked.js', [], AT_ONCE),
    ]);
    try {
        const p50 = (lot) => async () => median(await lot.wakes(WAKES_PER_SLICE));
        const one = await interleave(ROUNDS, p50(memory), p50(bare));
        console.log(line('result to first event, in memory, p50', one, 'ms') + verdict(median(one.ours), TARGET_MS, 'ms'));
        const rate = (lot) => async () => {
            const rates = [];
            while (rates.length < BURSTS_PER_SLICE)
                rates.push(await lot.wakesAtOnce());
            return median(rates);
        };
        const many = await interleave(ROUNDS, rate(memory), rate(bare));
        const met = median(many.ours) >= TARGET_A_SECOND ? 'met' : 'MISSED';
        console.log(`${line(`${AT_ONCE} results at once, in memory, wakes a second`, many, '/s')}  [target >= ${TARGET_A_SECOND}: ${met}]`);
        console.log(line('result to first event, on disk, p50 against an append of 1 KB and its sync', await interleave(ROUNDS, p50(sqlite), disk.syncMs), 'ms', TARGET_SYNCS));
        const durable = await interleave(ROUNDS, rate(sqlite), rate(memory));
        console.log(line(`${AT_ONCE} results at once, on disk, wakes a second against memory`, durable, '/s'));
    }
    finally {
        await Promise.all([memory, sqlite, bare, disk].map((one) => one.stop()));
        await rm(folder, { recursive: true, force: true });
    }
}
//# sourceMappingURL=wake.js.map