import { createHmac } from 'node:crypto';
import { optionError } from '../errors.js';
const PREFIX = 'whsec_';
const VERSION = 'v1';
/** Key bytes: base64 behind `whsec_`, as Standard Webhooks has it; any other text stands for its own bytes. */
function signingKey(secret, option) {
    if (!secret.startsWith(PREFIX))
        return Buffer.from(secret);
    const encoded = secret.slice(PREFIX.length);
    const key = Buffer.from(encoded, 'base64');
    if (key.length === 0 || key.toString('base64').replace(/=+$/, '') !== encoded.replace(/=+$/, ''))
        throw optionError(option, 'what follows whsec_ is not base64.');
    return key;
}
/**
 * One secret, two while rotating, or none, as keys.
 * @throws SG_ERR_OPTION when one cannot be read
 */
export const signingKeys = (secrets, option) => [secrets ?? []].flat().map((secret) => signingKey(secret, option));
/**
 * Headers by which a receiver knows a delivery, and whom it comes from (Standard Webhooks 1.0). Every key signs.
 * @param timestampS seconds since the epoch, of this attempt
 */
export function deliveryHeaders(id, body, keys, timestampS) {
    if (keys.length === 0)
        return { 'webhook-id': id };
    const head = `${id}.${timestampS}.`;
    const signatures = keys.map((key) => createHmac('sha256', key).update(head).update(body).digest('base64'));
    return {
        'webhook-id': id,
        'webhook-timestamp': String(timestampS),
        'webhook-signature': signatures.map((signature) => `${VERSION},${signature}`).join(' '),
    };
}
//# sourceMappingURL=signing.js.map