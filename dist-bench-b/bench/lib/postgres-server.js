import { readdirSync, readFileSync } from 'node:fs';
import { TestPostgres } from '../../test/fixtures/postgres.js';
/** What the kernel counts CPU in: a hundredth of a second on every Linux that Node runs on. */
const TICK_US = 10_000;
/** A PostgreSQL that keeps what it confirms, and whose CPU can be told. */
export class PostgresServer {
    #server;
    #pid;
    constructor(server, pid) {
        this.#server = server;
        this.#pid = pid;
    }
    static async start() {
        const server = await TestPostgres.start({ durable: true });
        const pid = Number(readFileSync(`${server.directory}/data/postmaster.pid`, 'utf8').split('\n', 1)[0]);
        return new PostgresServer(server, pid);
    }
    get url() {
        return this.#server.url();
    }
    query(sql, values) {
        return this.#server.query(sql, values);
    }
    stop() {
        return this.#server.stop();
    }
    /** Microseconds of CPU of the server while `work` is done, with the processes of connections that stay. */
    async cpuOf(work) {
        const before = this.#ticks();
        await work();
        return (this.#ticks() - before) * TICK_US;
    }
    #ticks() {
        let ticks = 0;
        for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
            let stat;
            try {
                stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
            }
            catch {
                continue; // it has just ended
            }
            // after the name, which may hold anything: state, parent, …, and from the 12th on user, system, and those of ended children
            const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
            const isServer = Number(pid) === this.#pid;
            if (!isServer && Number(fields[1]) !== this.#pid)
                continue;
            ticks += Number(fields[11]) + Number(fields[12]);
            if (isServer)
                ticks += Number(fields[13]) + Number(fields[14]);
        }
        return ticks;
    }
}
//# sourceMappingURL=postgres-server.js.map