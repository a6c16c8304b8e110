import { GatewayError } from '../errors.js';
/** For what comes of closing a session that may be gone already. @throws the error, if it says anything else */
export function unlessGone(error) {
    if (!(error instanceof GatewayError) || error.code !== 'SG_ERR_SESSION_NOT_FOUND')
        throw error;
}
//# sourceMappingURL=sessions.js.map