import { problemIn } from './errors.js';
/**
 * A node whose lease may have run out answers nothing: others may have taken over. What was asked of it before and is only read is not
 * answered either; what was kept is.
 */
export function refuseWhileStanding(scope, { standing }) {
    if (!standing)
        return;
    scope.addHook('onRequest', (_request, _reply, done) => done(standing.stands ? standing.refusal : undefined));
    scope.addHook('onSend', (request, reply, payload, done) => {
        const isRead = request.method === 'GET' || request.method === 'HEAD';
        // what went wrong meanwhile may have gone wrong because of it
        const isKnown = reply.statusCode === 503 || (reply.statusCode < 400 && !isRead);
        if (!standing.stands || isKnown)
            return done(null, payload);
        if (reply.statusCode < 400)
            return done(standing.refusal);
        // Fastify would answer a second error in words of its own
        for (const name of ['content-length', 'www-authenticate', 'allow'])
            reply.removeHeader(name);
        done(null, problemIn(standing.refusal, request, reply));
    });
}
//# sourceMappingURL=standing.js.map