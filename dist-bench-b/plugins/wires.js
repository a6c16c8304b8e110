import { encodeTextFrame } from '../src/sessions/log/log-segments.js';
import { corsHeaders } from './cors.js';
import { expectBadFrames } from './sockets.js';
/** A frame that is text already, and an id that a client of an event stream can come back with. */
export class MarkedFrame {
    id;
    text;
    constructor(id, text) {
        this.id = id;
        this.text = text;
    }
}
const MISSED_BEATS = 2;
const COMMENT_MS = 15_000;
export const socketWire = (socket, request) => (events) => new SocketWire(socket, request, events);
export class SocketWire {
    #socket;
    /** Written to directly: the log's bytes are frames already, and go out for all clients without a copy. */
    #raw;
    #missedBeats = 0;
    constructor(socket, request, { onGone, onDrain, onMessage }) {
        this.#socket = socket;
        this.#raw = socket._socket;
        const heard = () => {
            this.#missedBeats = 0;
        };
        socket.on('pong', heard);
        socket.on('message', (data, isBinary) => {
            heard();
            onMessage?.(data, isBinary);
        });
        expectBadFrames(socket, request);
        socket.on('close', onGone);
        if (onDrain)
            this.#raw.on('drain', onDrain);
    }
    write(parts) {
        if (this.#socket.readyState !== this.#socket.OPEN)
            return true;
        let taken = true;
        if (parts.length > 1)
            this.#raw.cork();
        for (const part of parts)
            taken = this.#raw.write(isSlice(part) ? part.frames : encodeTextFrame(textOf(part)));
        if (parts.length > 1)
            this.#raw.uncork();
        return taken;
    }
    get unreadBytes() {
        return this.#raw.writableLength;
    }
    get holds() {
        return this.unreadBytes > 0;
    }
    alive() {
        if (this.#missedBeats >= MISSED_BEATS)
            return false;
        this.#missedBeats++;
        if (this.#socket.readyState === this.#socket.OPEN)
            this.#socket.ping();
        return true;
    }
    close({ code, reason }) {
        this.#socket.close(code, reason);
    }
    terminate() {
        this.#socket.terminate();
    }
    /** Reads nothing more from the client for now. */
    pause() {
        this.#socket.pause();
    }
    resume() {
        this.#socket.resume();
    }
}
export const EVENT_STREAM_HEADERS = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
};
/** Server-sent events instead of an answer: the frames of the socket as `data`, with a comment while there is nothing to say. */
export const eventStreamWire = (request, reply, clock) => (events) => {
    reply.hijack();
    return new EventStreamWire(request, reply, clock, events);
};
class EventStreamWire {
    /** What it writes is text of its own. */
    holds = false;
    #raw;
    #clock;
    #comment;
    constructor(request, reply, clock, { onGone, onDrain }) {
        this.#raw = reply.raw;
        this.#clock = clock;
        this.#raw.on('close', () => {
            this.#comment?.cancel();
            onGone();
        });
        if (onDrain)
            this.#raw.on('drain', onDrain);
        this.#raw.on('error', (error) => request.log.debug({ err: error }, 'event stream error'));
        this.#raw.writeHead(200, { ...corsHeaders(reply), ...EVENT_STREAM_HEADERS });
        this.#raw.flushHeaders();
        this.#scheduleComment();
    }
    write(parts, epoch) {
        let text = '';
        for (const part of parts) {
            if (isSlice(part))
                for (const { seq, json } of part.events())
                    text += `id: ${epoch}:${seq}\ndata: {"type":"event","event":${json}}\n\n`;
            else {
                if (part instanceof MarkedFrame)
                    text += `id: ${part.id}\n`;
                text += `data: ${textOf(part)}\n\n`;
            }
        }
        return this.#raw.write(text);
    }
    get unreadBytes() {
        return this.#raw.writableLength;
    }
    /** A connection that is gone is told by the system when the next comment is written. */
    alive() {
        return true;
    }
    close() {
        this.#raw.end();
    }
    terminate() {
        this.#raw.destroy();
    }
    #scheduleComment() {
        this.#comment = this.#clock.after(COMMENT_MS, () => {
            if (!this.#raw.writableNeedDrain)
                this.#raw.write(': still here\n\n');
            this.#scheduleComment();
        });
    }
}
const isSlice = (part) => typeof part === 'object' && 'frames' in part;
function textOf(part) {
    if (part instanceof MarkedFrame)
        return part.text;
    return typeof part === 'string' ? part : JSON.stringify(part);
}
//# sourceMappingURL=wires.js.map