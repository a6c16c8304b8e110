import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { docsPage, PAGE_POLICY, PAGE_SCRIPT, PAGE_STYLE } from '../src/documents/page.js';
import { featuresOf } from './documents.js';
/** The renderer, as its package brings it for browsers. */
const RENDERER = join(dirname(createRequire(import.meta.url).resolve('@fastify/swagger-ui/package.json')), 'static');
const HEADERS = {
    'content-security-policy': PAGE_POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
};
/** `GET /docs`: the documents as a page, with all that it needs beside it. */
export const docsPages = async (scope, { gateway }) => {
    const config = { isPublic: gateway.options.docs === true };
    const serve = (path, type, body) => scope.get(path, { config }, async (_request, reply) => reply.headers(HEADERS).type(type).send(body()));
    const file = (name) => () => createReadStream(join(RENDERER, name));
    serve('/docs', 'text/html; charset=utf-8', () => docsPage(scope.prefix, featuresOf(gateway)));
    serve('/docs/page.js', 'text/javascript; charset=utf-8', () => PAGE_SCRIPT);
    serve('/docs/page.css', 'text/css; charset=utf-8', () => PAGE_STYLE);
    serve('/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8', file('swagger-ui-bundle.js'));
    serve('/docs/swagger-ui.css', 'text/css; charset=utf-8', file('swagger-ui.css'));
};
//# sourceMappingURL=docs-page.js.map