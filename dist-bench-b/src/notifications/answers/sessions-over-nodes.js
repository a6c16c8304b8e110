import { GatewayError } from '../../errors.js';
/** The sessions of all nodes, for whoever holds a link or is reminded. */
export function answerableOverNodes(here, askOwner) {
    const asked = async (question) => {
        const reply = await askOwner(question);
        if (!reply)
            return (await given(here, question));
        if ('refused' in reply)
            throw new GatewayError(reply.refused.code, { detail: reply.refused.detail });
        return reply.given;
    };
    return {
        waiting: (sessionId, requestId) => asked({ ask: 'waiting', sessionId, requestId }),
        resolve: (sessionId, requestId, answer) => asked({ ask: 'resolve', sessionId, requestId, answer }),
        resolution: (sessionId, requestId, seq) => asked({ ask: 'resolution', sessionId, requestId, seq }),
    };
}
/** Answers another node. @throws what is no refusal */
export async function replyTo(here, question) {
    try {
        return { given: await given(here, question) };
    }
    catch (error) {
        if (!(error instanceof GatewayError))
            throw error;
        return { refused: { code: error.code, detail: error.message } };
    }
}
function given(here, question) {
    const { sessionId, requestId } = question;
    switch (question.ask) {
        case 'waiting':
            return here.waiting(sessionId, requestId);
        case 'resolve':
            return here.resolve(sessionId, requestId, question.answer);
        case 'resolution':
            return here.resolution(sessionId, requestId, question.seq);
    }
}
//# sourceMappingURL=sessions-over-nodes.js.map