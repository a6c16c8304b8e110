import { PROTOCOL_VERSION } from '../../schemas/frames.js';
import { visible } from '../principal.js';
/**
 * The queue as a stream of frames: `queue_attached` first, then job events and, after those that change counts, the stats; each client
 * hears of what it may see. Nothing is replayed.
 */
export class QueueFeed {
    #queue;
    #clients = new Set();
    #refreshing = false;
    #relay;
    /** @param relay of other nodes, whose queue this one is too */
    constructor(queue, relay) {
        this.#queue = queue;
        this.#relay = relay;
        queue.on('job_event', ({ event }) => this.#onJobEvent(event));
        queue.on('draining', () => {
            for (const { sink } of this.#clients)
                sink.leave();
        });
        queue.on('budget_changed', () => this.#refresh(() => true));
    }
    attach(sink, principal) {
        const client = { sink, principal, stats: undefined, stale: true, asking: false };
        this.#clients.add(client);
        if (this.#clients.size === 1)
            this.#hearOthers();
        void this.#catchUp(client);
        return {
            detach: () => {
                if (this.#clients.delete(client) && this.#clients.size === 0)
                    this.#relay?.stop();
            },
            becomes: (principal) => {
                client.principal = principal;
            },
        };
    }
    #hearOthers() {
        this.#relay?.start({
            onEvent: (event) => {
                this.#queue.changedElsewhere();
                this.#onJobEvent(event);
            },
            onGap: () => {
                this.#queue.changedElsewhere();
                this.#refresh(() => true);
            },
        });
    }
    #onJobEvent(event) {
        if (this.#clients.size === 0)
            return;
        const sees = ({ principal }) => visible(principal, event.job.profile);
        let frame;
        for (const client of this.#clients) {
            // who is not told yet how things stand is told of this with it
            if (client.stats === undefined || !sees(client))
                continue;
            // serialised once, and only for somebody
            frame ??= text({ type: 'job_event', event });
            client.sink.send(frame);
        }
        if (event.type !== 'job_progress')
            this.#refresh(sees);
    }
    /** Sends the stats once for all that happens in one go. */
    #refresh(concerns) {
        for (const client of this.#clients)
            client.stale ||= concerns(client);
        if (this.#refreshing)
            return;
        this.#refreshing = true;
        setImmediate(() => {
            this.#refreshing = false;
            for (const client of this.#clients)
                void this.#catchUp(client);
        });
    }
    /** Sends the stats, in the first frame or when they are others than before. Never rejects. */
    async #catchUp(client) {
        if (client.asking)
            return;
        client.asking = true;
        while (client.stale && this.#clients.has(client)) {
            client.stale = false;
            const stats = await this.#queue.stats(client.principal).catch(() => undefined);
            if (stats)
                this.#sendStats(client, stats);
            else
                client.sink.leave();
        }
        client.asking = false;
    }
    #sendStats(client, stats) {
        const told = JSON.stringify(stats);
        if (told === client.stats || !this.#clients.has(client))
            return;
        const isFirst = client.stats === undefined;
        client.stats = told;
        client.sink.send(text(isFirst ? { type: 'queue_attached', protocolVersion: PROTOCOL_VERSION, stats } : { type: 'queue_stats', stats }));
    }
}
const text = (frame) => JSON.stringify(frame);
//# sourceMappingURL=queue-feed.js.map