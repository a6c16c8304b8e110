import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { UNLIMITED } from '../../src/principal.js';
import { createWorkerServer } from '../../src/server.js';
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { askNow, QUIET_MS } from '../lib/ask.js';
import { answer } from '../lib/child.js';
/** A gateway with one session whose engine asks when it is told to; the first argument is the folder that it is kept in. */
const [folder] = process.argv.slice(2);
let runner;
const worker = createWorkerServer({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner(context) {
        runner = new ScriptedRunner(context, {});
        return runner;
    },
    ...(folder !== undefined && { storage: createSqliteStorage({ path: join(folder, 'gateway.db') }) }),
});
const { url } = await worker.listen(0);
const { registry } = worker;
const { id } = await registry.create({ cwd: tmpdir() });
answer({
    socketUrl: () => `${url}/v1/sessions/${id}/ws`,
    async ask() {
        // the one before
        const { pendingPermissions } = await registry.open(id, UNLIMITED);
        for (const request of pendingPermissions)
            await registry.resolvePermission(id, request.id, { behavior: 'allow' }, UNLIMITED);
        await setTimeout(QUIET_MS);
        void runner.host.requestPermission(askNow());
    },
});
//# sourceMappingURL=asking.js.map