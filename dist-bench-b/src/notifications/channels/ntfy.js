import { shown } from '../shown.js';
import { cutToBytes, headlineOf, requestOf, tagOf, } from './message.js';
/** ntfy makes an attachment of a longer one. */
const MAX_BODY_BYTES = 4_000;
const LOOKS = {
    permission_requested: { priority: '4', tags: 'raised_hand' },
    permission_resolved: { priority: '2', tags: 'heavy_check_mark' },
    turn_completed: { priority: '3', tags: 'white_check_mark' },
    session_error: { priority: '4', tags: 'rotating_light' },
    session_closed: { priority: '2', tags: 'stop_button' },
};
/** A message for a topic of ntfy: the text is the body, the rest headers. What has the same sequence id replaces what was shown (ntfy 2.16). */
export function renderNtfy(message, { answerUrl }) {
    const { priority, tags } = LOOKS[message.type];
    const request = requestOf(message);
    const input = request && Object.keys(request.input).length > 0
        ? `\n\n${shown(cutToBytes(JSON.stringify(request.input, null, 1), MAX_BODY_BYTES))}`
        : '';
    return {
        headers: {
            'content-type': 'text/plain; charset=utf-8',
            title: headerText(headlineOf(message)),
            priority,
            tags,
            'x-sequence-id': tagOf(message),
            ...(answerUrl && {
                click: answerUrl,
                actions: JSON.stringify([{ action: 'view', label: 'Look and answer', url: answerUrl, clear: true }]),
            }),
        },
        body: Buffer.from(cutToBytes(`${message.preview}\n${message.session.profile}${input}`, MAX_BODY_BYTES)),
    };
}
/** What is no ASCII is encoded as RFC 2047 has it, in words of at most 75 characters. */
function headerText(text) {
    if (/^[ -~]*$/.test(text))
        return text;
    const words = [];
    for (const character of text) {
        const last = words.at(-1);
        if (last !== undefined && Buffer.byteLength(last + character) <= 45)
            words[words.length - 1] = last + character;
        else
            words.push(character);
    }
    return words.map((word) => `=?UTF-8?B?${Buffer.from(word).toString('base64')}?=`).join(' ');
}
//# sourceMappingURL=ntfy.js.map