import { isClaudeInstalled, openClaudeWorld } from './lib/claude-world.js';
import { format, interleave, line, MB, median, verdict } from './lib/figures.js';
import { RawHttp } from './lib/raw-http.js';
import { RawSocket } from './lib/raw-socket.js';
import { ServerProcess } from './lib/server-process.js';
const ROUNDS = 20;
const TARGET = 1.1;
/** Open at the same time, each after its first answer. */
const SESSIONS = 8;
const MEMORY_ROUNDS = 3;
const TARGET_MB = 5;
const PROMPT = 'Say something.';
/** The real claude, from the creation of a session to its first token, and what the session costs the process that drives it. */
export async function firstToken() {
    if (!isClaudeInstalled()) {
        console.log('first-token: left out, claude is not installed: node test/agents/install.mjs claude');
        return;
    }
    const { world, close } = await openClaudeWorld();
    try {
        await time(world);
        await memory(world);
    }
    finally {
        close();
    }
}
async function time(world) {
    const [ours, direct] = await Promise.all([ThroughGateway.open(world), Direct.open(world)]);
    const once = (driver) => async () => {
        const start = performance.now();
        const id = await driver.begin();
        const took = performance.now() - start;
        await driver.finish(id);
        return took;
    };
    const paired = await interleave(ROUNDS, once(ours), once(direct));
    console.log(line('a session created, to the first token of claude', paired, 'ms', TARGET));
    await Promise.all([ours.close(), direct.close()]);
}
async function memory(world) {
    const ours = [];
    const direct = [];
    for (let round = 0; round < MEMORY_ROUNDS; round++) {
        ours.push(await bytesPerSession(await ThroughGateway.open(world)));
        direct.push(await bytesPerSession(await Direct.open(world)));
    }
    const mb = (of, what) => median(of.map((one) => one[what])) / MB;
    const more = mb(ours, 'rss') - mb(direct, 'rss');
    const figures = (of) => `${format(mb(of, 'rss'))} MB (heap and buffers ${format(mb(of, 'used'))} MB)`;
    console.log(`RSS of a session of claude in the process that drives it: ${figures(ours)}, baseline ${figures(direct)}; ` +
        `${format(more)} MB on top${verdict(more, TARGET_MB, 'MB')}`);
}
async function bytesPerSession(driver) {
    await driver.finish(await driver.begin());
    const before = await driver.server.memoryInUse();
    const ids = [];
    for (let n = 0; n < SESSIONS; n++)
        ids.push(await driver.begin());
    const after = await driver.server.memoryInUse();
    for (const id of ids)
        await driver.finish(id);
    await driver.close();
    const used = (of) => of.heapUsed + of.external;
    return { rss: (after.rss - before.rss) / SESSIONS, used: (used(after) - used(before)) / SESSIONS };
}
function untilToken() {
    let resolve = () => { };
    let reject = (_error) => { };
    const promise = new Promise((done, failed) => {
        resolve = done;
        reject = failed;
    });
    return { promise, resolve, reject };
}
class ThroughGateway {
    server;
    url;
    http;
    cwd;
    constructor(server, url, http, cwd) {
        this.server = server;
        this.url = url;
        this.http = http;
        this.cwd = cwd;
    }
    static async open(world) {
        const server = await ServerProcess.start('servers/claude-gateway.js', START(world));
        const url = await server.call('url');
        return new ThroughGateway(server, url, await RawHttp.open(url), world.cwd);
    }
    async begin() {
        const { status, body } = await this.http.request('POST', '/v1/sessions', JSON.stringify({ cwd: this.cwd, prompt: PROMPT }));
        if (status !== 201)
            throw new Error(`create answered ${status}: ${body}`);
        const { id } = JSON.parse(body);
        const { promise, resolve, reject } = untilToken();
        const socket = await RawSocket.open(`${this.url}/v1/sessions/${id}/ws`, {
            onText: (text) => {
                if (text.includes('"stream_delta"'))
                    resolve();
                if (text.includes('"session_error"'))
                    reject(new Error(text.toString()));
            },
        });
        await promise;
        socket.drop();
        return id;
    }
    async finish(id) {
        await this.http.request('DELETE', `/v1/sessions/${id}`);
    }
    async close() {
        this.http.close();
        await this.server.stop();
    }
}
class Direct {
    server;
    #begun = 0;
    constructor(server) {
        this.server = server;
    }
    static async open(world) {
        return new Direct(await ServerProcess.start('servers/claude-direct.js', START(world)));
    }
    async begin() {
        const id = String(++this.#begun);
        await this.server.call('begin', { id, prompt: PROMPT });
        return id;
    }
    finish(id) {
        return this.server.call('finish', id);
    }
    close() {
        return this.server.stop();
    }
}
const START = (world) => ({ argv: [JSON.stringify(world)], exposeGc: true });
//# sourceMappingURL=first-token.js.map