import { Agent, get } from 'node:http';
import { answer } from './child.js';
/** Another caller, in a process of its own: asks one thing again and again and notes how long each answer took. */
const PAUSE_MS = 3;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let asking = false;
let latencies = [];
answer({
    start(url) {
        asking = true;
        latencies = [];
        void keepAsking(url);
    },
    /** @returns milliseconds, one number for each answer */
    stop() {
        asking = false;
        return latencies;
    },
});
async function keepAsking(url) {
    while (asking) {
        const start = performance.now();
        await ask(url);
        latencies.push(performance.now() - start);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
}
const ask = (url) => new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
        response.resume();
        if (response.statusCode === 200)
            response.on('end', resolve);
        else
            reject(new Error(`${url} answered ${response.statusCode}`));
    }).on('error', reject);
});
//# sourceMappingURL=prober.js.map