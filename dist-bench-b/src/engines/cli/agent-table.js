import { join } from 'node:path';
import { CLI_PERMISSION_MODES } from '../../../schemas/permissions.js';
import { geminiServerTool, qwenToolName } from './acp/tool-names.js';
import { opencodeSettings } from './opencode-settings.js';
import { SNAPSHOT_SOURCES } from './snapshot-sources.js';
import { distrustInCodex } from './workspace/codex.js';
import { distrustInOpencode } from './workspace/opencode.js';
import { distrustInQwen } from './workspace/qwen.js';
/** The agent of a `cli` profile that names none. */
export const DEFAULT_AGENT = 'claude';
/** Who answers in a mode of a declared agent. In `plan` nobody may allow anything. */
const ASKS = {
    default: 'person',
    bypassPermissions: 'allow',
    dontAsk: 'deny',
    acceptEdits: 'edits',
    plan: 'deny',
    auto: 'person',
};
const BUILT_IN_ROWS = [
    row({
        name: 'claude',
        driver: 'claude',
        // A service's agent changes when the operator changes it; and an outage is told after seconds, not minutes.
        env: { DISABLE_AUTOUPDATER: '1', CLAUDE_CODE_MAX_RETRIES: '3', CLAUDE_CODE_STARTUP_FAILURE_RESULTS: '1' },
        inheritedEnv: [
            'ANTHROPIC_*',
            'CLAUDE_*',
            'DISABLE_*',
            'AWS_*',
            'GOOGLE_*',
            'CLOUD_ML_REGION',
            'VERTEX_*',
            'IS_SANDBOX',
        ],
        configDirEnv: 'CLAUDE_CONFIG_DIR',
        defaultConfigDir: (home) => join(home, '.claude'),
        oauthTokenEnv: 'CLAUDE_CODE_OAUTH_TOKEN',
        modes: Object.fromEntries(CLI_PERMISSION_MODES.map((mode) => [mode, { id: mode, asks: 'person' }])),
        credentials: { apiKeyEnv: ['ANTHROPIC_API_KEY'], probe: { args: ['auth', 'status'] } },
        // By the sources of its settings, which the driver says.
        untrusted: {},
        snapshot: SNAPSHOT_SOURCES.claude,
        carry: ['projects/*/{id}.jsonl', 'projects/*/{id}/**'],
    }),
    row({
        name: 'opencode',
        driver: 'acp',
        command: 'opencode',
        package: 'opencode-ai',
        args: ['acp'],
        env: {
            OPENCODE_DISABLE_AUTOUPDATE: '1',
            // Asks for nothing by itself. Our modes decide who answers, so that they can change while it runs.
            OPENCODE_PERMISSION: JSON.stringify({
                '*': 'ask',
                ...Object.fromEntries(['read', 'list', 'glob', 'grep', 'lsp', 'todoread', 'todowrite'].map((tool) => [tool, 'allow'])),
            }),
        },
        inheritedEnv: ['OPENCODE_*', '*_API_KEY', '*_BASE_URL', 'AWS_*', 'GOOGLE_*'],
        configDirEnv: 'XDG_CONFIG_HOME',
        // Credentials lie under the data home, settings under the config home.
        configDirEnvToo: ['XDG_DATA_HOME'],
        defaultConfigDir: (home) => join(home, '.config'),
        modes: {
            default: { id: 'build', asks: 'person' },
            acceptEdits: { id: 'build', asks: 'edits' },
            bypassPermissions: { id: 'build', asks: 'allow' },
            dontAsk: { id: 'build', asks: 'deny' },
            plan: { id: 'plan', asks: 'deny' },
        },
        credentials: { apiKeyEnv: ['OPENCODE_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY'] },
        acp: {
            resume: true,
            fork: true,
            lists: true,
            toolName: 'title',
            serverToolName: (server, tool) => `${server}_${tool}`,
            helperTools: ['task'],
            priorCost: { args: (sessionId) => ['export', sessionId], figure: /"cost":\s*([\d.e-]+)/ },
        },
        settings: opencodeSettings('OPENCODE_CONFIG_CONTENT'),
        untrusted: { env: { OPENCODE_DISABLE_PROJECT_CONFIG: '1', OPENCODE_PURE: '1' }, prepare: distrustInOpencode },
        snapshot: SNAPSHOT_SOURCES.opencode,
    }),
    row({
        name: 'gemini',
        driver: 'acp',
        command: 'gemini',
        package: '@google/gemini-cli',
        args: ['--acp'],
        // For a credential probe; in a session the profile says it.
        env: { GEMINI_CLI_TRUST_WORKSPACE: 'true' },
        inheritedEnv: ['GEMINI_*', 'GOOGLE_*', 'CLOUDSDK_*'],
        // Stands in for the home directory: what the agent keeps lies in .gemini under it.
        configDirEnv: 'GEMINI_CLI_HOME',
        defaultConfigDir: (home) => home,
        modes: {
            default: { id: 'default', asks: 'person' },
            acceptEdits: { id: 'autoEdit', asks: 'edits' },
            bypassPermissions: { id: 'yolo', asks: 'allow' },
            dontAsk: { id: 'default', asks: 'deny' },
            plan: { id: 'plan', asks: 'deny' },
        },
        credentials: {
            apiKeyEnv: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_APPLICATION_CREDENTIALS', 'GOOGLE_CLOUD_PROJECT'],
            login: { path: '.gemini/oauth_creds.json', oauth: 'refresh_token' },
            probe: 'presence',
        },
        acp: {
            resume: true,
            toolName: 'id',
            serverToolName: geminiServerTool,
            patienceMs: 90_000,
            apiKeyLogin: 'gemini-api-key',
            ignoredText: /^(\[MODE_UPDATE\] |<session_context>|\[Function Response: )/,
            replaysLate: true,
            transcripts: { folder: '.gemini/tmp', suffix: (sessionId) => `-${sessionId.slice(0, 8)}.jsonl` },
            sessionFile: {
                folder: '.gemini/tmp',
                prefix: 'session-',
                suffix: (sessionId) => `-${sessionId.slice(0, 8)}.jsonl`,
            },
        },
        untrusted: {
            env: { GEMINI_CLI_TRUST_WORKSPACE: 'false' },
            trustedEnv: { GEMINI_CLI_TRUST_WORKSPACE: 'true' },
            withoutMcp: true,
            modes: { acceptEdits: { id: 'default', asks: 'edits' }, bypassPermissions: { id: 'default', asks: 'allow' } },
        },
        snapshot: SNAPSHOT_SOURCES.gemini,
    }),
    row({
        name: 'codex',
        driver: 'acp',
        command: 'codex-acp',
        package: '@agentclientprotocol/codex-acp',
        args: [],
        env: {},
        inheritedEnv: ['CODEX_*', 'OPENAI_*', 'AZURE_OPENAI_*'],
        configDirEnv: 'CODEX_HOME',
        defaultConfigDir: (home) => join(home, '.codex'),
        modes: {
            default: { id: 'read-only', asks: 'person' },
            acceptEdits: { id: 'workspace-write', asks: 'edits' },
            bypassPermissions: { id: 'agent-full-access', asks: 'allow' },
            dontAsk: { id: 'read-only', asks: 'deny' },
            plan: { id: 'read-only', asks: 'deny' },
            auto: { id: 'agent', asks: 'person' },
        },
        credentials: {
            apiKeyEnv: ['CODEX_API_KEY', 'OPENAI_API_KEY'],
            login: { path: 'auth.json', oauth: 'tokens.refresh_token' },
            probe: { command: 'codex', args: ['login', 'status'] },
        },
        acp: {
            resume: true,
            fork: true,
            lists: true,
            apiKeyLogin: 'api-key',
            refusesInText: true,
            listsToolsLate: true,
            transcripts: { folder: 'sessions', suffix: (sessionId) => `-${sessionId}.jsonl` },
        },
        untrusted: { prepare: distrustInCodex },
        snapshot: SNAPSHOT_SOURCES.codex,
    }),
    row({
        name: 'qwen',
        driver: 'acp',
        command: 'qwen',
        package: '@qwen-code/qwen-code',
        args: ['--acp'],
        env: {},
        inheritedEnv: ['QWEN_*', 'OPENAI_*', 'DASHSCOPE_*'],
        configDirEnv: 'QWEN_HOME',
        defaultConfigDir: (home) => join(home, '.qwen'),
        modes: {
            default: { id: 'default', asks: 'person' },
            acceptEdits: { id: 'auto-edit', asks: 'edits' },
            bypassPermissions: { id: 'yolo', asks: 'allow' },
            dontAsk: { id: 'default', asks: 'deny' },
            plan: { id: 'plan', asks: 'deny' },
        },
        credentials: {
            apiKeyEnv: ['OPENAI_API_KEY', 'DASHSCOPE_API_KEY'],
            login: { path: 'oauth_creds.json', oauth: 'refresh_token' },
        },
        acp: {
            resume: true,
            lists: true,
            loadsAnything: true,
            apiKeyLogin: 'openai',
            toolName: qwenToolName,
            grantArgs: (toolNames) => toolNames.flatMap((name) => ['--allowed-tools', name]),
            helperTools: ['agent', 'task'],
            transcripts: { folder: 'projects', suffix: (sessionId) => `${sessionId}.jsonl` },
        },
        untrusted: {
            prepare: distrustInQwen,
            withoutMcp: true,
            modes: { acceptEdits: { id: 'default', asks: 'edits' }, bypassPermissions: { id: 'default', asks: 'allow' } },
        },
        snapshot: SNAPSHOT_SOURCES.qwen,
    }),
];
/** Grown from opencode: it takes the same, under names of its own. What keeps that from its working directory nobody has tried on it. */
function kiloRow({ untrusted: _opencodes, ...opencode }) {
    const env = Object.entries(opencode.env).map(([name, value]) => [name.replace(/^OPENCODE_/, 'KILO_'), value]);
    const modes = Object.entries(opencode.modes).map(([mode, { id, asks }]) => [
        mode,
        { asks, id: id === 'build' ? 'code' : id },
    ]);
    return row({
        ...opencode,
        ...{ name: 'kilo', command: 'kilo', modes: Object.fromEntries(modes) },
        // it sends what is said in sessions to its vendor otherwise
        env: { ...Object.fromEntries(env), KILO_DISABLE_SESSION_INGEST: '1' },
        settings: opencodeSettings('KILO_CONFIG_CONTENT'),
        inheritedEnv: opencode.inheritedEnv.map((name) => name.replace(/^OPENCODE_/, 'KILO_')),
        credentials: { apiKeyEnv: ['KILO_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY'] },
        snapshot: SNAPSHOT_SOURCES.kilo,
    });
}
const OPENCODE = BUILT_IN_ROWS.find(({ name }) => name === 'opencode');
export const BUILT_IN_AGENTS = new Map([...BUILT_IN_ROWS, kiloRow(OPENCODE)].map((built) => [built.name, built]));
/** The built-in agents and the operator's, by name. */
export function agentTable(declared = []) {
    const table = new Map(BUILT_IN_AGENTS);
    for (const declaration of declared) {
        const below = table.get(declaration.name) ?? UNKNOWN_AGENT;
        const { env, modes, auth, ...fields } = declaration;
        table.set(declaration.name, row({
            ...below,
            ...fields,
            env: { ...below.env, ...env },
            modes: modes ? declaredModes(modes, below) : below.modes,
            modesUnknown: !modes && below === UNKNOWN_AGENT,
            ...(auth && declaredLogin(auth, below)),
        }));
    }
    return table;
}
/** What is taken for granted of an agent that the operator declares: it speaks the Agent Client Protocol, and nothing else. */
const UNKNOWN_AGENT = row({
    name: '',
    driver: 'acp',
    env: {},
    inheritedEnv: [],
    configDirEnv: 'AGENT_CONFIG_DIR',
    modes: { default: { asks: 'person' }, bypassPermissions: { asks: 'allow' } },
    credentials: { apiKeyEnv: [] },
    acp: { resume: true, fork: true, lists: true },
    snapshot: {},
});
const declaredLogin = ({ method, apiKeyEnv }, { acp = { resume: true }, inheritedEnv, credentials }) => ({
    acp: { ...acp, apiKeyLogin: method },
    inheritedEnv: apiKeyEnv === undefined ? inheritedEnv : [...inheritedEnv, apiKeyEnv],
    credentials: { ...credentials, apiKeyEnv: apiKeyEnv === undefined ? [] : [apiKeyEnv] },
});
function declaredModes(modes, below) {
    return Object.fromEntries(CLI_PERMISSION_MODES.flatMap((mode) => {
        const id = modes[mode];
        return id === undefined ? [] : [[mode, { asks: below.modes[mode]?.asks ?? ASKS[mode], id }]];
    }));
}
function row(fields) {
    const permissionModes = CLI_PERMISSION_MODES.filter((mode) => fields.modes[mode] !== undefined);
    return { args: [], ...fields, permissionModes };
}
//# sourceMappingURL=agent-table.js.map