import { format, MB, median, verdict } from './lib/figures.js';
import { Flock } from './lib/flock.js';
import { RawSocket } from './lib/raw-socket.js';
import { ServerProcess } from './lib/server-process.js';
const BYTES = 200 * MB;
/** As `assistantMessage` makes them. */
const EVENT_BYTES = 1_024;
const EVENTS = Math.ceil(BYTES / EVENT_BYTES / 1_000) * 1_000;
const WINDOW = 200;
const PAIRS = 5;
const TARGET_MB = 4;
const GREETING = 4;
/** glibc gives back at once what is freed: RSS is then what is held, and not what the allocator keeps of the past. */
const GIVE_BACK = { MALLOC_MMAP_THRESHOLD_: '32768' };
/** Memory that the server needs more because one of two clients has stopped reading. */
export async function stalledReader() {
    const ours = { module: 'servers/gateway.js', greeting: GREETING };
    const bare = { module: 'servers/bare-ws.js', greeting: 0 };
    const added = [];
    const addedToBare = [];
    for (let pair = 0; pair < PAIRS; pair++) {
        added.push(difference(await run({ ...ours, stalled: true }), await run({ ...ours, stalled: false })));
        addedToBare.push(difference(await run({ ...bare, stalled: true }), await run({ ...bare, stalled: false })));
    }
    const rss = medianOf(added, 'rss');
    const rssOfBare = medianOf(addedToBare, 'rss');
    const all = added.map((one) => format(one.rss)).join(', ');
    console.log(`a stalled reader during ${format(BYTES / MB)} MB adds: ${format(rss)} MB RSS (${all}) = ${format(rss / rssOfBare)}x the ` +
        `baseline's ${format(rssOfBare)} MB; heap and buffers ${format(medianOf(added, 'used'))} MB, ` +
        `baseline ${format(medianOf(addedToBare, 'used'))} MB${verdict(rss, TARGET_MB, 'MB')}`);
}
async function run({ module, greeting, stalled }) {
    const server = await ServerProcess.start(module, { exposeGc: true, env: GIVE_BACK });
    const id = await server.call('createSession');
    const url = await server.call('socketUrl', id);
    let left = EVENTS;
    let arrived = () => { };
    const reader = new Flock(1, WINDOW / 2, () => {
        server.tell('taken', { id, events: WINDOW / 2 });
        left -= WINDOW / 2;
        if (left === 0)
            arrived();
    });
    await reader.open(url, greeting);
    const other = stalled ? await RawSocket.open(url) : undefined;
    other?.stall();
    const allArrived = new Promise((resolve) => {
        arrived = resolve;
    });
    await server.call('produce', { id, events: EVENTS, perTurn: 10, window: WINDOW });
    await allArrived;
    const { rss, heapUsed, arrayBuffers } = await server.memoryInUse();
    reader.drop();
    other?.drop();
    await server.stop();
    return { rss: rss / MB, used: (heapUsed + arrayBuffers) / MB };
}
const difference = (a, b) => ({ rss: a.rss - b.rss, used: a.used - b.used });
const medianOf = (memories, member) => median(memories.map((one) => one[member]));
//# sourceMappingURL=stalled-reader.js.map