import { tmpdir } from 'node:os';
import { format, interleave, line, percentile } from './lib/figures.js';
import { RawHttp } from './lib/raw-http.js';
import { RawSocket } from './lib/raw-socket.js';
import { ServerProcess } from './lib/server-process.js';
const KNOWN = 100_000;
const JOBS_PER_SLICE = 2_000;
const PAGES_PER_SLICE = 1_500;
const ROUNDS = 9;
const BODY = JSON.stringify({ session: { cwd: tmpdir(), prompt: 'Nothing.' } });
/**
 * Jobs over HTTP, one at a time on an idle worker that knows 100,000: from the submission sent to its 201, and to the first word of the
 * agent seen on the queue's stream. And a page of a hundred of them. The baseline tells at once and has its page at hand.
 */
export async function jobApi() {
    const ours = await Caller.open('servers/job-api.js', [`${KNOWN}`]);
    const bare = await Caller.open('servers/bare-jobs.js');
    // first, while both pages hold the same jobs
    const pages = await interleave(ROUNDS, () => ours.pages(), () => bare.pages());
    console.log(line('GET /jobs, a page of 100 among 100,000, CPU', pages, 'us'));
    const jobs = await interleave(ROUNDS, () => ours.jobs(), () => bare.jobs());
    console.log(line('a job over HTTP, from its submission to its end, CPU', jobs, 'us'));
    compare('submission to 201', ours.submitMs, bare.submitMs);
    compare("submission to the agent's first word", ours.pickUpMs, bare.pickUpMs);
    await Promise.all([ours.close(), bare.close()]);
}
function compare(what, ours, bare) {
    const figures = [0.5, 0.99].map((share) => {
        const [mine, theirs] = [percentile(ours, share), percentile(bare, share)];
        return `p${share * 100} ${format(mine)} ms = ${format(mine / theirs)}x the baseline's ${format(theirs)} ms`;
    });
    console.log(`  ${what}: ${figures.join(', ')}`);
}
/** One client with a connection for requests and one that follows the queue. */
class Caller {
    /** Milliseconds of each job. */
    submitMs = [];
    pickUpMs = [];
    #server;
    #http;
    #stream;
    #sentAt = 0;
    #over;
    constructor(server) {
        this.#server = server;
    }
    static async open(module, argv = []) {
        const server = await ServerProcess.start(module, { argv });
        const caller = new Caller(server);
        const url = await server.call('url');
        caller.#http = await RawHttp.open(url);
        caller.#stream = await RawSocket.open(`${url}/v1/queue/ws`, { onText: (text) => caller.#onFrame(text) });
        return caller;
    }
    #onFrame(text) {
        if (text.includes('"type":"job_progress"'))
            this.pickUpMs.push(performance.now() - this.#sentAt);
        else if (text.includes('"type":"job_completed"'))
            this.#over?.();
    }
    /** Microseconds of server CPU per job. */
    async jobs() {
        const spent = await this.#server.cpuOf(async () => {
            for (let index = 0; index < JOBS_PER_SLICE; index++)
                await this.#job();
        });
        return spent / JOBS_PER_SLICE;
    }
    async #job() {
        const over = new Promise((resolve) => {
            this.#over = resolve;
        });
        this.#sentAt = performance.now();
        const { status } = await this.#http.request('POST', '/v1/jobs', BODY);
        this.submitMs.push(performance.now() - this.#sentAt);
        if (status !== 201)
            throw new Error(`submitting a job answered ${status}`);
        await over;
    }
    /** Microseconds of server CPU per page. */
    async pages() {
        const spent = await this.#server.cpuOf(async () => {
            for (let index = 0; index < PAGES_PER_SLICE; index++) {
                const { status } = await this.#http.request('GET', '/v1/jobs?limit=100');
                if (status !== 200)
                    throw new Error(`a page answered ${status}`);
            }
        });
        return spent / PAGES_PER_SLICE;
    }
    async close() {
        this.#http.close();
        this.#stream.drop();
        await this.#server.stop();
    }
}
//# sourceMappingURL=job-api.js.map