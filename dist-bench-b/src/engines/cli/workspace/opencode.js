import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { GatewayError } from '../../../errors.js';
const CONFIGS = ['opencode.json', 'opencode.jsonc', '.opencode/opencode.json', '.opencode/opencode.jsonc'];
const FOLDERS = ['.opencode/plugin', '.opencode/plugins'];
/**
 * It is told to leave the project's configuration and all plugins out, and its turns load the project's plugins in spite of it: where
 * there are any it is not started.
 */
export async function distrustInOpencode({ env, cwd }) {
    for (let folder = cwd; folder !== env.HOME; folder = dirname(folder)) {
        const found = await pluginsIn(folder);
        if (found)
            throw new GatewayError('SG_ERR_ENGINE_START', {
                detail: `opencode would run the plugins of ${found} unasked, and cannot be kept from it: set trustWorkspace on the profile if they may run.`,
            });
        if (folder === dirname(folder))
            break;
    }
    return {};
}
/** What in a folder names or holds plugins. */
async function pluginsIn(folder) {
    for (const path of FOLDERS.map((name) => join(folder, name)))
        if ((await readdir(path).catch(() => [])).some((name) => /\.[tj]s$/.test(name)))
            return path;
    for (const path of CONFIGS.map((name) => join(folder, name)))
        if (/"plugins?"\s*:|\\u00/.test(await readFile(path, 'utf8').catch(() => '')))
            return path;
    return undefined;
}
//# sourceMappingURL=opencode.js.map