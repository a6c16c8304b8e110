/** A character that is escaped, as `\u001f`; no other takes more, as UTF-8. */
const ESCAPED = 6;
const QUOTES = 2;
/** `-1.7976931348623157e+308,`; the longest of what is neither text nor has members. */
const LONGEST_NUMBER = 25;
/** Bytes that a value takes at most as JSON, without making it: what has no `toJSON`. Far above the truth for long texts. */
export function jsonBytesAtMost(value) {
    if (typeof value === 'string')
        return QUOTES + ESCAPED * value.length;
    if (typeof value !== 'object' || value === null)
        return LONGEST_NUMBER;
    // brackets, and for each member a comma, and a colon
    let bytes = 2;
    if (Array.isArray(value))
        for (const item of value)
            bytes += 1 + jsonBytesAtMost(item);
    else
        for (const name in value)
            bytes += 2 + jsonBytesAtMost(name) + jsonBytesAtMost(value[name]);
    return bytes;
}
//# sourceMappingURL=json-bytes.js.map