import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import type { CarriedFiles } from '../../engines/cli/carry/carried-files.js'
import type { CallPostgres } from './operations.js'

const pack = promisify(gzip)
const unpack = promisify(gunzip)

/** Files of agents for other nodes, packed. */
export const carriedFiles = (call: CallPostgres): CarriedFiles => ({
  pieces: (sessionId) => call('carried.pieces', sessionId),
  async read(sessionId, path, offset) {
    const packed = await call('carried.read', sessionId, path, offset)
    return packed && unpack(packed)
  },
  write: async (sessionId, piece, bytes) => call('carried.write', sessionId, piece, await pack(bytes)),
})
