import webPush from 'web-push';
import { cutToBytes, headlineOf, requestIdOf, tagOf, } from './message.js';
/** How long a push service keeps it for a browser that is away. */
const KEPT_S = 24 * 60 * 60;
/** What one message may take: push services refuse more than 4096 bytes, of which the encryption takes a hundred. */
const MAX_TEXT_BYTES = 1_000;
/** Encrypted for one browser (RFC 8291); messages with the same tag replace each other, at the push service and on the screen. */
export function renderWebPush(message, { id, now, answerUrl }, { to, from }) {
    const requestId = requestIdOf(message);
    const expiresAt = message.type === 'permission_requested' ? message.request?.expiresAt : undefined;
    const keptS = expiresAt === undefined ? KEPT_S : Math.min(KEPT_S, Math.max(0, Math.ceil((expiresAt - now) / 1000)));
    const told = {
        ...{ id, type: message.type, sessionId: message.sessionId, seq: message.seq, ts: message.ts },
        title: cutToBytes(headlineOf(message), MAX_TEXT_BYTES),
        body: cutToBytes(message.preview, MAX_TEXT_BYTES),
        tag: tagOf(message),
        profile: cutToBytes(message.session.profile, MAX_TEXT_BYTES),
        ...(requestId !== undefined && { requestId }),
        ...(answerUrl !== undefined && { url: answerUrl }),
    };
    const { headers, body } = webPush.generateRequestDetails(to, JSON.stringify(told), {
        vapidDetails: from,
        TTL: keptS,
        urgency: message.type === 'permission_requested' ? 'high' : 'normal',
        topic: told.tag,
        contentEncoding: 'aes128gcm',
    });
    const sent = Object.entries(headers)
        .map(([name, value]) => [name.toLowerCase(), String(value)])
        // of the body that the sender frames itself
        .filter(([name]) => name !== 'content-length');
    return { headers: Object.fromEntries(sent), body: body };
}
export const newVapidKeys = () => webPush.generateVAPIDKeys();
//# sourceMappingURL=web-push.js.map