import { format, median } from './figures.js';
import { ServerProcess } from './server-process.js';
const PROBE_MS = 400;
/** What the disk allows, measured between the slices of what is held against it: it moves tenfold within an hour. */
export class DiskProbe {
    #server;
    #syncs = [];
    #transactions = [];
    constructor(server) {
        this.#server = server;
    }
    static async open(folder) {
        return new DiskProbe(await ServerProcess.start('servers/disk.js', { argv: [folder] }));
    }
    /** Resolves with the transactions a second, one after the other. */
    async measure() {
        this.#syncs.push(await this.#server.call('syncs', PROBE_MS));
        const transactions = await this.#server.call('transactions', PROBE_MS);
        this.#transactions.push(transactions);
        return transactions;
    }
    /** Milliseconds of an append of 1 KB and its sync. */
    syncMs = async () => 1_000 / (await this.#server.call('syncs', PROBE_MS));
    toString() {
        return (`the disk meanwhile: ${format(median(this.#syncs))} appends of 1 KB synced a second,` +
            ` ${format(median(this.#transactions))} bare SQLite transactions`);
    }
    stop() {
        return this.#server.stop();
    }
}
//# sourceMappingURL=disk-probe.js.map