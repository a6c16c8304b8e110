import type { OperationsOf } from '../../sql/operations.js'
import { PROBE_BYTES } from '../../sql/rows.js'
import type { Database } from '../driver.js'

/** Shows whether there is room for something new. The table is there only while the disk is being asked. */
export const probeOperations = (db: Database): OperationsOf<'probe'> => ({
  'probe.write'() {
    db.exec('CREATE TABLE IF NOT EXISTS probe (filler BLOB)')
    db.exec(`INSERT INTO probe (filler) VALUES (zeroblob(${PROBE_BYTES}))`)
  },
  'probe.clear': () => db.exec('DROP TABLE IF EXISTS probe'),
})
