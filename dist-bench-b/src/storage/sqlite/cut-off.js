import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { loadDriver } from './driver.js';
import { APPLICATION_ID } from './schema.js';
const HEADER_BYTES = 100;
const PAGE_SIZE_AT = 16;
const APPLICATION_ID_AT = 68;
/** What reading alone is refused with while a journal lies beside the file that is to be taken back first. */
const SQLITE_READONLY = 8;
/** What was cut off, or nothing when the error says something else, or the file is not one of ours. */
export function cutOffBy(error, path) {
    const { errcode = 0 } = error;
    if ((errcode & 0xff) !== SQLITE_READONLY || !existsSync(`${path}-journal`))
        return undefined;
    const header = Buffer.alloc(HEADER_BYTES);
    const file = openSync(path, 'r');
    try {
        readSync(file, header, 0, HEADER_BYTES, 0);
    }
    finally {
        closeSync(file);
    }
    const application = header.readUInt32BE(APPLICATION_ID_AT);
    if (application === APPLICATION_ID)
        return 'whole';
    const said = header.readUInt16BE(PAGE_SIZE_AT);
    // 65536 does not fit and is told as 1; a table would need a second page
    const onePage = Math.max(said === 1 ? 65_536 : said, HEADER_BYTES);
    return application === 0 && statSync(path).size <= onePage ? 'empty' : undefined;
}
export const cutOffMessage = (path) => `${path} was cut off in a change. The next start of the gateway takes that change back, and it can be looked through after that.`;
/** Lets SQLite take back what its journal says, as any program that opens the file to write would. */
export async function takeBack(path) {
    const OpenDatabase = await loadDriver();
    const db = new OpenDatabase(path);
    try {
        db.prepare('SELECT count(*) FROM sqlite_master').get();
    }
    finally {
        db.close();
    }
}
//# sourceMappingURL=cut-off.js.map