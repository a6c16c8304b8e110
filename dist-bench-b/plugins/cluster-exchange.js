import { EXCHANGE_PATH } from '../src/cluster/exchange.js';
import { replyTo } from '../src/notifications/answers/sessions-over-nodes.js';
import { answerNode } from '../src/notifications/inbox-over-nodes.js';
/** What other nodes tell and ask in their own name; what they say was written by this program. */
export const clusterExchange = async (scope, { nodes: { exchange, here }, inbox }) => {
    const config = { forNodes: true, owner: 'any' };
    scope.post(`${EXCHANGE_PATH}/changes`, { config }, async ({ body }) => {
        await exchange.told(body);
        return {};
    });
    scope.post(`${EXCHANGE_PATH}/inbox`, { config }, async ({ body }) => answerNode(inbox, body));
    scope.post(`${EXCHANGE_PATH}/answers`, { config }, async ({ body }) => replyTo(here, body));
};
//# sourceMappingURL=cluster-exchange.js.map