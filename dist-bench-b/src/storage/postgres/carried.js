import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
const pack = promisify(gzip);
const unpack = promisify(gunzip);
/** Files of agents for other nodes, packed. */
export const carriedFiles = (call) => ({
    pieces: (sessionId) => call('carried.pieces', sessionId),
    async read(sessionId, path, offset) {
        const packed = await call('carried.read', sessionId, path, offset);
        return packed && unpack(packed);
    },
    write: async (sessionId, piece, bytes) => call('carried.write', sessionId, piece, await pack(bytes)),
});
//# sourceMappingURL=carried.js.map