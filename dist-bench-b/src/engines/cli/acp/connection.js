import { finished, Writable } from 'node:stream';
import { client, methods, ndJsonStream, } from '@agentclientprotocol/sdk';
/**
 * Speaks the Agent Client Protocol with a process. No file system and no terminal is offered: agents then work on the real ones
 * themselves, in their working directory.
 */
export function connectAcp({ child }, listener) {
    const stream = ndJsonStream(Writable.toWeb(child.stdin), saidBy(child.stdout));
    const connection = client({ name: 'session-gateway' })
        .onRequest(methods.client.session.requestPermission, ({ params }) => listener.onPermission(params))
        .onNotification(methods.client.session.update, ({ params }) => listener.onUpdate(params.update, params.sessionId))
        // Agents have notifications of their own, which must not be errors.
        .onNotification('*', () => { })
        .connect(stream);
    return { agent: connection.agent, closed: connection.closed.catch(() => { }), signal: connection.signal };
}
/** As it is read; unlike Node's own, it does not go on with a pipe that somebody paused. */
function saidBy(output) {
    let leave = () => { };
    return new ReadableStream({
        start(controller) {
            const take = (piece) => controller.enqueue(piece);
            const forgetEnd = finished(output, { writable: false }, (error) => error ? controller.error(error) : controller.close());
            leave = () => {
                output.off('data', take);
                forgetEnd();
            };
            output.on('data', take);
        },
        cancel() {
            // what was read ahead, and an end, may still come
            leave();
            output.destroy();
        },
    });
}
/** The code by which an agent says that it has no credentials. */
const AUTH_REQUIRED = -32000;
export const isAuthRequired = (error) => error?.code === AUTH_REQUIRED;
/** What went wrong, in a sentence; agents put the reason into the data as often as into the message. */
export function reasonOf(error) {
    const { message, data } = error;
    const details = typeof data === 'string'
        ? data
        : (data?.details ??
            data?.message);
    return ([message, details].filter((part) => typeof part === 'string' && part !== '').join(': ') ||
        String(error));
}
//# sourceMappingURL=connection.js.map