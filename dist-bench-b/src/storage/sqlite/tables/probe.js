/** More than fits beside what is full, and more than a usual write. */
const PROBE_BYTES = 64 * 1024;
/** Shows whether there is room for something new. The table is there only while the disk is being asked. */
export const probeOperations = (db) => ({
    'probe.write'() {
        db.exec('CREATE TABLE IF NOT EXISTS probe (filler BLOB)');
        db.exec(`INSERT INTO probe (filler) VALUES (zeroblob(${PROBE_BYTES}))`);
    },
    'probe.clear': () => db.exec('DROP TABLE IF EXISTS probe'),
});
//# sourceMappingURL=probe.js.map