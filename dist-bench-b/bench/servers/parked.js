import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWorkerServer } from '../../src/server.js';
import { createFileSessionStore } from '../../src/storage/file/session-store.js';
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
/** The gateway as it is shipped, on an engine whose every turn waits for one result; `argv[2]`: `memory`, `file` or `sqlite`. */
const dir = mkdtempSync(join(tmpdir(), 'bench-parked-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const kind = process.argv[2];
const script = {
    capabilities: { parking: 'native' },
    send: (runner) => runner.defer(`${runner.context.sessionId}-e`),
    settle: (runner) => setImmediate(() => runner.complete()),
};
const worker = createWorkerServer({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: (context) => new ScriptedRunner(context, script),
    ...(kind === 'file' && { parking: { store: createFileSessionStore({ dir }) } }),
    ...(kind === 'sqlite' && { storage: createSqliteStorage({ path: join(dir, 'gateway.db') }) }),
});
const { url } = await worker.listen(0);
answer({
    url: () => url,
    /** @returns the ids of sessions that are parked now */
    async park(count) {
        const ids = [];
        for (let n = 0; n < count; n++)
            ids.push((await worker.registry.create({ cwd: tmpdir(), prompt: 'Write me a report on the last quarter.' })).id);
        while (ids.some((id) => worker.registry.here(id)?.status !== 'parked'))
            await new Promise((resolve) => setTimeout(resolve, 20));
        return ids;
    },
    /** Bytes on disk. */
    disk: () => readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0),
});
//# sourceMappingURL=parked.js.map