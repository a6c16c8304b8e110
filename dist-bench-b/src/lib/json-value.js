import { invalidField } from '../errors.js';
/** It is in every list, for everybody who looks at one. */
const MAX_META_BYTES = 16 * 1024;
/**
 * What is kept and answered as JSON has to be some, and not too much: a host can hand in a BigInt, or an object that holds itself.
 * @throws SG_ERR_VALIDATION naming the field
 */
export function assertMeta(value, path) {
    if (value === undefined)
        return;
    let json;
    try {
        json = JSON.stringify(value);
    }
    catch {
        throw invalidField(path, 'must be JSON: no BigInt, and nothing that holds itself.');
    }
    if (json !== undefined && Buffer.byteLength(json) > MAX_META_BYTES)
        throw invalidField(path, 'is at most 16 KiB of JSON. Keep what is larger yourself, under an id that you put here.');
}
//# sourceMappingURL=json-value.js.map