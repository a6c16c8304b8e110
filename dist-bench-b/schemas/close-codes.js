/*
 * Plain data without any import: the client library carries it into browsers.
 */
/** One row per reason. What no row names, such as 1006 of a connection that was cut, means `back`. */
export const CLOSE = {
    sessionEnded: { code: 1000, reason: 'session_ended', means: 'over', isOurs: true },
    goingAway: { code: 1001, reason: 'server_shutdown', means: 'back' },
    badFrame: { code: 1002, reason: 'protocol_error', means: 'back' },
    badText: { code: 1007, reason: 'invalid_utf8', means: 'back' },
    originRefused: {
        code: 1008,
        reason: 'origin_refused',
        means: { status: 403, code: 'SG_ERR_ORIGIN_REFUSED', detail: 'This origin may not connect.' },
        isOurs: true,
    },
    tooLarge: { code: 1009, reason: 'frame_too_large', means: 'back' },
    internal: { code: 1011, reason: 'internal_error', means: 'back' },
    sessionMoved: { code: 1012, reason: 'session_moved', means: 'back', isOurs: true },
    tooSlow: { code: 1013, reason: 'too_slow', means: 'back', isOurs: true },
    tooMany: { code: 1013, reason: 'too_many_sockets', means: 'back', isOurs: true },
    unauthenticated: {
        code: 4401,
        reason: 'credentials_no_longer_valid',
        means: { status: 401, code: 'SG_ERR_UNAUTHENTICATED', detail: 'The credentials are no longer valid.' },
        isOurs: true,
    },
    sessionRemoved: {
        code: 4404,
        reason: 'session_removed',
        means: { status: 404, code: 'SG_ERR_SESSION_NOT_FOUND', detail: 'The session was removed.' },
        isOurs: true,
    },
};
/** The row of a close code. */
export const closeRow = (code) => Object.values(CLOSE).find((row) => row.code === code);
//# sourceMappingURL=close-codes.js.map