/** The servers of a session, as the protocol names them. */
export const acpMcpServers = (servers = {}) => Object.entries(servers).map(([name, server]) => {
    if ('command' in server)
        return { name, command: server.command, args: server.args ?? [], env: pairs(server.env) };
    const { url, headers } = server;
    return server.type === 'http'
        ? { type: 'http', name, url, headers: pairs(headers) }
        : { type: 'sse', name, url, headers: pairs(headers) };
});
const pairs = (values = {}) => Object.entries(values).map(([name, value]) => ({ name, value }));
//# sourceMappingURL=mcp.js.map