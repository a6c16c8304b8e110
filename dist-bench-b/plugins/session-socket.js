import { CLOSE } from '../schemas/close-codes.js';
import { EventsQuery } from '../schemas/events.js';
import { SessionParams } from '../schemas/sessions.js';
import { GatewayError, toError } from '../src/errors.js';
import { parseJson } from '../src/lib/json-depth.js';
import { commandIdOf, parseCommand } from '../src/sessions/clients/parse-command.js';
import { SessionClient } from './session-client.js';
import { socketWire } from './wires.js';
/** Commands of one socket that may wait for the one before; beyond it nothing more is read. */
const MAX_WAITING_COMMANDS = 64;
/** The session as a WebSocket. */
export const sessionSocket = async (scope, { gateway, ...parts }) => {
    const { registry, options } = gateway;
    scope.decorateRequest('attachingTo');
    scope.get('/sessions/:id/ws', {
        websocket: true,
        config: { socket: true, owner: 'session' },
        schema: { params: SessionParams, querystring: EventsQuery },
        preHandler: async (request) => {
            request.attachingTo = await registry.open(request.params.id, request.principal);
        },
    }, (socket, request) => {
        const { attachingTo: session } = request;
        if (!session)
            return;
        const client = new SocketClient(socketWire(socket, request), session, request, parts, options.maxBodyBytes);
        client.attach(request.query);
    });
};
/** One client's socket: what every client of a session is told, and commands in, one after the other. */
class SocketClient extends SessionClient {
    #maxFrameBytes;
    #commands = Promise.resolve();
    #waiting = 0;
    constructor(open, session, request, parts, maxFrameBytes) {
        super(open, session, request, parts);
        this.#maxFrameBytes = maxFrameBytes;
    }
    onMessage(data, isBinary) {
        // who was told to go away is not listened to any more
        if (this.attachment?.closed !== false)
            return;
        if (data.length > this.#maxFrameBytes) {
            this.close(CLOSE.tooLarge);
            return;
        }
        if (++this.#waiting === MAX_WAITING_COMMANDS)
            this.wire.pause();
        this.#commands = this.#commands.then(() => this.#carryOut(data, isBinary)).then(() => this.#onCarriedOut());
    }
    #onCarriedOut() {
        if (this.#waiting-- === MAX_WAITING_COMMANDS)
            this.wire.resume();
    }
    /** Never rejects: whatever a frame holds is answered on this socket alone. */
    async #carryOut(data, isBinary) {
        let id;
        const { listensAgain } = this.parts.streams;
        if (listensAgain) {
            await listensAgain;
            if (this.attachment?.closed !== false)
                return;
        }
        try {
            if (isBinary)
                throw new GatewayError('SG_ERR_VALIDATION', { detail: 'Send commands as text messages.' });
            const frame = parseJson(data.toString());
            id = commandIdOf(frame);
            const command = parseCommand(frame);
            // over a socket it is authenticated as it is over REST
            if (!(await this.stillWelcome()))
                return;
            if (command.type !== 'ping')
                this.parts.streams.onUsed(this.request);
            await this.session.handle(command, this.attachment, this.request.principal);
            if (command.type === 'ping')
                this.attachment?.send({ type: 'pong' });
            if (id !== undefined)
                this.attachment?.send({ type: 'ack', id });
        }
        catch (error) {
            const refusal = error instanceof GatewayError ? error : new GatewayError('SG_ERR_INTERNAL', { cause: error });
            if (refusal.statusCode >= 500)
                this.request.log.error({ err: toError(error) }, 'a command failed');
            this.attachment?.send({
                type: 'command_error',
                ...(id !== undefined && { id }),
                code: refusal.code,
                message: refusal.message,
            });
        }
    }
}
//# sourceMappingURL=session-socket.js.map