import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format, interleave, line, median, percentile, verdict } from './lib/figures.js';
import { RawHttp } from './lib/raw-http.js';
import { ServerProcess } from './lib/server-process.js';
const WAITING = 10_000;
const PAGES = 200;
const ROUNDS = 7;
const TARGET_MS = 5;
/** What it costs to look at what waits for a person, where much does: a page of 50, and the count, beside the same items from a bare route. */
export async function inbox() {
    const folder = await mkdtemp(join(tmpdir(), 'bench-inbox-'));
    try {
        for (const kind of ['memory', 'sqlite']) {
            const server = await ServerProcess.start('servers/approvals.js', { argv: [kind, folder] });
            for (let waiting = 0; waiting < WAITING; waiting += 500)
                await server.call('park', 500);
            await measure(server, kind);
            await server.stop();
        }
        const restarted = await ServerProcess.start('servers/approvals.js', { argv: ['sqlite', folder] });
        await measure(restarted, 'sqlite, after a restart');
        await restarted.stop();
    }
    finally {
        await rm(folder, { recursive: true, force: true });
    }
}
async function measure(server, kind) {
    const http = await RawHttp.open(await server.call('url'));
    const bare = await RawHttp.open(await server.call('bareUrl'));
    const { body } = await http.request('GET', '/v1/inbox?limit=50');
    const items = JSON.parse(body);
    if (items.length !== 50)
        throw new Error(`a page of ${items.length}`);
    const { permissions } = JSON.parse((await http.request('GET', '/v1/inbox/count')).body);
    if (permissions !== WAITING)
        throw new Error(`${permissions} wait`);
    await server.call('setBare', items);
    const asking = (on, path, kept) => async () => {
        const round = [];
        for (let n = 0; n < PAGES; n++) {
            const start = performance.now();
            const { status } = await on.request('GET', path);
            round.push(performance.now() - start);
            if (status !== 200)
                throw new Error(`${path} answered ${status}`);
        }
        kept?.push(...round);
        return median(round);
    };
    for (const path of ['/v1/inbox?limit=50', '/v1/inbox/count']) {
        const times = [];
        const paired = await interleave(ROUNDS, asking(http, path, times), asking(bare, '/bare'));
        console.log(line(`GET ${path} of ${WAITING} parked approvals, ${kind}, beside a bare page`, paired, 'ms'));
        console.log(`  p50 ${format(median(times))} ms, p99 ${format(percentile(times, 0.99))} ms` +
            verdict(median(times), TARGET_MS, 'ms'));
    }
    http.close();
    bare.close();
}
//# sourceMappingURL=inbox.js.map