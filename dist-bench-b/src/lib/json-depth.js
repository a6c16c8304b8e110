import parse from 'secure-json-parse';
import { GatewayError } from '../errors.js';
/** How deeply arrays and objects may be nested. Serialising recurses: what is stored some thousand levels deep cannot be answered. */
const MAX_DEPTH = 64;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `[` and `{`, and `]` and `}`, differ in this bit alone. */
const BRACE_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;
/**
 * Whether arrays and objects in a JSON text are nested deeper than `limit`, without parsing it. Of a text that is not JSON, only what
 * comes before its first error counts, and a parser gets no further either.
 */
export function exceedsJsonDepth(text, limit = MAX_DEPTH) {
    if (text.length <= limit)
        return false;
    // UTF-8 has no quote, bracket or backslash inside another character, so one byte may count as one.
    const chars = typeof text === 'string' ? text : text.toString('latin1');
    let depth = 0;
    for (let at = 0; at < chars.length; at++) {
        const char = chars.charCodeAt(at);
        if (char === QUOTE)
            at = endOfString(chars, at + 1);
        else if ((char | BRACE_BIT) === OPEN && ++depth > limit)
            return true;
        else if ((char | BRACE_BIT) === CLOSE)
            depth--;
    }
    return false;
}
/** Where the string that begins at `from` is closed. `indexOf` makes a long text in a string cost next to nothing. */
function endOfString(chars, from) {
    for (let at = from;; at++) {
        const quote = chars.indexOf('"', at);
        if (quote < 0)
            return chars.length;
        let backslashes = quote;
        while (backslashes > at && chars.charCodeAt(backslashes - 1) === BACKSLASH)
            backslashes--;
        if ((quote - backslashes) % 2 === 0)
            return quote;
        at = quote;
    }
}
/**
 * Parses what comes from outside.
 * @param limit how deeply it may be nested
 * @throws GatewayError SG_ERR_TOO_DEEP, or SG_ERR_INVALID_JSON when it is malformed or has a key that would poison a prototype
 */
export function parseJson(text, limit = MAX_DEPTH) {
    if (exceedsJsonDepth(text, limit)) {
        throw new GatewayError('SG_ERR_TOO_DEEP', { detail: `The JSON is nested deeper than ${limit} levels.` });
    }
    try {
        return parse(text, { protoAction: 'error', constructorAction: 'error' });
    }
    catch (cause) {
        const detail = 'The JSON is malformed, or has a key __proto__ or constructor.prototype.';
        throw new GatewayError('SG_ERR_INVALID_JSON', { detail, cause });
    }
}
//# sourceMappingURL=json-depth.js.map