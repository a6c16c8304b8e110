import { claudeSettings } from '../../src/engines/cli/claude/options.js';
import { loadClaudeSdk } from '../../src/engines/cli/claude/sdk.js';
import { cliSubject } from '../../src/engines/cli/index.js';
import { answer } from '../lib/child.js';
/** The agent driven by its SDK alone: the same settings and environment, the prompt given at once, every message read and dropped. */
const { claudeSdk, cwd, env: given } = JSON.parse(process.argv[2]);
const { env } = cliSubject({ env: given }, { name: 'claude', engine: 'cli' });
const { query } = await loadClaudeSdk(claudeSdk);
const open = new Map();
/** Resolves with the first streamed token. */
function begin({ id, prompt }) {
    let end = () => { };
    const untilEnd = new Promise((done) => {
        end = done;
    });
    async function* prompts() {
        yield { type: 'user', message: { role: 'user', content: prompt }, parent_tool_use_id: null };
        await untilEnd;
    }
    const { spawnClaudeCodeProcess: _ours, ...options } = {
        ...claudeSettings({ config: { cwd }, trusted: false, command: undefined, resume: undefined }),
        env,
        canUseTool: () => Promise.resolve({ behavior: 'deny', message: 'no' }),
        hooks: { PreToolUse: [] },
        spawnClaudeCodeProcess: undefined,
    };
    const session = query({ prompt: prompts(), options: options });
    return new Promise((spoke, failed) => {
        const read = async () => {
            for await (const message of session)
                if (message.type === 'stream_event' && message.event.delta?.type === 'text_delta')
                    spoke();
        };
        open.set(id, { session, end, ended: read().catch(failed) });
    });
}
answer({
    begin,
    async finish(id) {
        const { session, end, ended } = open.get(id);
        open.delete(id);
        end();
        session.close();
        await ended;
    },
});
//# sourceMappingURL=claude-direct.js.map