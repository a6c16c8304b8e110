import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { createGateway } from '../../src/gateway.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
/** Kept here, or they would not be measured. */
const kept = [];
answer({
    /** The domain alone: an idle session has no connection. */
    async sessions(count) {
        const gateway = createGateway({
            allowUnauthenticated: true,
            profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
            createEngineRunner: (context) => new ScriptedRunner(context, {}),
        });
        await gateway.start();
        kept.push(gateway);
        for (let n = 0; n < count; n++)
            await gateway.registry.create({ cwd: tmpdir() });
        while ((await gateway.registry.list()).some(({ status }) => status !== 'idle'))
            await new Promise(setImmediate);
    },
    /** Runners with nothing around them: what they are given is shared, so that only their own shells count. */
    runners(count) {
        const context = { sessionId: randomUUID(), config: { cwd: tmpdir() } };
        for (let n = 0; n < count; n++)
            kept.push(new ScriptedRunner(context, {}));
    },
});
//# sourceMappingURL=idle-sessions.js.map