import { cliEngine } from '../../src/engines/cli/index.js';
import { createWorkerServer } from '../../src/server.js';
import { answer } from '../lib/child.js';
/** The gateway as it is shipped, with the real agent. */
const { claudeSdk, env } = JSON.parse(process.argv[2]);
const worker = createWorkerServer({ allowUnauthenticated: true, profiles: [{ name: 'claude' }] }, { createCliRunner: cliEngine({ claudeSdk, env }), env: {} });
const { url } = await worker.listen(0);
answer({ url: () => url });
//# sourceMappingURL=claude-gateway.js.map