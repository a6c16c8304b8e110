/** Whether a notification is one of those that are asked for. */
export const isIn = ({ after, until, since, types, profiles }, { number, ts, type, profile }) => number > after &&
    number <= until &&
    ts >= since &&
    (types?.includes(type) ?? true) &&
    (profiles?.includes(profile) ?? true);
/** The first of them, or the last, as many as fit. */
export function pageOf(found, { limit, maxBytes, newest }) {
    const page = [];
    let bytes = 0;
    for (const notification of newest ? found.toReversed() : found) {
        bytes += Buffer.byteLength(notification.json);
        if (page.length === limit || (page.length > 0 && bytes > maxBytes))
            break;
        page.push(notification);
    }
    return newest ? page.reverse() : page;
}
//# sourceMappingURL=range.js.map