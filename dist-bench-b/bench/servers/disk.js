import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { loadDriver } from '../../src/storage/sqlite/driver.js';
import { answer } from '../lib/child.js';
/** What the file system of the folder allows by itself, without a gateway. */
const folder = process.argv[2];
const BLOCK = Buffer.alloc(1_024, 'x');
/** Appends of 1 KB, each synced. @returns how many a second */
async function syncs(forMs) {
    const path = join(folder, 'plain');
    const file = await open(path, 'a');
    const rate = await perSecond(forMs, async () => {
        await file.write(BLOCK);
        await file.datasync();
    });
    await file.close();
    await rm(path);
    return rate;
}
/** Rows of 1 KB, each in a transaction of its own, as the gateway's database is set up. @returns how many a second */
async function transactions(forMs) {
    const path = join(folder, 'plain.db');
    const db = new (await loadDriver())(path);
    for (const setting of ['journal_mode = WAL', 'synchronous = FULL'])
        db.exec(`PRAGMA ${setting}`);
    db.exec('CREATE TABLE rows (n INTEGER PRIMARY KEY, text TEXT NOT NULL)');
    const insert = db.prepare('INSERT INTO rows (text) VALUES (?)');
    const text = BLOCK.toString();
    const rate = await perSecond(forMs, () => void insert.run(text));
    db.close();
    for (const suffix of ['', '-wal', '-shm'])
        await rm(`${path}${suffix}`, { force: true });
    return rate;
}
async function perSecond(forMs, step) {
    const start = performance.now();
    let steps = 0;
    for (; performance.now() - start < forMs; steps++)
        await step();
    return (steps / (performance.now() - start)) * 1000;
}
answer({ syncs, transactions });
//# sourceMappingURL=disk.js.map