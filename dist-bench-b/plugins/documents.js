import fp from 'fastify-plugin';
import { asyncApi } from '../src/documents/asyncapi.js';
import { openApi } from '../src/documents/openapi.js';
/** The documents that describe this API, generated from the schemas that its routes check with. */
export const apiDocuments = fp(async (scope, { gateway }) => {
    const routes = collectRoutes(scope);
    const features = featuresOf(gateway);
    const isPublic = gateway.options.docs === true;
    const serve = (path, make) => {
        let document;
        scope.get(path, { config: { isPublic } }, async (_request, reply) => {
            document ??= JSON.stringify(make());
            return reply.type('application/json; charset=utf-8').send(document);
        });
    };
    const outside = scope.prefix.slice(0, scope.prefix.length - gateway.options.basePath.length);
    serve('/openapi.json', () => openApi(routes, { prefix: scope.prefix, outside }, features));
    serve('/asyncapi.json', () => asyncApi(scope.prefix, features));
});
export function featuresOf({ queue, options, notifications }) {
    const features = new Set();
    if (queue)
        features.add('queue');
    if (options.profileStore)
        features.add('profileStore');
    if (options.health)
        features.add('health');
    if (options.metrics)
        features.add('metrics');
    if (notifications.push)
        features.add('webPush');
    return features;
}
/** Every route that the scope gets from here on; a document of the host's own, which may read other schemas, leaves them out. */
function collectRoutes(scope) {
    const routes = [];
    scope.addHook('onRoute', (options) => {
        const { method, url, schema, config } = options;
        const path = url.slice(scope.prefix.length);
        const { idempotent } = config ?? {};
        if (typeof method === 'string')
            routes.push({ method, path, ...schema, ...(idempotent && { idempotent }) });
        options.schema = { ...schema, hide: true };
    });
    return routes;
}
//# sourceMappingURL=documents.js.map