import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { rename, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
let folder;
/**
 * Writes a file that an agent is started with, where only this account reads; it goes with the process. The same content is the same
 * file.
 * @returns its path
 */
export async function privateFile(name, content, mode = 0o600) {
    const digest = createHash('sha256').update(content).digest('hex').slice(0, 16);
    // Whatever tidies up temporary folders may have taken it away.
    if (folder === undefined || !(await stat(folder).catch(() => undefined)))
        folder = makeFolder();
    const path = join(folder, `${digest}-${name}`);
    if (await stat(path).catch(() => undefined))
        return path;
    // There as a whole or not at all: an agent that starts meanwhile would not read what it is not to trust.
    const begun = `${path}-${randomUUID()}`;
    await writeFile(begun, content, { mode, flag: 'wx' });
    await rename(begun, path);
    return path;
}
function makeFolder() {
    const made = mkdtempSync(join(tmpdir(), 'session-gateway-'));
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
    return made;
}
//# sourceMappingURL=private-files.js.map