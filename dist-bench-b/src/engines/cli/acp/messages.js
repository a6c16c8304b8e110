import { randomUUID } from 'node:crypto';
/** The messages in progress, one per speaker. Text comes in pieces without an end; a message is complete when something else begins. */
export class MessagesInProgress {
    #building = new Map();
    #onComplete;
    constructor(onComplete) {
        this.#onComplete = onComplete;
    }
    /** @returns where in which message the piece stands */
    add(speaker, { type, text, messageId }) {
        const before = this.#building.get(speaker);
        if (before && isOther(before, type, messageId))
            this.end(speaker);
        const building = this.#building.get(speaker) ?? { uuid: randomUUID(), messageId, blocks: [] };
        this.#building.set(speaker, building);
        building.messageId = messageId ?? building.messageId;
        const { blocks } = building;
        const last = blocks.at(-1);
        if (type === 'thinking' && last?.type === 'thinking')
            last.thinking += text;
        else if (type === 'text' && last?.type === 'text')
            last.text += text;
        else
            blocks.push(type === 'thinking' ? { type, thinking: text } : { type, text });
        return { uuid: building.uuid, blockIndex: blocks.length - 1 };
    }
    /** Completes what a speaker says. */
    end(speaker) {
        const building = this.#building.get(speaker);
        this.#building.delete(speaker);
        if (building)
            this.#onComplete(speaker, building.blocks, building.uuid);
    }
    endAll() {
        for (const speaker of [...this.#building.keys()])
            this.end(speaker);
    }
}
/** A note of the agent's own, which is no message of the model's, has no id; thoughts may have none either. */
function isOther({ messageId: before, blocks }, type, messageId) {
    if (messageId === before)
        return false;
    return before !== undefined ? messageId !== undefined : type === 'text' && blocks.at(-1)?.type === 'text';
}
//# sourceMappingURL=messages.js.map