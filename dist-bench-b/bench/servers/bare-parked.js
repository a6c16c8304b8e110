import { randomUUID } from 'node:crypto';
import websocket from '@fastify/websocket';
import fastify from 'fastify';
import { ExecutionParams, SubmitExecutionResultRequest, SubmitExecutionResultResponse, } from '../../schemas/executions.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
import { sessionInfo } from './session-info.js';
/** A server of the plain kind: what waits is text in a Map; a result builds it an engine again, and who looks on is told. */
const parked = new Map();
const watchers = new Map();
function tell(id, seq, event) {
    const text = JSON.stringify({ type: 'event', event: { seq, ts: Date.now(), ...event } });
    for (const socket of watchers.get(id) ?? [])
        socket.send(text);
}
const app = fastify().withTypeProvider();
await app.register(websocket);
await app.register(async (scope) => {
    scope.get('/v1/sessions/:id/ws', { websocket: true }, (socket, { params: { id } }) => {
        const all = watchers.get(id) ?? new Set();
        watchers.set(id, all.add(socket));
        socket.on('close', () => watchers.delete(id));
        socket.send(JSON.stringify({ type: 'attached', session: JSON.parse(parked.get(id)) }));
        socket.send(JSON.stringify({ type: 'synced', seq: 2 }));
    });
});
app.post('/v1/executions/:executionId/result', {
    schema: {
        params: ExecutionParams,
        body: SubmitExecutionResultRequest,
        response: { 200: SubmitExecutionResultResponse },
    },
}, async ({ params: { executionId }, body }) => {
    const sessionId = executionId.slice(0, -2);
    const info = JSON.parse(parked.get(sessionId));
    parked.set(sessionId, JSON.stringify({ ...info, status: 'running' }));
    let seq = info.lastSeq;
    const runner = new ScriptedRunner({
        sessionId,
        config: { cwd: info.cwd },
        profile: { name: 'bench', engine: 'provider' },
        bridge: { execute: () => Promise.reject(new Error('nobody is there')) },
    }, { settle: (one) => setImmediate(() => one.complete()) });
    tell(sessionId, ++seq, { type: 'status_changed', status: 'running' });
    await runner.start({ emit: (event) => tell(sessionId, ++seq, event) });
    runner.settleExecution(executionId, body);
    return { applied: true, sessionId };
});
const url = await app.listen({ port: 0, host: '127.0.0.1' });
answer({
    url: () => url,
    park: (count) => Array.from({ length: count }, () => {
        const id = randomUUID();
        parked.set(id, JSON.stringify(sessionInfo(id)));
        return id;
    }),
});
//# sourceMappingURL=bare-parked.js.map