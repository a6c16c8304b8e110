import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
/** Under which claude tells which call of the model it makes. */
const TOOL_USE_ID = 'claudecode/toolUseId';
/** One exchange of the protocol: stateless, since the bearer says which session it is. Loads the SDK, which only agents need. */
export async function connectToolServer(session, keepAliveMs) {
    const server = new Server({ name: 'session-gateway', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => {
        // once the answer is on its way
        setImmediate(() => session.onListed());
        return {
            tools: session.tools.map(({ name, description, inputSchema }) => ({
                ...{ name, description },
                inputSchema: { ...inputSchema, type: 'object' },
            })),
        };
    });
    server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
        const tool = session.tools.find(({ name }) => name === params.name);
        const toolUseId = params._meta?.[TOOL_USE_ID];
        return tool
            ? toolOutput(await session.call(tool, params.arguments ?? {}, typeof toolUseId === 'string' ? toolUseId : undefined))
            : { content: [{ type: 'text', text: `There is no tool ${params.name}.` }], isError: true };
    });
    const transport = new StreamableHTTPServerTransport({ keepAliveMs });
    await server.connect(transport);
    return { transport, close: () => void server.close() };
}
function toolOutput(result) {
    if (result.status === 'failed') {
        const { status, reason, error } = result;
        return { content: [{ type: 'text', text: JSON.stringify({ status, reason, error }) }], isError: true };
    }
    const { output } = result;
    const text = output.type === 'text' ? output.value : (JSON.stringify(output.value) ?? 'null');
    return { content: [{ type: 'text', text }] };
}
//# sourceMappingURL=tool-server.js.map