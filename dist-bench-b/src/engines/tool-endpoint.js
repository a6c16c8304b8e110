import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { toError } from '../errors.js';
const PATH = '/mcp';
/** So that no client takes a call that waits for days for a connection that died. */
const KEEP_ALIVE_MS = 15_000;
/**
 * Deferred tools for agents in processes of their own: an MCP server on loopback (streamable HTTP), one bearer per session. It listens
 * from the first session that has tools.
 */
export class ToolEndpoint {
    #logger;
    /** By the hash of the bearer. */
    #sessions = new Map();
    #listening;
    constructor(logger) {
        this.#logger = logger;
    }
    async open(session) {
        this.#listening ??= this.#listen().catch((error) => {
            // the next session may find what this one did not
            this.#listening = undefined;
            throw error;
        });
        const { port } = await this.#listening;
        const bearer = randomBytes(32).toString('base64url');
        const key = hash(bearer);
        this.#sessions.set(key, session);
        return { url: `http://127.0.0.1:${port}${PATH}`, bearer, close: () => void this.#sessions.delete(key) };
    }
    async close() {
        const listening = await this.#listening?.catch(() => undefined);
        if (!listening)
            return;
        listening.server.closeAllConnections();
        await new Promise((resolve) => listening.server.close(resolve));
    }
    async #listen() {
        const server = createServer((request, response) => {
            this.#serve(request, response).catch((error) => {
                this.#logger.error({ err: toError(error) }, 'the tool endpoint failed');
                response.destroy();
            });
        });
        server.unref();
        await new Promise((resolve, reject) => {
            server.once('error', reject);
            server.listen(0, '127.0.0.1', resolve);
        });
        return { server, port: server.address().port };
    }
    async #serve(request, response) {
        const { host, origin, authorization } = request.headers;
        // no browser has business here, whichever name led it to this port
        if (origin !== undefined || host !== `127.0.0.1:${request.socket.localPort}`)
            return refuse(response, 403);
        const session = this.#sessions.get(hash(/^Bearer (.+)$/i.exec(authorization ?? '')?.[1] ?? ''));
        if (!session)
            return refuse(response, 401);
        if (request.url !== PATH)
            return refuse(response, 404);
        const { connectToolServer } = await import('./tool-server.js');
        const { transport, close } = await connectToolServer(session, KEEP_ALIVE_MS);
        response.once('close', close);
        await transport.handleRequest(request, response);
    }
}
const hash = (bearer) => createHash('sha256').update(bearer).digest('hex');
const refuse = (response, status) => {
    response.writeHead(status, { connection: 'close' }).end();
};
//# sourceMappingURL=tool-endpoint.js.map