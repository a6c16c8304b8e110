import { format, median, verdict } from './lib/figures.js';
import { RawSocket } from './lib/raw-socket.js';
import { ServerProcess } from './lib/server-process.js';
const SOCKETS = 5_000;
/** Opened and measured before, so that compiled code and caches are not counted to the sockets. */
const WARM_UP = 500;
const AT_ONCE = 50;
const ROUNDS = 3;
const TARGET_KB = 4.5;
/** Heap of a socket that is attached to a session and hears nothing. */
export async function socketHeap() {
    const ours = [];
    const bare = [];
    for (let round = 0; round < ROUNDS; round++) {
        ours.push(await bytesPerSocket('servers/gateway.js', [JSON.stringify({ maxSocketsPerSession: 2 * SOCKETS })]));
        bare.push(await bytesPerSocket('servers/bare-ws.js', []));
    }
    const [kb, bareKb] = [median(ours) / 1024, median(bare) / 1024];
    console.log(`heap of an attached socket: ${format(kb)} KB = ${format(kb / bareKb)}x the baseline's ${format(bareKb)} KB${verdict(kb, TARGET_KB, 'KB')}`);
}
async function bytesPerSocket(module, argv) {
    const server = await ServerProcess.start(module, { argv, exposeGc: true });
    const url = await server.call('socketUrl', await server.call('createSession'));
    const sockets = await opened(url, WARM_UP);
    const before = await server.memoryInUse();
    sockets.push(...(await opened(url, SOCKETS)));
    const after = await server.memoryInUse();
    for (const socket of sockets)
        socket.drop();
    await server.stop();
    return (after.heapUsed - before.heapUsed) / SOCKETS;
}
async function opened(url, count) {
    const sockets = [];
    while (sockets.length < count)
        sockets.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => RawSocket.open(url)))));
    return sockets;
}
//# sourceMappingURL=socket-heap.js.map