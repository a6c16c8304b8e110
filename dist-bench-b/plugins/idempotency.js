import { GatewayError, invalidField, toError } from '../src/errors.js';
import { earlierFingerprintOf, fingerprintOf, scopedKey } from '../src/idempotency/scope.js';
import { PATIENCE_MS, Patience, patiently } from '../src/lib/patience.js';
import { within } from '../src/lib/within.js';
const KEY = /^[!-~](?:[ -~]{0,253}[!-~])?$/;
/** Headers of an answer that are part of it. */
const KEPT_HEADERS = ['content-type', 'location'];
/** Carries out a request with an `Idempotency-Key` once and repeats its answer; one that was refused may be tried again. */
export function replayIdempotent(scope, { idempotency, clock }) {
    scope.decorateRequest('takenKey', undefined);
    /** Takes a key; one that is taken only after its request was refused is free again. */
    const begin = (key, fingerprint, patience) => patiently(clock, async (isRefused) => {
        const known = await idempotency.begin(key, fingerprint);
        if (known.state === 'new' && isRefused())
            await idempotency.release(key);
        return known;
    }, { patience });
    /** Takes the key, or answers with what was answered before; true then. */
    async function replay(given, request, reply) {
        if (typeof given !== 'string' || !KEY.test(given))
            throw invalidField('Idempotency-Key', 'must be 1 to 255 characters of visible ASCII.');
        const path = request.url.split('?', 1)[0];
        const key = scopedKey(request.principal, request.method, path, given);
        let fingerprint = fingerprintOf(request.body);
        const patience = new Patience(clock);
        let known = await begin(key, fingerprint, patience);
        if (known.state === 'mismatch') {
            // it may have been kept by a release before the order of members said nothing
            fingerprint = earlierFingerprintOf(request.body);
            known = await begin(key, fingerprint, patience);
        }
        switch (known.state) {
            case 'new':
                request.takenKey = {
                    ...{ key, fingerprint, path: path.replace(/\/+$/, '') },
                    ...{ waitedMs: PATIENCE_MS - patience.leftMs, patience },
                };
                return false;
            case 'in_flight':
                throw new GatewayError('SG_ERR_IDEMPOTENCY_IN_FLIGHT', { retryAfterS: 1 });
            case 'mismatch':
                throw new GatewayError('SG_ERR_IDEMPOTENCY_MISMATCH');
            case 'answered': {
                const { status, headers, body } = known.answer;
                reply.code(status).headers(headers).header('idempotent-replayed', 'true').send(Buffer.from(body));
                return true;
            }
        }
    }
    async function remember({ key, patience: { leftMs } }, request, reply, payload) {
        try {
            if (reply.statusCode < 300 && typeof payload === 'string') {
                const kept = KEPT_HEADERS.flatMap((name) => reply.hasHeader(name) ? [[name, String(reply.getHeader(name))]] : []);
                const headers = Object.fromEntries(kept);
                const answer = { status: reply.statusCode, headers, body: payload };
                await within(leftMs, idempotency.complete(key, answer), { clock });
            }
            else if (reply.statusCode !== 503)
                await within(leftMs, idempotency.release(key), { clock });
            // whoever was refused for the storage's sake has waited for it
            else
                idempotency.release(key).catch(() => { });
        }
        catch (error) {
            // what was asked for is done, and kept together with its key
            request.log.error({ err: toError(error) }, 'the answer to an Idempotency-Key could not be remembered');
        }
    }
    // not async: most requests bring no key, and pass here
    const preHandler = (request, reply, done) => {
        const given = request.headers['idempotency-key'];
        if (given === undefined)
            done();
        else
            replay(given, request, reply).then((isAnswered) => isAnswered || done(), done);
    };
    const onSend = (request, reply, payload, done) => {
        const { takenKey } = request;
        request.takenKey = undefined;
        if (takenKey === undefined)
            done(null, payload);
        else
            remember(takenKey, request, reply, payload).then(() => done(null, payload));
    };
    scope.addHook('onRoute', (route) => {
        if (!route.config?.idempotent)
            return;
        route.preHandler = [preHandler, route.preHandler ?? []].flat();
        route.onSend = [onSend, route.onSend ?? []].flat();
    });
}
//# sourceMappingURL=idempotency.js.map