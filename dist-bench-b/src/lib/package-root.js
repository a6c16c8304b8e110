import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
/** Folder of this package, which is one level further up when the compiled files run. */
export const PACKAGE_ROOT = findPackageRoot(dirname(fileURLToPath(import.meta.url)));
export const VERSION = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'))
    .version;
function findPackageRoot(folder) {
    return existsSync(join(folder, 'package.json')) ? folder : findPackageRoot(dirname(folder));
}
//# sourceMappingURL=package-root.js.map