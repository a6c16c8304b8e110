import { createHash } from 'node:crypto';
import { oneLine } from '../../lib/one-line.js';
export const requestIdOf = (message) => message.type === 'permission_resolved' ? message.requestId : message.request?.id;
/** Of its session, its own or another's. */
export const requestOf = (message) => message.type === 'permission_resolved' ? undefined : message.request;
/** Messages with the same tag replace each other: a request, its reminders and how it was settled; else each its own. */
export function tagOf(message) {
    const about = requestIdOf(message) ?? `${message.seq}`;
    return createHash('sha256')
        .update(JSON.stringify([message.sessionId, about]))
        .digest('base64url')
        .slice(0, 32);
}
const HEADLINES = {
    permission_requested: 'Needs an answer',
    permission_resolved: 'Answered',
    turn_completed: 'Turn finished',
    session_error: 'Failed',
    session_closed: 'Ended',
};
/** One line that says which session it is about, and what happened. */
export function headlineOf(message) {
    const isReminder = message.type !== 'permission_resolved' && message.reminder !== undefined;
    return oneLine(`${isReminder ? 'Still waiting' : HEADLINES[message.type]}: ${message.session.title}`);
}
/** Cuts at a whole character, so that the UTF-8 of what stays takes at most `maxBytes`. */
export function cutToBytes(text, maxBytes) {
    const bytes = Buffer.from(text);
    if (bytes.length <= maxBytes)
        return text;
    // of a character that was cut into, the decoder leaves the mark of replacement
    return `${bytes
        .subarray(0, maxBytes - 3)
        .toString()
        .replace(/\uFFFD+$/, '')}…`;
}
//# sourceMappingURL=message.js.map