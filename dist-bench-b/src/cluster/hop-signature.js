import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
export const HOP_HEADER = 'sg-hop';
export const CLIENT_HEADER = 'sg-client';
const VERSION = 'v1';
const FORM = /^v1\.(\d{1,16})\.(\d{1,16})\.(\d{1,16})\.([\w-]{22})\.([\w-]{43})$/;
/** A signature is taken for that long, before and after: clocks differ. */
const VALID_MS = 30_000;
/** The value of `HOP_HEADER`. */
export function signHop(secret, { from, to }, message, now) {
    const signed = `${VERSION}.${from}.${to}.${now}.${randomBytes(16).toString('base64url')}`;
    return `${signed}.${digest(secret, signed, message)}`;
}
function digest(secret, signed, { method, path, authorization, cookie, client }) {
    const covered = JSON.stringify([signed, method, path, hashed(authorization), hashed(cookie), client ?? null]);
    return createHmac('sha256', secret).update(covered).digest('base64url');
}
const hashed = (secret) => secret === undefined ? null : createHash('sha256').update(secret).digest('base64url');
/** Lets in what other nodes have signed, once each. */
export class HopVerifier {
    #secrets;
    #now;
    /** Those of this while, and of the one before: by then none of the older ones is valid. */
    #nonces = new Set();
    #formerNonces = new Set();
    #turnsAt = 0;
    constructor(secrets, now) {
        this.#secrets = secrets;
        this.#now = now;
    }
    /** @param self incarnation of this node */
    verify(header, message, self) {
        if (header === undefined)
            return 'unsigned';
        const match = FORM.exec(String(header));
        if (!match)
            return 'forged';
        const [text, from, to, at, nonce, signature] = match;
        const signed = text.slice(0, -signature.length - 1);
        // each is compared: which one it is takes the same time
        const fits = this.#secrets.map((secret) => timingSafeEqual(Buffer.from(digest(secret, signed, message)), Buffer.from(signature)));
        if (!fits.includes(true))
            return 'forged';
        const now = this.#now();
        if (Math.abs(now - Number(at)) > VALID_MS)
            return 'late';
        if (!this.#isNew(nonce, now))
            return 'replayed';
        if (Number(to) !== self)
            return 'misdirected';
        return { from: Number(from), to: Number(to) };
    }
    #isNew(nonce, now) {
        if (now >= this.#turnsAt) {
            this.#formerNonces = this.#nonces;
            this.#nonces = new Set();
            this.#turnsAt = now + 2 * VALID_MS;
        }
        if (this.#nonces.has(nonce) || this.#formerNonces.has(nonce))
            return false;
        this.#nonces.add(nonce);
        return true;
    }
}
//# sourceMappingURL=hop-signature.js.map