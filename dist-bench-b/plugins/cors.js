import cors, {} from '@fastify/cors';
/** What a page may read of an answer beyond its body and type. */
const EXPOSED = [
    'Link',
    'Location',
    'Retry-After',
    'Idempotent-Replayed',
    'WWW-Authenticate',
    'Allow',
    'Content-Disposition',
];
const PREFLIGHT_S = 600;
const OFF = { origin: false };
/**
 * Lets pages of other origins use the API: exactly those that are listed. Their preflights, which carry no credentials, are answered here;
 * everything else goes on to be authenticated.
 */
export function allowOrigins(scope, { options }) {
    const origins = new Set(options.cors?.origins);
    if (origins.size === 0)
        return;
    const allowed = (origin, preflight) => ({
        origin,
        preflight,
        credentials: true,
        methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
        exposedHeaders: EXPOSED,
        maxAge: PREFLIGHT_S,
    });
    const delegator = ({ headers }, done) => {
        const { origin } = headers;
        const isPreflight = headers['access-control-request-method'] !== undefined;
        done(null, origin !== undefined && origins.has(origin) ? allowed(origin, isPreflight) : OFF);
    };
    // its route for every path below the prefix would also be one for paths of the host that begin alike; every path of ours has one
    const withoutRoute = Object.assign(Object.create(scope), { options: () => scope });
    cors(withoutRoute, { delegator }, (error) => {
        if (error)
            throw error;
    });
}
/** What was set for the answer, for one that is written past Fastify. */
export const corsHeaders = (reply) => reply.getHeaders();
//# sourceMappingURL=cors.js.map