import { invalidField } from '../errors.js';
import { Hold } from '../lib/hold.js';
import { newId } from '../lib/new-id.js';
import { ForwardingHost, ForwardingRunner } from './forwarding.js';
/** Name under which agents know the gateway's tools. */
const SERVER = 'session-gateway';
/**
 * Gives the agents of an engine the operator's deferred tools as an MCP server. An agent whose driver does not wait before the call
 * waits for the result in the middle of it, and keeps its process meanwhile.
 */
export function withHostedTools(create, endpoint, clock) {
    return async (context) => {
        const { deferredTools: tools = [], config } = context;
        if (tools.length === 0)
            return create(context);
        refuseLookalikes(config.mcpServers);
        const calls = new HostedCalls(clock);
        let onListed = () => { };
        const listed = new Promise((resolve) => {
            onListed = resolve;
        });
        const access = await endpoint.open({ tools, call: (tool, input, id) => calls.run(tool, input, id), onListed });
        const server = { type: 'http', url: access.url, headers: { authorization: `Bearer ${access.bearer}` } };
        const byName = new Map(tools.map((tool) => [`mcp__${SERVER}__${tool.name}`, tool]));
        const hostedTools = {
            server: SERVER,
            tools,
            listed,
            find: (name) => byName.get(name),
            execution: (tool) => calls.execution(tool),
            answer: (call) => {
                calls.answered = call;
            },
        };
        try {
            const mcpServers = { ...config.mcpServers, [SERVER]: server };
            const runner = await create({ ...context, config: { ...config, mcpServers }, hostedTools });
            return new HostedRunner(runner, calls, access, byName);
        }
        catch (error) {
            access.close();
            throw error;
        }
    };
}
/** Agents write names of servers in their own ways: one that could be taken for the gateway's would have its tools granted. */
function refuseLookalikes(servers = {}) {
    const taken = Object.keys(servers).find((name) => plain(name) === plain(SERVER));
    if (taken !== undefined)
        throw invalidField('mcpServers', `the name ${taken} is the gateway's own.`);
}
const plain = (name) => name.replace(/[^A-Za-z0-9]+/g, '_').toLowerCase();
/** The calls of one agent that wait for their results. */
class HostedCalls {
    #clock;
    #waiting = new Map();
    host;
    /** Kept until the next one, for an agent that makes its call twice. */
    answered;
    hold = new Hold();
    constructor(clock) {
        this.#clock = clock;
    }
    execution({ timeoutMs }) {
        const executionId = newId();
        return timeoutMs === undefined ? { executionId } : { executionId, expiresAt: this.#clock.now() + timeoutMs };
    }
    /** @param toolUseId undefined when the agent does not tell */
    async run(tool, input, toolUseId) {
        const { answered } = this;
        if (answered && answered.toolName === tool.name && (toolUseId ?? answered.toolUseId) === answered.toolUseId)
            return answered.result;
        if (this.hold.over)
            await this.hold.passed();
        if (!this.host)
            return { status: 'failed', reason: 'not_ready', error: 'The session has not started yet.' };
        const execution = this.execution(tool);
        const settled = new Promise((resolve) => this.#waiting.set(execution.executionId, resolve));
        await this.host.deferExecution({ ...execution, toolName: tool.name, input });
        return settled;
    }
    settle(executionId, result) {
        const waiting = this.#waiting.get(executionId);
        this.#waiting.delete(executionId);
        waiting?.(result);
        return waiting !== undefined;
    }
}
class HostedRunner extends ForwardingRunner {
    #calls;
    #access;
    #granted;
    constructor(inner, calls, access, granted) {
        super(inner);
        this.#calls = calls;
        this.#access = access;
        this.#granted = granted;
    }
    start(host) {
        this.#calls.host = host;
        return super.start(new GrantingHost(host, this.#granted));
    }
    settleExecution(executionId, result) {
        if (!this.#calls.settle(executionId, result))
            super.settleExecution(executionId, result);
    }
    pause() {
        this.#calls.hold.put();
        super.pause();
    }
    resume() {
        super.resume();
        this.#calls.hold.lift();
    }
    async close() {
        this.#access.close();
        await super.close();
    }
}
/** Declaring a deferred tool grants it, as with every engine: what a call leads to is the operator's to decide. */
class GrantingHost extends ForwardingHost {
    #granted;
    constructor(host, granted) {
        super(host);
        this.#granted = granted;
    }
    async requestPermission(ask) {
        if (this.#granted.has(ask.toolName))
            return { behavior: 'allow', updatedInput: ask.input };
        return super.requestPermission(ask);
    }
}
//# sourceMappingURL=hosted-tools.js.map