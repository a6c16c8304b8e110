import { ResolvePermissionRequest } from '../../schemas/permissions.js';
import { GatewayError, toError } from '../errors.js';
import { compileSchema } from '../lib/validation.js';
const checker = compileSchema(ResolvePermissionRequest);
/**
 * Gives each answer as the route of its request would: the answers to one session one after the other, those to others meanwhile.
 * @returns what became of each, in their order; never rejects
 */
export async function answerAll(answers, principal, { registry, logger }) {
    const one = async ({ sessionId, requestId, ...answer }) => {
        const whose = { sessionId, requestId };
        try {
            checker.assert(answer);
            await registry.resolvePermission(sessionId, requestId, answer, principal, { channel: 'inbox' });
            return { ...whose, resolved: true };
        }
        catch (error) {
            const refusal = error instanceof GatewayError ? error : new GatewayError('SG_ERR_INTERNAL', { cause: error });
            if (refusal.statusCode >= 500)
                logger.error({ err: toError(error), ...whose }, 'an answer could not be given');
            return { ...whose, resolved: false, code: refusal.code, detail: refusal.message };
        }
    };
    const turns = new Map();
    return Promise.all(answers.map((answer) => {
        const result = (turns.get(answer.sessionId) ?? Promise.resolve()).then(() => one(answer));
        turns.set(answer.sessionId, result);
        return result;
    }));
}
//# sourceMappingURL=bulk-answers.js.map