import { toError } from '../errors.js';
import { PlannedOnce } from '../notifications/planned.js';
import { operatorTarget } from '../webhooks/target.js';
/** Nobody else would do the work, so it is tried for some minutes. */
const ATTEMPTS = 10;
const RETRY_DELAY_MS = 500;
/** Tells whoever does the work of deferred tools: the host by its hook, others by a webhook. */
export class ExecutionDispatcher {
    #options;
    /** By the tool's name. */
    #targets;
    /** @throws SG_ERR_OPTION for a `dispatch` that cannot be a target */
    constructor(options) {
        const { tools, guard } = options;
        this.#options = options;
        this.#targets = new Map(tools.flatMap(({ name, dispatch }, index) => {
            if (!dispatch)
                return [];
            const option = `executions.tools.${index}.dispatch`;
            const how = { option, attempts: ATTEMPTS, retryDelayMs: RETRY_DELAY_MS, guard };
            return [[name, operatorTarget(dispatch, how)]];
        }));
    }
    targets() {
        return this.#targets.values();
    }
    /** Where calls of a tool go now. */
    targetOf(toolName) {
        return this.#targets.get(toolName);
    }
    /**
     * What is told of a deferred execution, kept by the write that tells of that in its session. Never throws: whatever becomes of it, the
     * execution waits for its result or its deadline.
     */
    plan(sessionId, { executionId, toolName, input, expiresAt }) {
        const { basePath, deliverer } = this.#options;
        const told = {
            ...{ executionId, sessionId, toolName, input },
            ...(expiresAt !== undefined && { expiresAt }),
            resultPath: `${basePath}/executions/${encodeURIComponent(executionId)}/result`,
        };
        const target = this.targetOf(toolName);
        const delivery = target &&
            deliverer.plan(`${sessionId} ${toolName}`, {
                ...{ id: executionId, type: 'execution_dispatched', payload: told, target },
                origin: { kind: 'dispatch', tool: toolName },
                importance: 'last',
            });
        return new PlannedOnce(delivery ? [delivery] : [], () => void this.#tellHost(told));
    }
    async #tellHost(told) {
        const { onDispatch, logger } = this.#options;
        try {
            await onDispatch?.(told);
        }
        catch (error) {
            logger.error({ err: toError(error), executionId: told.executionId }, 'executions.onDispatch failed');
        }
    }
}
//# sourceMappingURL=dispatch.js.map