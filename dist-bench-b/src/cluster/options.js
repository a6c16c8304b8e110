import { createSecureContext } from 'node:tls';
import { optionError, toError } from '../errors.js';
/** @throws SG_ERR_OPTION naming what cannot be a node */
export function resolveClusterOptions({ secret, ...options }, defaults, storage) {
    if (!storage?.cluster)
        throw optionError('cluster', 'needs a storage that several nodes share: createPostgresStorage, given as storage.');
    const { protocol, pathname, search, hash, username, password } = urlOf(options.url);
    if (protocol !== 'http:' && protocol !== 'https:')
        throw optionError('cluster.url', 'must be an http or https address, as http://10.0.0.5:8788.');
    if (pathname !== '/' || search || hash || username || password)
        throw optionError('cluster.url', 'must be scheme, host and port alone, as http://10.0.0.5:8788.');
    if (options.tls)
        assertTls(options.tls, protocol);
    return { ...defaults, ...options, url: new URL(options.url).origin, secrets: [secret].flat() };
}
function assertTls(tls, protocol) {
    if (protocol !== 'https:')
        throw optionError('cluster.url', 'must be an https address where cluster.tls is given, as https://10.0.0.5:8788.');
    try {
        createSecureContext(tls);
    }
    catch (error) {
        throw optionError('cluster.tls', `cert, key and ca must be PEM that belongs together: ${toError(error).message}.`);
    }
}
const urlOf = (url) => URL.canParse(url) ? new URL(url) : { protocol: '', pathname: '/', search: '', hash: '', username: '', password: '' };
//# sourceMappingURL=options.js.map