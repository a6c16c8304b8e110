import { basename } from 'node:path';
import { DEFAULT_AGENT } from '../engines/cli/agent-table.js';
import { oneLine } from '../lib/one-line.js';
const TITLE_LENGTH = 80;
/** What is known about a session from its request and from what its engine reported. */
export class SessionFacts {
    hostTitle;
    firstPrompt;
    /** What the engine calls the session, of one that gives titles. */
    engineTitle;
    sdkSessionId;
    model;
    permissionMode;
    apiKeySource;
    statusDetail;
    numTurns = 0;
    cost = 0;
    /** What engines came to that nothing was kept of: the one that began anew counts from nothing. */
    before;
    /** What of `cost` is counted already. */
    #counted = 0;
    usage = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 };
    lastActivityAt;
    #cwd;
    #meta;
    constructor(config, createdAt) {
        this.hostTitle = config.title;
        this.model = config.model;
        this.permissionMode = config.permissionMode;
        this.lastActivityAt = createdAt;
        this.#cwd = config.cwd;
        this.#meta = config.meta;
    }
    get title() {
        return this.hostTitle ?? this.derivedTitle;
    }
    get derivedTitle() {
        return derivedTitle({ engineTitle: this.engineTitle, firstPrompt: this.firstPrompt, cwd: this.#cwd });
    }
    onPrompt(text) {
        this.firstPrompt ??= Array.from(text.slice(0, TITLE_LENGTH * 2))
            .slice(0, TITLE_LENGTH)
            .join('');
    }
    onEngineEvent(payload) {
        const { type, title } = (payload ?? {});
        if (type === 'title_changed' && typeof title === 'string')
            this.engineTitle = oneLine(title, TITLE_LENGTH) || undefined;
    }
    /** What was added to `cost` since this was asked the last time. */
    takeCost() {
        const added = this.cost - this.#counted;
        this.#counted = this.cost;
        return added > 0 ? added : 0;
    }
    /** An engine begins that knows nothing of the session. */
    countFromHere() {
        const { numTurns, cost } = this;
        this.before = numTurns > 0 || cost > 0 ? { numTurns, cost } : undefined;
    }
    /** The end of a turn with the session's totals, as its engine tells it with its own. */
    withTotals(end) {
        const { before } = this;
        if (!before)
            return end;
        const [numTurns, cost] = [countOf(end.numTurns) ?? 0, countOf(end.totalCostUsd) ?? 0];
        return { ...end, numTurns: before.numTurns + numTurns, totalCostUsd: before.cost + cost };
    }
    /** Takes up what was known when the session was parked. */
    restore(info, firstPrompt, engineTitle) {
        this.firstPrompt = firstPrompt;
        this.engineTitle = engineTitle;
        this.sdkSessionId = info.sdkSessionId;
        this.model = info.model;
        this.permissionMode = info.permissionMode;
        this.apiKeySource = info.apiKeySource;
        this.statusDetail = info.statusDetail;
        this.numTurns = info.numTurns;
        this.cost = info.cost;
        this.#counted = info.cost;
        this.lastActivityAt = info.lastActivityAt;
        Object.assign(this.usage, info.usage);
    }
    info(parts) {
        const { id, status, profile, createdAt, lastSeq, pendingPermissions, attachedClients, jobId, parked } = parts;
        const info = {
            id,
            status,
            profile: profile.name,
            engine: profile.engine,
            title: this.title,
            cwd: this.#cwd,
            createdAt,
            lastActivityAt: this.lastActivityAt,
            lastSeq,
            pendingPermissions,
            attachedClients,
            numTurns: this.numTurns,
            cost: this.cost,
            usage: { ...this.usage },
        };
        if (this.sdkSessionId !== undefined)
            info.sdkSessionId = this.sdkSessionId;
        if (this.statusDetail !== undefined)
            info.statusDetail = this.statusDetail;
        if (profile.engine === 'cli')
            info.agent = profile.agent ?? DEFAULT_AGENT;
        if (this.model !== undefined)
            info.model = this.model;
        if (this.permissionMode !== undefined)
            info.permissionMode = this.permissionMode;
        if (this.apiKeySource !== undefined)
            info.apiKeySource = this.apiKeySource;
        if (parked !== undefined)
            info.parked = parked;
        if (jobId !== undefined)
            info.jobId = jobId;
        if (this.#meta !== undefined)
            info.meta = this.#meta;
        return info;
    }
}
/** The engine's own, else the first prompt's beginning, else the last segment of `cwd`. */
export const derivedTitle = ({ engineTitle, firstPrompt, cwd, }) => engineTitle ?? firstPrompt ?? (basename(cwd) || cwd);
/** What an engine says may be of any type, and a SessionInfo that cannot be serialised would spoil every list it is in. */
const textOf = (value) => (typeof value === 'string' ? value : undefined);
const countOf = (value) => (Number.isFinite(value) ? value : undefined);
/** Takes in what an event says. */
export function applyRunnerEvent(facts, event) {
    switch (event.type) {
        case 'system_init':
            facts.sdkSessionId = textOf(event.sdkSessionId);
            facts.model = textOf(event.model);
            facts.apiKeySource = textOf(event.apiKeySource);
            facts.permissionMode = textOf(event.permissionMode);
            return;
        case 'model_changed':
            facts.model = textOf(event.model);
            return;
        case 'permission_mode_changed':
            facts.permissionMode = textOf(event.mode);
            return;
        case 'turn_completed':
            // turns and cost are running totals, tokens are this turn's
            facts.numTurns = countOf(event.numTurns) ?? facts.numTurns;
            facts.cost = countOf(event.totalCostUsd) ?? facts.cost;
            addUsage(facts.usage, event.usage);
            return;
        case 'session_error':
            facts.statusDetail = textOf(event.message);
            return;
        case 'engine_event':
            facts.onEngineEvent(event.payload);
            return;
    }
}
function addUsage(total, turn) {
    total.inputTokens += countOf(turn?.inputTokens) ?? 0;
    total.outputTokens += countOf(turn?.outputTokens) ?? 0;
    total.cacheCreationTokens += countOf(turn?.cacheCreationTokens) ?? 0;
    total.cacheReadTokens += countOf(turn?.cacheReadTokens) ?? 0;
}
/** The end of a turn that no engine could tell. */
export const interruptedTurn = ({ numTurns, cost }, reason) => ({
    type: 'turn_completed',
    subtype: 'interrupted',
    isError: true,
    durationMs: 0,
    numTurns,
    totalCostUsd: cost,
    errors: [reason],
    usage: { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
});
//# sourceMappingURL=session-facts.js.map