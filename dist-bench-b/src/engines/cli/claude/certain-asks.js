import { readFile } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { ASK_USER_QUESTION } from '../../../../schemas/permissions.js';
const EDITS = new Set(['Write', 'Edit', 'MultiEdit', 'NotebookEdit']);
/** Programs that the agent may take for harmless, with some of their arguments. */
const MAYBE_FREE = new Set([
    ...['ls', 'cat', 'head', 'tail', 'wc', 'grep', 'rg', 'pwd', 'stat', 'du', 'df', 'find', 'fd', 'tree', 'file', 'sort'],
    ...[
        'uniq',
        'cut',
        'tr',
        'sed',
        'awk',
        'jq',
        'diff',
        'cmp',
        'comm',
        'paste',
        'column',
        'nl',
        'tac',
        'rev',
        'fold',
        'echo',
    ],
    ...[
        'printf',
        'date',
        'whoami',
        'id',
        'uname',
        'hostname',
        'uptime',
        'free',
        'which',
        'type',
        'command',
        'ps',
        'pgrep',
    ],
    ...[
        'env',
        'printenv',
        'true',
        'false',
        'test',
        '[',
        'basename',
        'dirname',
        'realpath',
        'readlink',
        'xargs',
        'cd',
        'sleep',
    ],
    ...[
        'seq',
        'strings',
        'hexdump',
        'od',
        'xxd',
        'base64',
        'cksum',
        'md5sum',
        'sha1sum',
        'sha256sum',
        'man',
        'help',
        'info',
    ],
    ...[
        'git',
        'gh',
        'docker',
        'expr',
        'lsof',
        'netstat',
        'ss',
        'history',
        'alias',
        'less',
        'more',
        'zcat',
        'cal',
        'nproc',
    ],
]);
const HARMLESS_REDIRECTION = /\d?>\s*\/dev\/null|\d?>&\d/g;
const ASKS_FOR_VERSION = /\s(--?version|-v|-V|--help|-h)$/;
/** What else in a settings file may decide about a call. */
const OTHER_DECIDERS = ['hooks', 'sandbox', 'enabledPlugins', 'autoMode'];
/**
 * Whether the agent asks a person about this call for certain. It asks only after its hooks, when the call can no longer be put off;
 * so what is certain is asked before. Where a rule, a hook or the agent's own judgement might decide, the agent is left to it.
 */
export async function isCertainToAsk(call, mode, places) {
    const { tool_name: tool, tool_input: input } = call;
    if (tool === ASK_USER_QUESTION)
        return mode !== 'dontAsk';
    if (tool === 'ExitPlanMode')
        return mode === 'plan';
    if (mode !== 'default' && mode !== 'acceptEdits')
        return false;
    const asksWithoutRules = tool === 'WebSearch' ||
        tool.startsWith('mcp__') ||
        (mode === 'default' && EDITS.has(tool) && isIn(places.cwd, input.file_path ?? input.notebook_path)) ||
        (mode === 'default' && tool === 'Bash' && typeof input.command === 'string' && acts(input.command));
    return asksWithoutRules && !(await mayBeDecided(tool, places));
}
const isIn = (folder, path) => {
    if (typeof path !== 'string')
        return false;
    const inside = resolve(folder, path);
    // what the agent keeps about itself has rules of its own
    return inside.startsWith(resolve(folder) + sep) && !inside.includes(`${sep}.claude${sep}`);
};
function acts(command) {
    const plain = command.replace(HARMLESS_REDIRECTION, '');
    if (plain.includes('>'))
        return true;
    return plain.split(/\|\||&&|[|;&\n]/).some((part) => {
        const words = part.trim();
        const program = words.split(/\s+/)[0] ?? '';
        return program !== '' && !MAYBE_FREE.has(program) && !ASKS_FOR_VERSION.test(words);
    });
}
async function mayBeDecided(tool, { cwd, configDir, settingSources, rules }) {
    if (rules.some((rule) => isAbout(rule, tool)))
        return true;
    const files = [
        '/etc/claude-code/managed-settings.json',
        ...(settingSources.includes('user') && configDir ? [join(configDir, 'settings.json')] : []),
        ...(settingSources.includes('project') ? [join(cwd, '.claude/settings.json')] : []),
        ...(settingSources.includes('local') ? [join(cwd, '.claude/settings.local.json')] : []),
    ];
    const found = await Promise.all(files.map((file) => decides(file, tool)));
    return found.includes(true);
}
async function decides(file, tool) {
    let text;
    try {
        text = await readFile(file, 'utf8');
    }
    catch {
        return false;
    }
    try {
        const settings = JSON.parse(text);
        if (OTHER_DECIDERS.some((key) => settings[key] !== undefined))
            return true;
        const { allow = [], deny = [], ask = [] } = (settings.permissions ?? {});
        return [...allow, ...deny, ...ask].some((rule) => isAbout(rule, tool));
    }
    catch {
        return true;
    }
}
/** A rule names a tool, all tools of a server, or some calls of a tool. */
const isAbout = (rule, tool) => {
    const name = rule.split('(')[0].replace(/[*_]+$/, '');
    return (name === '' ||
        tool === name ||
        (name.startsWith('mcp__') && tool.startsWith(name)) ||
        (name === 'Edit' && EDITS.has(tool)));
};
//# sourceMappingURL=certain-asks.js.map