import { GatewayError, toError } from '../../../errors.js';
export const CLAUDE_SDK = '@anthropic-ai/claude-agent-sdk';
/**
 * Loads the SDK, which is an optional peer: it is proprietary and brings a binary of 377 MB.
 * @param specifier the package, or the URL of its entry where it is installed elsewhere
 * @throws GatewayError that says how to install it
 */
export async function loadClaudeSdk(specifier) {
    try {
        return (await import(specifier));
    }
    catch (error) {
        // Loaders that hosts put in between leave the code out.
        const missing = /^Cannot find (package|module)/.test(toError(error).message);
        throw new GatewayError('SG_ERR_ENGINE_START', {
            detail: missing
                ? `The claude agent needs its SDK, which is not installed: npm i ${CLAUDE_SDK}`
                : `The Claude Agent SDK could not be loaded: ${toError(error).message}`,
            cause: error,
        });
    }
}
//# sourceMappingURL=sdk.js.map