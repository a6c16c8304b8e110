import { createHmac, timingSafeEqual } from 'node:crypto';
/** Longer ones are none of ours. */
const MAX_LENGTH = 4_096;
const PURPOSE = 'session-gateway answer link 1';
/** A grant as a text of URL characters that only the holder of the key can write. */
export function signGrant({ sessionId, requestId, channel, seq, expiresAt }, key) {
    const claims = Buffer.from(JSON.stringify([sessionId, requestId, channel, seq, expiresAt])).toString('base64url');
    return `${claims}.${signatureOf(claims, key)}`;
}
/** The grant that was signed, expired or not; undefined: this text was not signed with the key. */
export function readGrant(token, key) {
    const dot = token.indexOf('.');
    if (dot < 0 || token.length > MAX_LENGTH)
        return undefined;
    const claims = token.slice(0, dot);
    // texts are compared, not what they decode to: of one signature there is one spelling
    const given = Buffer.from(token.slice(dot + 1));
    const right = Buffer.from(signatureOf(claims, key));
    if (given.length !== right.length || !timingSafeEqual(given, right))
        return undefined;
    const [sessionId, requestId, channel, seq, expiresAt] = JSON.parse(Buffer.from(claims, 'base64url').toString());
    return { sessionId, requestId, channel, seq, expiresAt };
}
const signatureOf = (claims, key) => createHmac('sha256', key).update(`${PURPOSE}\n${claims}`).digest('base64url');
//# sourceMappingURL=token.js.map