import { isPolicy } from '../sessions/life/refusals.js';
/** What a request says, or what its agent does not have: another attempt would meet it again. */
const OF_THE_REQUEST = new Set([
    'SG_ERR_VALIDATION',
    'SG_ERR_UNSUPPORTED',
    'SG_ERR_PROFILE_REQUIRED',
    'SG_ERR_PROFILE_INVALID',
]);
/** @param code of a refusal, or what an engine gave for one */
export const isFinalRefusal = (code) => code !== undefined && (isPolicy(code) || OF_THE_REQUEST.has(code));
//# sourceMappingURL=refusals.js.map