import { assertDeferredToolNames } from '../deferred-tools.js';
/**
 * Runs `provider` profiles on the AI SDK.
 *
 * The runner it creates rejects with a `GatewayError`: `SG_ERR_ENGINE_START` when a variable is not set, a package is not installed or
 * an MCP server was not wired; `SG_ERR_UNSUPPORTED` for a model that the profile does not list; `SG_ERR_PERMISSION_MODE`.
 * @throws {GatewayError} `SG_ERR_OPTION` for deferred tools whose names are not usable
 */
export function providerEngine(options = {}) {
    assertDeferredToolNames(options.deferredTools ?? [], 'deferredTools');
    let create;
    return async (context) => {
        // The SDK costs time and 20 MB to load, which a gateway without provider sessions need not spend.
        create ??= import('./build.js').then((module) => module.runnerBuilder(options));
        return (await create)(context);
    };
}
/** The bundled `createEngineRunner`, with nothing wired by a host: no MCP servers, no search backend, public addresses only. */
export const createProviderRunner = providerEngine();
//# sourceMappingURL=engine.js.map