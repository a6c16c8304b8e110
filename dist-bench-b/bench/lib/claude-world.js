import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startVendors } from '../../test/agents/vendors.js';
/** Where `node test/agents/install.mjs claude` puts it, seen from `dist-bench/bench/lib`. */
const SDK = new URL('../../../.agents/claude/node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs', import.meta.url);
export const isClaudeInstalled = () => existsSync(fileURLToPath(SDK));
/** A home for the agent, and its model on loopback. */
export async function openClaudeWorld() {
    const closing = [];
    const { url } = await startVendors({ teardown: (close) => void closing.push(close) });
    const home = realpathSync(mkdtempSync(join(tmpdir(), 'bench-claude-')));
    const cwd = join(home, 'work');
    mkdirSync(cwd);
    const env = {
        ...{ PATH: process.env.PATH, HOME: home, CLAUDE_CONFIG_DIR: join(home, 'claude') },
        ...{ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'dummy', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
        ...{ DISABLE_TELEMETRY: '1', DISABLE_ERROR_REPORTING: '1' },
    };
    mkdirSync(env.CLAUDE_CONFIG_DIR);
    return {
        world: { claudeSdk: SDK.href, cwd, env },
        close: () => {
            for (const close of closing)
                close();
            rmSync(home, { recursive: true, force: true, maxRetries: 5 });
        },
    };
}
//# sourceMappingURL=claude-world.js.map