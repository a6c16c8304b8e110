import { GatewayError } from '../../errors.js';
/**
 * Has the agent do what a caller asked for.
 * @param reasonOf what to tell of its refusal
 * @throws GatewayError SG_ERR_ENGINE_REFUSED, or what the command itself refused with
 */
export async function control(command, reasonOf) {
    try {
        await command();
    }
    catch (error) {
        if (error instanceof GatewayError)
            throw error;
        throw new GatewayError('SG_ERR_ENGINE_REFUSED', { detail: reasonOf(error), cause: error });
    }
}
/** Resolves when the signal aborts, at once when it has. */
export const whenAborted = (signal) => new Promise((settle) => {
    if (signal.aborted)
        settle(undefined);
    else
        signal.addEventListener('abort', () => settle(undefined), { once: true });
});
//# sourceMappingURL=control.js.map