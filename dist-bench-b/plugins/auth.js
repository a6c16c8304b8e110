import { GatewayError } from '../src/errors.js';
import { within } from '../src/lib/within.js';
import { NOBODY, normalizePrincipal, UNLIMITED } from '../src/principal.js';
import { ownOrigins } from './origins.js';
import { signedIn } from './sign-in-cookie.js';
import { isUpgrade } from './upgrades.js';
const AUTHENTICATE_MS = 10_000;
export function createIdentify(gateway) {
    const { options, clock, signIns } = gateway;
    const { authenticate } = options;
    if (!authenticate)
        return () => UNLIMITED;
    const identify = async (request) => {
        const principal = normalizePrincipal(await ask(authenticate, request, clock));
        if (!principal)
            throw new GatewayError('SG_ERR_UNAUTHENTICATED');
        return principal;
    };
    return signIns ? signedIn(identify, signIns, ownOrigins(gateway)) : identify;
}
async function ask(authenticate, request, clock) {
    try {
        const answer = authenticate(request);
        if (!isPromise(answer))
            return answer;
        const onLate = () => {
            throw new Error('authenticate did not settle in 10 s');
        };
        return await within(AUTHENTICATE_MS, answer, { clock, onLate });
    }
    catch (error) {
        throw new GatewayError('SG_ERR_AUTHENTICATE_FAILED', { cause: error });
    }
}
const isPromise = (value) => typeof value?.then === 'function';
/** Whether somebody asks, and not a page by itself: it says so, and makes its connections anew whoever looks. */
const isUse = (request) => request.headers['x-unattended'] === undefined &&
    !isUpgrade(request) &&
    !request.headers.accept?.includes('text/event-stream');
/** Every route of the scope, upgrades and unknown paths included, is behind this hook. Async only where there is something to wait for. */
export function requireIdentity(scope, gateway, identify) {
    scope.decorateRequest('principal');
    scope.decorateRequest('signInId');
    scope.addHook('onRequest', (request, _reply, done) => {
        if (gateway.draining) {
            done(new GatewayError('SG_ERR_SHUTTING_DOWN', { retryAfterS: 5 }));
            return;
        }
        if (request.routeOptions.config?.isPublic) {
            request.principal = NOBODY;
            done();
            return;
        }
        if (request.routeOptions.config?.forNodes) {
            // a node in its own name, and nobody through one
            const isNode = request.hop !== undefined && request.hop.client === undefined;
            request.principal = isNode ? UNLIMITED : NOBODY;
            done(isNode ? undefined : new GatewayError('SG_ERR_NOT_FOUND'));
            return;
        }
        const enter = (principal) => {
            request.principal = principal;
            if (request.signInId !== undefined && isUse(request))
                gateway.signIns?.use(request.signInId);
            done();
        };
        const identified = identify(request);
        if (isPromise(identified))
            identified.then(enter, done);
        else
            enter(identified);
    });
}
//# sourceMappingURL=auth.js.map