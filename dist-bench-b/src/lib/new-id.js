import { randomFillSync } from 'node:crypto';
const ID_BYTES = 16;
const HEX = Buffer.from('0123456789abcdef');
const random = Buffer.alloc(ID_BYTES * 256);
let used = random.length;
const text = Buffer.from('00000000-0000-0000-0000-000000000000');
/** Where each byte stands in the text. */
const places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
/**
 * A random UUID (RFC 9562, version 4), as every id of the contract that is ours to choose. Node's own comes as a rope of some fifteen
 * strings, 480 bytes that every job and session leaves behind a few times, and takes twice as long.
 */
export function newId() {
    if (used === random.length) {
        randomFillSync(random);
        used = 0;
    }
    const at = used;
    used += ID_BYTES;
    random[at + 6] = (random[at + 6] & 0x0f) | 0x40;
    random[at + 8] = (random[at + 8] & 0x3f) | 0x80;
    for (let index = 0; index < ID_BYTES; index++) {
        const byte = random[at + index];
        const place = places[index];
        text[place] = HEX[byte >> 4];
        text[place + 1] = HEX[byte & 15];
    }
    return text.toString('latin1');
}
//# sourceMappingURL=new-id.js.map