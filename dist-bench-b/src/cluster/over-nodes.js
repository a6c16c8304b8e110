import { unavailable } from '../lib/patience.js';
import { answerableOverNodes } from '../notifications/answers/sessions-over-nodes.js';
import { Exchange } from './exchange.js';
import { keepInStep } from './in-step.js';
/** @param here the requests of this node's sessions */
export function overNodes(cluster, storage, { here, ...parts }) {
    const node = () => cluster.self.n;
    const exchange = new Exchange({ ...parts, peers: cluster, n: node });
    const sessions = answerableOverNodes(here, async (question) => {
        const place = await cluster.where({ session: question.sessionId });
        if (place === 'here')
            return undefined;
        return exchange.askOne(place, '/answers', question).catch((cause) => {
            // it may be somebody else's by now
            cluster.forget({ session: question.sessionId });
            throw unavailable(cause);
        });
    });
    return {
        ...{ exchange, node, here, sessions },
        askInbox: (question) => exchange.askAll('/inbox', question),
        keepInStep: (what) => keepInStep({ ...parts, ...what, exchange, peers: cluster, storage }),
    };
}
//# sourceMappingURL=over-nodes.js.map