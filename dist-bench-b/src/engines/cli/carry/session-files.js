import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
/**
 * Files of a session that are there, below an agent's config directory.
 * @param patterns as a row has them
 * @returns paths with `/` between folders; no links, and nothing behind them
 */
export async function filesOf(directory, patterns, agentSessionId) {
    // an id that has a path in it is nobody's
    if (agentSessionId === '' || /[/\\*]|^\.+$/.test(agentSessionId))
        return [];
    const found = await Promise.all(patterns.map((pattern) => matching(directory, '', pattern.replaceAll('{id}', agentSessionId).split('/'))));
    return found.flat().sort();
}
async function matching(directory, below, [name, ...rest]) {
    if (name === undefined)
        return [];
    const isOpen = name === '*' || name === '**';
    const entries = isOpen
        ? await readdir(join(directory, below), { withFileTypes: true }).catch(() => [])
        : await lstat(join(directory, below, name)).then((one) => [Object.assign(one, { name })], () => []);
    const found = await Promise.all(entries.map((entry) => {
        const path = below === '' ? entry.name : `${below}/${entry.name}`;
        if (entry.isDirectory())
            return matching(directory, path, name === '**' ? ['**'] : rest);
        return entry.isFile() && rest.length === 0 ? [path] : [];
    }));
    return found.flat();
}
//# sourceMappingURL=session-files.js.map