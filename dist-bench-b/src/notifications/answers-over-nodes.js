import { GatewayError } from '../errors.js';
/** Of the request as it came, and not of the part of it that goes on. */
const OF_THE_WHOLE = new Set([
    'content-length',
    'content-encoding',
    'transfer-encoding',
    'idempotency-key',
]);
/**
 * Gives each answer where its session is: those of one node together, as the caller would have.
 * @param here gives those of this node
 * @returns what became of each, in their order; never rejects
 */
export async function answerOverNodes(answers, here, cluster, sent) {
    const places = new Map();
    const groups = new Map();
    for (const { sessionId } of answers)
        if (!places.has(sessionId))
            places.set(sessionId, cluster.where({ session: sessionId }).catch(() => 'here'));
    for (const [index, { sessionId }] of answers.entries()) {
        const node = await places.get(sessionId);
        const key = node === 'here' ? node : node.n;
        const group = groups.get(key) ?? { node, indexes: [] };
        group.indexes.push(index);
        groups.set(key, group);
    }
    const results = [];
    const give = async ({ node, indexes }) => {
        const some = indexes.map((index) => answers[index]);
        const given = node === 'here' ? await here(some) : await sendTo(node, some, cluster, sent);
        for (const [at, index] of indexes.entries())
            results[index] = given[at];
    };
    await Promise.all([...groups.values()].map(give));
    return results;
}
async function sendTo(node, answers, cluster, { path, headers }) {
    const kept = Object.entries(headers).filter(([name]) => !OF_THE_WHOLE.has(name));
    try {
        const response = await cluster.ask(node, {
            ...{ method: 'POST', path, headers: Object.fromEntries(kept), body: JSON.stringify({ answers }) },
        });
        if (!response.ok)
            throw new Error(`it answered ${response.status}`);
        return (await response.json()).results;
    }
    catch {
        const { code, message: detail } = new GatewayError('SG_ERR_STORE_UNAVAILABLE');
        return answers.map(({ sessionId, requestId }) => ({ sessionId, requestId, resolved: false, code, detail }));
    }
}
//# sourceMappingURL=answers-over-nodes.js.map