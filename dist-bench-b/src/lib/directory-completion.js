import { opendir } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, parse, sep } from 'node:path';
import { resolveWithinRoots } from './paths-within-roots.js';
/** Of one answer. */
const MAX_DIRECTORIES = 50;
/** Of one directory that are looked at. */
const MAX_ENTRIES = 20_000;
/**
 * The directories that a path may be meant to become, as far as it is typed. What lies outside the roots is as if it were not there; a
 * symbolic link counts as what it leads to.
 * @param prefix absolute, or empty for the roots themselves
 * @param options.hidden whether names count that begin with a dot, when what is typed does not
 */
export async function completeDirectory(prefix, roots, { hidden = false } = {}) {
    const tops = roots ? roots.paths : [parse(process.cwd()).root];
    const found = new Set(tops.filter((top) => top.startsWith(prefix)));
    const isFolder = prefix.endsWith(sep);
    const typed = isFolder ? '' : basename(prefix);
    const parent = isAbsolute(prefix)
        ? await resolveWithinRoots(isFolder ? prefix : dirname(prefix), roots)
        : { ok: false };
    if (parent.ok)
        for (const name of await namesIn(parent.path, typed, hidden || typed.startsWith('.'))) {
            if (found.size > MAX_DIRECTORIES)
                break;
            const place = await resolveWithinRoots(join(parent.path, name), roots);
            if (place.ok)
                found.add(place.path);
        }
    return { directories: [...found].slice(0, MAX_DIRECTORIES).sort(), truncated: found.size > MAX_DIRECTORIES };
}
/** What begins so and may be a directory, in order. */
async function namesIn(directory, typed, hidden) {
    const names = [];
    let seen = 0;
    try {
        for await (const entry of await opendir(directory)) {
            if (++seen > MAX_ENTRIES)
                break;
            const { name } = entry;
            if (!name.startsWith(typed) || (!hidden && name.startsWith('.')))
                continue;
            if (entry.isDirectory() || entry.isSymbolicLink())
                names.push(name);
        }
    }
    catch {
        // one that may not be read has nothing to show
    }
    return names.sort();
}
//# sourceMappingURL=directory-completion.js.map