const CANONICAL = (server, tool) => `mcp__${server}__${tool}`;
/** What agents of which nothing is known may call a tool of a server. */
const FORMS = [
    CANONICAL,
    (server, tool) => `mcp_${server}_${tool}`,
    (server, tool) => `${server}__${tool}`,
    (server, tool) => `${server}_${tool}`,
    (server, tool) => `${server}/${tool}`,
];
/** The deferred tools of a session, which declaring has granted: nobody is asked for a call of theirs, in no mode. */
export class GrantedTools {
    #names;
    /** What the agent is started with, beyond its arguments. */
    args;
    constructor({ hostedTools, row }) {
        const { server = '', tools = [] } = hostedTools ?? {};
        const forms = row.acp?.serverToolName ? [row.acp.serverToolName] : FORMS;
        const namesOf = ({ name }) => forms.map((form) => form(server, name));
        this.#names = new Set(tools.flatMap(namesOf));
        this.args = tools.length > 0 ? (row.acp?.grantArgs?.(tools.map(({ name }) => CANONICAL(server, name))) ?? []) : [];
    }
    has({ name }) {
        return this.#names.has(name);
    }
}
//# sourceMappingURL=granted.js.map