import { connect } from 'node:net';
const TEXT = 0x1;
const CLOSE = 0x8;
const PING = 0x9;
/** All sockets of a process read into one buffer: it is used up before the next read. */
const READ_BUFFER = Buffer.allocUnsafeSlow(256 * 1024);
/** A WebSocket client that does as little as can be done, so that 500 of them do not take the CPU from the server they measure. */
export class RawSocket {
    /** Text messages received so far. */
    messages = 0;
    closed = false;
    #socket;
    #options;
    #head = Buffer.alloc(0);
    /** A frame header that a read cut in two. */
    #cut = Buffer.alloc(0);
    #payloadLeft = 0;
    #opcode = 0;
    #payload = [];
    #opened;
    constructor(url, options) {
        this.#options = options;
        this.#socket = connect({
            host: url.hostname,
            port: Number(url.port),
            noDelay: true,
            onread: {
                buffer: READ_BUFFER,
                callback: (bytes) => {
                    this.#onBytes(READ_BUFFER.subarray(0, bytes));
                    return true;
                },
            },
        });
        this.#socket.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
            'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YmVuY2htYXJrLWNsaWVudA==\r\n\r\n');
        this.#socket.on('error', (error) => this.#opened(error));
        this.#socket.on('close', () => {
            this.closed = true;
            this.#opened(new Error('the connection ended before the upgrade'));
            options.onClose?.();
        });
    }
    /** Resolves when the upgrade was accepted. */
    static open(url, options = {}) {
        return new Promise((resolve, reject) => {
            const socket = new RawSocket(new URL(url), options);
            socket.#opened = (error) => (error ? reject(error) : resolve(socket));
        });
    }
    /** Sends one text message; the mask is zero, which a server cannot tell from any other. */
    send(text) {
        const payload = Buffer.from(text);
        const short = payload.length < 126;
        const header = Buffer.alloc(short ? 6 : 8);
        header[0] = 0x80 | TEXT;
        header[1] = 0x80 | (short ? payload.length : 126);
        if (!short)
            header.writeUInt16BE(payload.length, 2);
        this.#socket.write(Buffer.concat([header, payload]));
    }
    /** Reads no more. */
    stall() {
        this.#socket.pause();
    }
    /** Gone without a word, as a phone that loses its network. */
    drop() {
        this.#socket.destroy();
    }
    #onBytes(bytes) {
        if (this.#head) {
            this.#head = Buffer.concat([this.#head, bytes]);
            const end = this.#head.indexOf('\r\n\r\n');
            if (end === -1)
                return;
            const rest = this.#head.subarray(end + 4);
            const accepted = this.#head.subarray(0, 12).toString() === 'HTTP/1.1 101';
            const status = this.#head.subarray(0, end).toString();
            this.#head = undefined;
            this.#opened(accepted ? undefined : new Error(status));
            this.#onFrames(rest);
        }
        else
            this.#onFrames(bytes);
        this.#options.onProgress?.(this);
    }
    #onFrames(bytes) {
        let at = 0;
        while (at < bytes.length && !this.closed) {
            if (this.#payloadLeft === 0) {
                const header = this.#cut.length > 0 ? Buffer.concat([this.#cut, bytes.subarray(at, at + 10)]) : bytes;
                const start = header === bytes ? at : 0;
                const length = headerLength(header, start);
                if (length === undefined) {
                    this.#cut = Buffer.from(header.subarray(start));
                    return;
                }
                at += length - this.#cut.length;
                this.#cut = Buffer.alloc(0);
                this.#opcode = header[start] & 0x0f;
                this.#payloadLeft = payloadLength(header, start);
            }
            const end = Math.min(bytes.length, at + this.#payloadLeft);
            if (this.#options.onText && end > at)
                this.#payload.push(Buffer.from(bytes.subarray(at, end)));
            this.#payloadLeft -= end - at;
            at = end;
            if (this.#payloadLeft === 0)
                this.#onMessage();
        }
    }
    #onMessage() {
        if (this.#opcode === TEXT) {
            this.messages++;
            const { onText } = this.#options;
            if (onText) {
                const text = this.#payload.length === 1 ? this.#payload[0] : Buffer.concat(this.#payload);
                this.#payload = [];
                onText(text);
            }
        }
        else if (this.#opcode === CLOSE)
            this.drop();
        else if (this.#opcode === PING)
            this.#socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]));
        this.#payload = [];
    }
}
/** Bytes of the header that begins at `at`; `undefined` when not all of it is there. */
function headerLength(bytes, at) {
    const left = bytes.length - at;
    if (left < 2)
        return undefined;
    const length = bytes[at + 1] < 126 ? 2 : bytes[at + 1] === 126 ? 4 : 10;
    return left < length ? undefined : length;
}
function payloadLength(bytes, at) {
    const short = bytes[at + 1];
    return short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
}
//# sourceMappingURL=raw-socket.js.map