import { CLOSE } from '../schemas/close-codes.js';
import { QueueFeed } from '../src/jobs/queue-feed.js';
import { QueueRelay, RELAY_PATH } from '../src/jobs/queue-relay.js';
import { StreamClient } from './streams.js';
import { EVENT_STREAM_HEADERS, eventStreamWire, socketWire } from './wires.js';
/** A client that leaves this much unread is cut off; it comes back and lists the jobs again. */
const MAX_UNREAD_BYTES = 1024 * 1024;
/** The queue as a one-way stream: a WebSocket, and the same frames as server-sent events. */
export const queueStream = async (scope, { queue, clock, cluster, ...parts }) => {
    const relay = cluster && new QueueRelay({ cluster, clock, path: `${scope.prefix}${RELAY_PATH}` });
    const feed = new QueueFeed(queue, relay);
    const open = (wire, request) => new QueueClient(wire, request, parts).follow(feed);
    // nothing is expected over it; whatever comes only shows that somebody is there
    scope.get('/queue/ws', { websocket: true, config: { socket: true } }, (socket, request) => open(socketWire(socket, request), request));
    scope.get('/queue/events', { schema: { response: {} } }, async (request, reply) => {
        if (request.method === 'HEAD')
            return reply.headers(EVENT_STREAM_HEADERS).send();
        open(eventStreamWire(request, reply, clock), request);
        return reply;
    });
};
/** One client of the queue. */
class QueueClient extends StreamClient {
    #place;
    #isGone = false;
    follow(feed) {
        this.#place = feed.attach(this, this.request.principal);
    }
    send(frame) {
        if (this.#isGone)
            return;
        this.tell([frame]);
        if (this.wire.unreadBytes > MAX_UNREAD_BYTES)
            this.cutOff(CLOSE.tooSlow);
    }
    leave() {
        this.close(CLOSE.goingAway);
    }
    admits(principal) {
        this.#place?.becomes(principal);
        return true;
    }
    cutOff(close) {
        this.#place?.detach();
        this.close(close);
    }
    onGone() {
        this.#isGone = true;
        this.#place?.detach();
    }
}
//# sourceMappingURL=queue-stream.js.map