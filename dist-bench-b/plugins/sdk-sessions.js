import { Type } from '@sinclair/typebox';
import { DeleteSdkSessionQuery, ListSdkSessionsQuery, SdkSession, SdkSessionParams } from '../schemas/sdk-sessions.js';
/** The sessions that agents keep on disk and that a create can resume. */
export const sdkSessionRoutes = async (scope, { gateway }) => {
    scope.get('/sdk-sessions', { schema: { querystring: ListSdkSessionsQuery, response: { 200: Type.Array(SdkSession) } } }, async ({ query, principal }) => gateway.cliProfiles.listSdkSessions(query, principal));
    scope.delete('/sdk-sessions/:sessionId', {
        config: { owner: 'any' },
        schema: { params: SdkSessionParams, querystring: DeleteSdkSessionQuery, response: { 204: Type.Null() } },
    }, async ({ params, query, principal }, reply) => {
        await gateway.cliProfiles.deleteSdkSession(params.sessionId, query, principal);
        return reply.code(204).send(null);
    });
};
//# sourceMappingURL=sdk-sessions.js.map