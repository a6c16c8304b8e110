import { Type } from '@sinclair/typebox';
import { EventsQuery, ListEventsResponse } from '../schemas/events.js';
import { SessionParams } from '../schemas/sessions.js';
import { invalidField } from '../src/errors.js';
import { eventsPage } from '../src/sessions/log/events-page.js';
import { prefersEventStream } from './accept.js';
import { SessionClient } from './session-client.js';
import { eventStreamWire } from './wires.js';
/** The session's log without a socket: as server-sent events, or in JSON pages. */
export const sessionEvents = async (scope, { gateway, ...parts }) => {
    scope.get('/sessions/:id/events', {
        config: { owner: 'session' },
        schema: {
            params: SessionParams,
            querystring: EventsQuery,
            response: { 200: Type.Unsafe(ListEventsResponse), 204: Type.Null() },
        },
    }, async (request, reply) => {
        const session = await gateway.registry.open(request.params.id, request.principal);
        if (!wantsStream(request))
            return reply.type('application/json; charset=utf-8').send(await eventsPage(session, request.query));
        const position = lastEventId(request) ?? request.query;
        // an EventSource that was told everything would come back for ever; 204 ends it
        if (session.ended && position.afterSeq === session.log.visibleSeq && position.epoch === session.log.epoch)
            return reply.code(204).send(null);
        session.clients.assertRoom();
        new SessionClient(eventStreamWire(request, reply, gateway.clock), session, request, parts).attach(position);
        return reply;
    });
};
const wantsStream = (request) => request.method === 'GET' && prefersEventStream(request.headers.accept);
/** `<epoch>:<seq>`, as every event's id is. */
function lastEventId(request) {
    const header = request.headers['last-event-id'];
    if (header === undefined || header === '')
        return undefined;
    const match = /^([^:]*):(\d{1,15})$/.exec(String(header));
    if (!match)
        throw invalidField('Last-Event-ID', 'is not one that this gateway gave out.');
    return { epoch: match[1], afterSeq: Number(match[2]) };
}
//# sourceMappingURL=session-events.js.map