import { FollowNotificationsQuery } from '../schemas/notifications.js';
import { invalidField } from '../src/errors.js';
import { filterOf } from '../src/notifications/feed.js';
import { FeedReader } from '../src/notifications/feed-reader.js';
import { StreamClient } from './streams.js';
import { EVENT_STREAM_HEADERS, eventStreamWire, MarkedFrame, socketWire } from './wires.js';
/** All notifications on one connection: what was missed, then what happens, and when the inbox changes. */
export const notificationStream = async (scope, { gateway, ...parts }) => {
    const { notifications, clock } = gateway;
    scope.decorateRequest('readingFrom');
    // nothing is expected over it; whatever comes only shows that somebody is there
    scope.get('/notifications/ws', {
        websocket: true,
        config: { socket: true },
        schema: { querystring: FollowNotificationsQuery },
        preHandler: async (request) => {
            request.readingFrom = await notifications.feed.placeAfter(request.query.after);
        },
    }, (socket, request) => {
        const { readingFrom } = request;
        if (readingFrom)
            new FeedClient(socketWire(socket, request), request, parts).follow(notifications, readingFrom);
    });
    scope.get('/notifications/events', { schema: { querystring: FollowNotificationsQuery, response: {} } }, async (request, reply) => {
        const place = await notifications.feed.placeAfter(lastEventId(request) ?? request.query.after);
        if (request.method === 'HEAD')
            return reply.headers(EVENT_STREAM_HEADERS).send();
        new FeedClient(eventStreamWire(request, reply, clock), request, parts).follow(notifications, place);
        return reply;
    });
};
function lastEventId({ headers }) {
    const given = headers['last-event-id'];
    if (given === undefined || given === '')
        return undefined;
    if (typeof given !== 'string')
        throw invalidField('Last-Event-ID', 'is given more than once.');
    return given;
}
/** One client of the feed. */
class FeedClient extends StreamClient {
    #reader;
    follow(notifications, place) {
        const { query, principal } = this.request;
        const filter = filterOf(query);
        this.#reader = new FeedReader(notifications, this, place, { filter, principal });
    }
    write(frames) {
        return this.tell(frames.map(({ id, text }) => (id === undefined ? text : new MarkedFrame(id, text))));
    }
    admits(principal) {
        this.#reader?.becomes(principal);
        return true;
    }
    cutOff(close) {
        if (this.#reader)
            this.#reader.close(close);
        else
            this.close(close);
    }
    onDrain() {
        this.#reader?.resume();
    }
    onGone() {
        this.#reader?.detach();
    }
}
//# sourceMappingURL=notification-stream.js.map