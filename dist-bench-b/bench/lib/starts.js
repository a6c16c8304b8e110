import { ServerProcess } from './server-process.js';
const ROUNDS = 3;
/** Starts a gateway, and opens its database alone, by turns. @param argv of `servers/started.js` */
export async function measureStarts(argv) {
    const cpu = { ours: [], baseline: [] };
    const took = { ours: [], baseline: [] };
    const heap = [];
    for (let round = 0; round < ROUNDS; round++)
        for (const call of ['open', 'start']) {
            const server = await ServerProcess.start('servers/started.js', { argv, exposeGc: true });
            const before = await server.memoryInUse();
            const into = call === 'start' ? 'ours' : 'baseline';
            cpu[into].push((await server.cpuOf(async () => took[into].push(await server.call(call)))) / 1_000);
            if (call === 'start') {
                heap.push(((await server.memoryInUse()).heapUsed - before.heapUsed) / 1024 / 1024);
                await server.call('stop');
            }
            await server.stop();
        }
    return { cpu, took, heap };
}
/** Has a gateway make one of each thing, whose rows are multiplied then. @param argv of `servers/started.js` */
export async function seedStart(argv) {
    const server = await ServerProcess.start('servers/started.js', { argv });
    await server.call('start');
    await server.call('seed');
    await server.call('stop');
    await server.stop();
}
//# sourceMappingURL=starts.js.map