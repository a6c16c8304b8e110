import { ExecutionParams, SubmitExecutionResultRequest, SubmitExecutionResultResponse } from '../schemas/executions.js';
import { GatewayError } from '../src/errors.js';
/** Where the results of deferred executions are delivered. */
export const executionRoutes = async (scope, { gateway }) => {
    const { executions, registry } = gateway;
    scope.post('/executions/:executionId/result', {
        config: { owner: 'execution' },
        schema: {
            params: ExecutionParams,
            body: SubmitExecutionResultRequest,
            response: { 200: SubmitExecutionResultResponse },
        },
    }, async ({ params: { executionId }, principal, body }) => {
        const sessionId = await executions.sessionOf(executionId);
        if (sessionId === undefined || !(await registry.isVisible(sessionId, principal)))
            throw new GatewayError('SG_ERR_EXECUTION_NOT_FOUND');
        return executions.submit(executionId, body);
    });
};
//# sourceMappingURL=executions.js.map