import { Worker } from 'node:worker_threads';
import { loadClaudeSdk } from './sdk.js';
const SOURCE = `
const { parentPort, workerData } = require('node:worker_threads')
import(workerData.specifier)
  .then((sdk) => sdk[workerData.method](...workerData.args))
  .then((result) => parentPort.postMessage({ result }))
  .catch((error) => parentPort.postMessage({ error: String(error?.message ?? error) }))
`;
/**
 * Calls a function of the SDK that works on the agent's files under an environment of its own. The SDK looks the config directory up in the environment of
 * the process, and several sessions read from several directories at once: so each call has a thread.
 * @throws GatewayError when the SDK is not installed, Error for what the call throws or when it takes longer than `timeoutMs`
 */
export async function filesWithSdk(specifier, env, method, args, timeoutMs = 30_000) {
    await loadClaudeSdk(specifier);
    const worker = new Worker(SOURCE, {
        eval: true,
        env,
        // The loaders of a host that runs TypeScript are not needed for it, and cost a second.
        execArgv: [],
        workerData: { specifier: resolved(specifier), method, args },
    });
    const timer = setTimeout(() => void worker.terminate(), timeoutMs);
    try {
        return await new Promise((done, failed) => {
            worker.once('message', ({ result, error }) => (error === undefined ? done(result) : failed(new Error(error))));
            worker.once('error', failed);
            worker.once('exit', () => failed(new Error(`The agent's files took more than ${timeoutMs} ms.`)));
        });
    }
    finally {
        clearTimeout(timer);
        await worker.terminate();
    }
}
/** A bare name means the package that this file would import, not one beside the working directory. */
const resolved = (specifier) => import.meta.resolve(specifier);
//# sourceMappingURL=sdk-worker.js.map