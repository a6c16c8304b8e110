import { GatewayError } from './errors.js';
/** Nobody in particular and no limit: the host itself, and every caller of an unauthenticated gateway. */
export const UNLIMITED = { allowedProfiles: undefined, canManageProfiles: false };
/** Who was not asked for credentials: sees and may do nothing that is somebody's. */
export const NOBODY = { allowedProfiles: new Set(), canManageProfiles: false };
/**
 * Makes a Principal of what `authenticate` returned; `undefined` means refused.
 * @throws SG_ERR_AUTHENTICATE_FAILED when `allowedProfiles` is present but no array of strings: a limit that cannot be read must not
 * be read as none
 */
export function normalizePrincipal(claims) {
    if (!claims)
        return undefined;
    if (typeof claims !== 'object' && typeof claims !== 'function')
        return { ...UNLIMITED, claims };
    const { allowedProfiles, canManageProfiles } = claims;
    if (allowedProfiles !== undefined && !isStringArray(allowedProfiles))
        throw new GatewayError('SG_ERR_AUTHENTICATE_FAILED', {
            detail: 'authenticate returned allowedProfiles that is no array of strings, so nobody was let in.',
        });
    return {
        allowedProfiles: allowedProfiles && new Set(allowedProfiles),
        canManageProfiles: canManageProfiles === true,
        claims,
    };
}
/** Longer names are cut: they stand in every event of an answer. */
const MAX_NAME = 200;
/** What the caller is called in events and in the log, when `authenticate` gave it a `name`. */
export function nameOf(principal) {
    const name = principal?.claims?.name;
    return typeof name === 'string' && name !== '' ? name.slice(0, MAX_NAME) : undefined;
}
/** Who answers, by a way that callers have. */
export function answeredBy(principal, channel) {
    const name = nameOf(principal);
    return { ...(name !== undefined && { principal: name }), channel };
}
const isStringArray = (value) => Array.isArray(value) && value.every((item) => typeof item === 'string');
/** The one visibility rule: every route, socket, stream and count asks here. A limit that cannot be read allows nothing. */
export function visible({ allowedProfiles }, profile) {
    if (allowedProfiles === undefined)
        return true;
    if (allowedProfiles instanceof Set)
        return allowedProfiles.has(profile);
    return Array.isArray(allowedProfiles) && allowedProfiles.includes(profile);
}
/** The profiles that a caller may see; undefined: all. */
export function visibleProfiles({ allowedProfiles }) {
    if (allowedProfiles === undefined)
        return undefined;
    return allowedProfiles instanceof Set || Array.isArray(allowedProfiles) ? [...allowedProfiles] : [];
}
//# sourceMappingURL=principal.js.map