/** What only the host sets is never written down; the title is the one that the session has by now. */
export function keptConfig(request, hostTitle) {
    const { env: _env, defaultApprovalTimeoutMs: _timeout, agentOptions: _options, title: _title, ...kept } = request;
    return hostTitle === undefined ? kept : { ...kept, title: hostTitle };
}
/** The request, with what was chosen since. */
export function withChoice({ request, chosen }) {
    if (!chosen)
        return request;
    const { model: asked, ...rest } = request;
    const model = chosen.model === undefined ? asked : (chosen.model ?? undefined);
    const permissionMode = chosen.permissionMode ?? request.permissionMode;
    return { ...rest, ...(model !== undefined && { model }), ...(permissionMode !== undefined && { permissionMode }) };
}
//# sourceMappingURL=kept-config.js.map