import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
/**
 * The binary that comes with the SDK, one package per platform.
 * @param specifier of the SDK
 * @returns undefined when it is not installed
 */
export function claudeExecutable(specifier) {
    try {
        const require = createRequire(import.meta.resolve(specifier));
        for (const variant of ['', '-musl']) {
            const name = `@anthropic-ai/claude-agent-sdk-${process.platform}-${process.arch}${variant}`;
            for (const folder of require.resolve.paths(name) ?? []) {
                const path = join(folder, name, process.platform === 'win32' ? 'claude.exe' : 'claude');
                if (existsSync(path))
                    return path;
            }
        }
        return undefined;
    }
    catch {
        return undefined;
    }
}
//# sourceMappingURL=executable.js.map