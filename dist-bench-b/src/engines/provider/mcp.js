import { createHash } from 'node:crypto';
import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';
import { asSchema } from 'ai';
import { GatewayError, toError } from '../../errors.js';
const CONNECT_TIMEOUT_MS = 15_000;
/**
 * Connects a session to the servers it is granted. A server that does not answer is reported as `failed` and its tools are absent.
 * @throws {GatewayError} `SG_ERR_ENGINE_START` for a name that the host did not wire
 */
export async function connectMcpServers(names, wired, onError) {
    const unknown = names.find((name) => !Object.hasOwn(wired, name));
    if (unknown !== undefined) {
        throw new GatewayError('SG_ERR_ENGINE_START', {
            detail: `The profile names the MCP server ${unknown}, which the host did not connect.`,
        });
    }
    const closers = [];
    const servers = await Promise.all(names.map(async (name) => {
        try {
            const tools = await toolsOf(name, await connect(wired[name], closers));
            return { name, status: 'connected', tools };
        }
        catch (thrown) {
            onError(toError(thrown), name);
            return { name, status: 'failed', tools: [] };
        }
    }));
    return {
        tools: servers.flatMap((server) => server.tools),
        servers: servers.map(({ name, status }) => ({ name, status })),
        close: async () => {
            await Promise.allSettled(closers.map((close) => close()));
        },
    };
}
async function connect(server, closers) {
    if ('tools' in server)
        return server;
    const transport = 'url' in server
        ? // Following a redirect would carry the headers to wherever it points.
            {
                type: server.type,
                url: server.url,
                redirect: 'error',
                ...(server.headers && { headers: server.headers }),
            }
        : new StdioTransport({
            command: server.command,
            ...(server.args && { args: server.args }),
            ...(server.env && { env: server.env }),
        });
    const client = await createMCPClient({
        transport,
        clientName: 'session-gateway',
        initializationOptions: { timeout: CONNECT_TIMEOUT_MS },
        onUncaughtError: () => { },
    });
    closers.push(() => client.close());
    return client;
}
async function toolsOf(server, client) {
    const tools = Object.entries(await client.tools());
    return Promise.all(tools.map(async ([name, tool]) => ({
        name: mcpToolName(server, name),
        group: mcpServerPrefix(server),
        description: tool.description ?? '',
        inputSchema: (await asSchema(tool.inputSchema).jsonSchema),
        asks: 'unless-allowed',
        title: () => `${tool.title ?? name} (${server})`,
        async run(input, { toolUseId, signal }) {
            const call = { toolCallId: toolUseId, messages: [], abortSignal: signal };
            return mcpResult((await tool.execute(input, call)));
        },
    })));
}
const mcpServerPrefix = (server) => `mcp__${plain(server)}`;
const plain = (name) => name.replace(/[^A-Za-z0-9_-]/g, '_');
const MAX_TOOL_NAME = 64;
/** `mcp__<server>__<tool>` in the letters and the length that every provider takes; a name that had to change is told apart by a hash. */
function mcpToolName(server, tool) {
    const name = `${mcpServerPrefix(server)}__${plain(tool)}`;
    if (name === `mcp__${server}__${tool}` && name.length <= MAX_TOOL_NAME)
        return name;
    const hash = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, 8);
    return `${name.slice(0, MAX_TOOL_NAME - 9)}_${hash}`;
}
function mcpResult(result) {
    const parts = result.content?.map((part) => {
        if (part.type === 'text')
            return { type: 'text', text: part.text ?? '' };
        if (part.type === 'image' && part.data && part.mimeType) {
            return { type: 'image', data: part.data, mediaType: part.mimeType };
        }
        return { type: 'text', text: JSON.stringify(part) };
    });
    const isError = result.isError === true;
    if (!parts?.length)
        return { content: JSON.stringify(result.structuredContent ?? result.toolResult ?? null), isError };
    if (parts.some((part) => part.type !== 'text'))
        return { content: parts, isError };
    return { content: parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n'), isError };
}
//# sourceMappingURL=mcp.js.map