/** The side of a process under measurement: answers calls from the load process, one of them what CPU and memory it has used. */
export function answer(handlers) {
    const all = { cpu, memory, collect, ...handlers };
    process.on('message', async ({ id, call, argument }) => {
        try {
            process.send?.({ id, value: (await all[call]?.(argument)) ?? null });
        }
        catch (error) {
            process.send?.({ id, error: String(error.stack ?? error) });
        }
    });
    // A load process that was killed leaves nothing behind.
    process.on('disconnect', () => process.exit());
    process.send?.({ ready: true });
}
/** Microseconds of this process, all its threads included. */
function cpu() {
    const { user, system } = process.cpuUsage();
    return user + system;
}
function memory() {
    const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage();
    return { rss, heapUsed, external, arrayBuffers };
}
/** Needs --expose-gc; several times, because what a finalizer lets go of is only free the next time. */
async function collect() {
    for (let round = 0; round < 3; round++) {
        globalThis.gc?.();
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return memory();
}
//# sourceMappingURL=child.js.map