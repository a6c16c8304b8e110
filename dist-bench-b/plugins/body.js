import { GatewayError } from '../src/errors.js';
import { parseJson } from '../src/lib/json-depth.js';
const NOT_ENCODED = 'Send the body as it is, without a Content-Encoding.';
/** JSON is the one content type of request bodies: bounded in size and depth, and a DELETE may announce one and send none. */
export function parseJsonBodies(scope, maxBodyBytes) {
    scope.removeAllContentTypeParsers();
    scope.addHook('preParsing', (request, _reply, _payload, done) => {
        const { 'content-encoding': encoding } = request.headers;
        const isEncoded = encoding !== undefined && !/^(?:identity)?$/i.test(encoding.trim()) && hasBody(request);
        done(isEncoded ? new GatewayError('SG_ERR_UNSUPPORTED_MEDIA_TYPE', { detail: NOT_ENCODED }) : null);
    });
    scope.addContentTypeParser('application/json', { parseAs: 'string', bodyLimit: maxBodyBytes }, (request, text, done) => {
        if (text === '' && request.method === 'DELETE') {
            done(null, undefined);
            return;
        }
        try {
            if (text === '')
                throw new GatewayError('SG_ERR_INVALID_JSON', { detail: 'The body is empty.' });
            done(null, parseJson(text));
        }
        catch (error) {
            done(error, undefined);
        }
    });
}
const hasBody = ({ headers }) => headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
//# sourceMappingURL=body.js.map