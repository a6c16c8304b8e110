import { defaultsOf, GatewayConfig } from '../schemas/config.js';
import { clusterSection } from '../schemas/config-cluster.js';
import { consoleSettings } from '../schemas/config-console.js';
import { resolveClusterOptions } from './cluster/options.js';
import { assertDeferredToolNames } from './engines/deferred-tools.js';
import { optionError, toError } from './errors.js';
import { consoleNotices, silentLogger } from './lib/logger.js';
import { resolveRoots } from './lib/paths-within-roots.js';
import { unknownName } from './lib/unknown-name.js';
import { OPTION_CHECKS, SHAPES } from './options-shape.js';
import { DEFAULT_EVENT_LOG_LIMITS } from './sessions/log/event-log.js';
/** Fails to compile when an option, or a key of the file, has no row. */
SHAPES;
const DEFAULTS = defaultsOf(GatewayConfig);
const delays = defaultsOf(GatewayConfig.properties.parking);
/**
 * Checks every option and fills in the defaults.
 * @throws SG_ERR_OPTION naming the option and what is wrong with it
 */
export function resolveOptions(options) {
    assertKnown(options);
    assertShapes(options);
    if (!options.authenticate && options.allowUnauthenticated !== true)
        throw optionError('authenticate', 'is required; or set allowUnauthenticated: true, for local development only.');
    const logger = options.logger ?? silentLogger;
    assertDeferredToolNames(options.executions?.tools ?? [], 'executions.tools');
    return {
        ...options,
        basePath: resolveBasePath(options.basePath),
        maxBodyBytes: options.maxBodyBytes ?? DEFAULTS.maxBodyBytes,
        disableBypassPermissions: options.disableBypassPermissions ?? DEFAULTS.disableBypassPermissions,
        requireApiKey: options.requireApiKey ?? DEFAULTS.requireApiKey,
        maxSessions: options.maxSessions ?? DEFAULTS.maxSessions,
        maxSocketsPerSession: options.maxSocketsPerSession ?? DEFAULTS.maxSocketsPerSession,
        eventLog: { ...DEFAULT_EVENT_LOG_LIMITS, ...options.eventLog },
        shutdownTimeoutMs: options.shutdownTimeoutMs ?? DEFAULTS.shutdownTimeoutMs,
        docs: options.docs ?? DEFAULTS.docs,
        console: consoleOption(options.console),
        cluster: options.cluster && resolveClusterOptions(options.cluster, defaultsOf(clusterSection), options.storage),
        logger,
        notices: options.logger ?? consoleNotices,
        parking: {
            store: options.parking?.store,
            parkDelayMs: options.parking?.parkDelayMs ?? delays.parkDelayMs,
            expiredGraceMs: options.parking?.expiredGraceMs ?? delays.expiredGraceMs,
            onError: options.parking?.onError,
        },
        cwdRoots: options.allowedCwdRoots && rootsOption('allowedCwdRoots', options.allowedCwdRoots),
    };
}
function assertShapes(options) {
    for (const [name, shape] of OPTION_CHECKS) {
        const value = options[name];
        if (value === undefined)
            continue;
        const [first] = shape.errors(value, name);
        if (first)
            throw optionError(first.path, first.message);
    }
}
/** One that is misspelt would be one that has no effect, a limit perhaps. */
function assertKnown(options) {
    for (const [name, value] of Object.entries(options))
        if (value !== undefined && !OPTION_CHECKS.has(name))
            throw optionError(name, `${unknownName('option', name, [...OPTION_CHECKS.keys()])}.`.replace('?.', '?'));
}
function consoleOption(given) {
    if (!given)
        return undefined;
    return { ...defaultsOf(consoleSettings), ...(given === true ? {} : given) };
}
function resolveBasePath(basePath = DEFAULTS.basePath) {
    const trimmed = basePath.replace(/\/+$/, '');
    if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(trimmed))
        throw optionError('basePath', `${JSON.stringify(basePath)} must look like /v1 or /agents/v1.`);
    return trimmed;
}
function rootsOption(name, roots) {
    try {
        return resolveRoots(roots);
    }
    catch (error) {
        throw optionError(name, `${toError(error).message}.`);
    }
}
//# sourceMappingURL=options.js.map