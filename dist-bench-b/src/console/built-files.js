import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
const TYPES = {
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.css': 'text/css; charset=utf-8',
    '.svg': 'image/svg+xml',
    '.png': 'image/png',
    '.ico': 'image/x-icon',
    '.json': 'application/json; charset=utf-8',
    '.webmanifest': 'application/manifest+json; charset=utf-8',
    '.woff2': 'font/woff2',
    '.txt': 'text/plain; charset=utf-8',
};
/** What the build may lay beside a file, the smaller first. */
const ENCODINGS = [
    { name: 'br', suffix: '.br' },
    { name: 'gzip', suffix: '.gz' },
];
/** The page of the application, which is there when it was built. */
export const INDEX = 'index.html';
/** Where the build puts what has a digest of its content in its name. */
const HASHED = /^assets\//;
/**
 * The application as it was built into a folder: what is asked for is looked up among the names that were found there, so that no path
 * leads out of it. A build while the gateway runs is seen.
 */
export class BuiltFiles {
    #folder;
    #names = new Set();
    #bodies = new Map();
    /** Which build it is. */
    #build;
    constructor(folder) {
        this.#folder = folder;
    }
    /**
     * @param name relative, with `/`; '' is the page
     * @param accepted the header `Accept-Encoding`
     * @returns undefined when there is no such file
     */
    async find(name, accepted = '') {
        await this.#look();
        const wanted = name === '' ? INDEX : name;
        const type = TYPES[extname(wanted)];
        if (!this.#names.has(wanted) || type === undefined)
            return undefined;
        const encoded = ENCODINGS.find(({ name: encoding, suffix }) => {
            return this.#names.has(`${wanted}${suffix}`) && accepts(accepted, encoding);
        });
        const { body, etag } = await this.#read(`${wanted}${encoded?.suffix ?? ''}`);
        return { type, body, etag, isHashed: HASHED.test(wanted), ...(encoded && { encoding: encoded.name }) };
    }
    async #look() {
        const found = await stat(join(this.#folder, INDEX)).catch(() => undefined);
        const build = found && `${found.ino} ${found.size} ${found.mtimeMs}`;
        if (build === this.#build)
            return;
        const entries = build ? await readdir(this.#folder, { recursive: true, withFileTypes: true }) : [];
        const files = entries.filter((entry) => entry.isFile());
        const below = (folder) => folder.slice(this.#folder.length + 1).replaceAll('\\', '/');
        this.#names = new Set(files
            .map(({ parentPath, name }) => [below(parentPath), name].filter(Boolean).join('/'))
            .filter((path) => !/(?:^|\/)\./.test(path)));
        this.#bodies = new Map();
        this.#build = build;
    }
    #read(name) {
        const known = this.#bodies.get(name);
        if (known)
            return known;
        const reading = readFile(join(this.#folder, name)).then((body) => ({
            body,
            etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`,
        }));
        const bodies = this.#bodies;
        bodies.set(name, reading);
        reading.catch(() => bodies.delete(name));
        return reading;
    }
}
/** Whether `Accept-Encoding` names it, and does not give it the weight 0. */
function accepts(header, encoding) {
    const named = header.split(',').map((part) => part
        .trim()
        .toLowerCase()
        .split(/\s*;\s*/));
    const found = named.find(([name]) => name === encoding);
    return found !== undefined && !found.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
}
/** Instead of an application that was not built. */
export const NOT_BUILT_PAGE = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Console</title>' +
    '<p>The console was not built. Run <code>npm run build</code> and load this page again.</p></html>\n';
//# sourceMappingURL=built-files.js.map