import { newId } from '../../lib/new-id.js';
/** A result, an answer and the removal can come twice; everything else is as often as it was asked for. */
export function newsOf(asked) {
    switch (asked.type) {
        case 'result':
            return { ...asked, key: `result ${asked.executionId}` };
        case 'answer':
            return { ...asked, key: `answer ${asked.requestId}` };
        case 'removal':
            return { ...asked, key: 'removal' };
        default:
            return { ...asked, key: `${asked.type} ${newId()}` };
    }
}
/** Whether it is for the engine that goes on with a turn: it waits for one. */
export const isForEngine = ({ type }) => type === 'result' || type === 'answer' || type === 'interrupt';
//# sourceMappingURL=news.js.map