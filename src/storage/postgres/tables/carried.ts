import type { CarriedPiece } from '../../../engines/cli/carry/carried-files.js'
import { asks, does, type Plans, rowsOf, statement } from '../plan.js'

const KEY = '(SELECT key FROM @sessions WHERE id = $1)'
const PIECES = `SELECT path, at AS "offset", length, digest FROM @carried WHERE session = ${KEY} ORDER BY path, at`
const READ = `SELECT encode(bytes, 'base64') AS bytes FROM @carried WHERE session = ${KEY} AND path = $2 AND at = $3`
const CUT = `DELETE FROM @carried WHERE session = ${KEY} AND path = $2 AND at >= $3`
const ADD = `INSERT INTO @carried (session, path, at, length, digest, bytes)
  SELECT key, $2, $3, $4, $5, $6::bytea FROM @sessions WHERE id = $1`

/** Files of agents that go on at any node. */
export const carriedPlans = {
  'carried.pieces': (id) => rowsOf<CarriedPiece>(PIECES, id),
  'carried.read': (id, path, offset) =>
    asks(statement(READ, id, path, offset), ([row]) => row && Buffer.from(row.bytes as string, 'base64')),
  'carried.write': (id, { path, offset, length, digest }, bytes) =>
    does(statement(CUT, id, path, offset), statement(ADD, id, path, offset, length, digest, bytes)),
} satisfies Partial<Plans>
