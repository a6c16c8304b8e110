import { GatewayError, invalidField } from '../../errors.js';
import { systemClock } from '../../lib/clock.js';
import { AcpRunner } from './acp/runner.js';
import { agentTable, DEFAULT_AGENT } from './agent-table.js';
import { CarriedRunner } from './carry/carried-runner.js';
import { Carrier } from './carry/carrier.js';
import { assertSayable } from './claude/arguments.js';
import { ClaudeRunner } from './claude/runner.js';
import { CLAUDE_SDK, loadClaudeSdk } from './claude/sdk.js';
import { configDirOf, findExecutable, sessionEnvironment } from './environment.js';
import { SpawnSlots } from './spawn-slots.js';
import { isTrusted, untrustedRow, workspaceEnv } from './workspace/trust.js';
export { agentTable, BUILT_IN_AGENTS, DEFAULT_AGENT } from './agent-table.js';
export { CLAUDE_SDK } from './claude/sdk.js';
export { checkCredentials, } from './credentials.js';
export { leash } from './leash.js';
export { endOrphans } from './markers.js';
export { deleteSdkSession, listSdkSessions, } from './sdk-sessions.js';
export { cannotDistrust } from './workspace/trust.js';
/** Builds the runners of `cli` sessions: real agents, each in a process of its own. */
export function cliEngine(options = {}) {
    const agents = agentTable(options.agents);
    const slots = new SpawnSlots(options.maxConcurrentStarts);
    return async (context) => {
        const { profile, config } = context;
        const subject = subjectOf(agents, options, profile, config.env);
        const trusted = isTrusted(subject.row, profile, context.hostedTools !== undefined);
        if (!trusted)
            refuseUntrusted(config, subject.row);
        const setup = {
            sessionId: context.sessionId,
            row: trusted ? subject.row : untrustedRow(subject.row),
            config,
            env: {
                ...subject.env,
                ...subject.row.settings?.(subject.env, trusted),
                ...(await workspaceEnv(subject.row, trusted, { env: subject.env, cwd: config.cwd })),
            },
            trusted,
            slots,
            roots: options.roots,
            logger: options.logger,
        };
        const runner = subject.row.driver === 'claude'
            ? await claudeRunner(setup, context, options.claudeSdk ?? CLAUDE_SDK)
            : acpRunner(setup, context, options.clock ?? systemClock);
        return carried(runner, setup, options.carried, context.restore !== undefined);
    };
}
/** The same runner, or one whose agent goes on elsewhere. */
function carried(runner, { row, env, sessionId, logger }, store, isRestored) {
    const configDir = configDirOf(row, env);
    if (!store || !row.carry || configDir === undefined)
        return runner;
    const carrier = new Carrier({ store, sessionId, configDir, patterns: row.carry });
    return new CarriedRunner({ runner, carrier, isRestored, sessionId, logger });
}
/**
 * A profile with its agent and the environment that its sessions would run in: what credentials are checked with and sessions listed.
 * @param sessionEnv what the profile's pin adds
 * @throws GatewayError when there is no such agent
 */
export const cliSubject = (options, profile, sessionEnv) => subjectOf(agentTable(options.agents), options, profile, sessionEnv);
/**
 * Whether the agent of a profile is there to be started.
 * @throws GatewayError what the first session would be refused with
 */
export async function assertInstalled(options, profile) {
    const { row, env } = cliSubject(options, profile);
    if (row.driver === 'claude') {
        if (row.command !== undefined)
            requireExecutable(row.command, row, env);
        await loadClaudeSdk(options.claudeSdk ?? CLAUDE_SDK);
    }
    else
        requireExecutable(row.command ?? row.name, row, env);
}
function subjectOf(agents, { env: gatewayEnv = process.env, secretEnv: secrets = [] }, profile, sessionEnv) {
    const name = profile.agent ?? DEFAULT_AGENT;
    const row = agents.get(name);
    if (!row)
        throw new GatewayError('SG_ERR_ENGINE_START', { detail: `There is no agent named ${name}.` });
    return { profile, row, env: sessionEnvironment({ row, gatewayEnv, sessionEnv, secrets }) };
}
/** Whether the sessions of a profile's agent can go on at nodes that have no config directory in common. */
export const canCarry = (agents, { agent = DEFAULT_AGENT }) => agentTable(agents).get(agent)?.carry !== undefined;
async function claudeRunner(setup, { config, restore, hostedTools }, sdkSpecifier) {
    const { row, env } = setup;
    assertSayable(config, row.command);
    if (row.command !== undefined)
        requireExecutable(row.command, row, env);
    // Run as root the agent ends at once when bypassing is as much as possible. What a wrapper makes of it is the operator's affair.
    const canBypass = process.getuid?.() !== 0 || Boolean(env.IS_SANDBOX) || row.command !== undefined;
    if (!canBypass && config.allowDangerouslySkipPermissions)
        throw invalidField('allowDangerouslySkipPermissions', 'the claude agent refuses it to root: run the gateway as another user.', 'SG_ERR_UNSUPPORTED');
    const sdk = await loadClaudeSdk(sdkSpecifier);
    return new ClaudeRunner({ ...setup, sdk, sdkSpecifier, canBypass, hostedTools }, stateOf(restore, row));
}
function acpRunner(setup, { config, restore, hostedTools }, clock) {
    const { row, env } = setup;
    refuseUnsupported(config, row);
    return new AcpRunner({ ...setup, command: requireExecutable(row.command ?? row.name, row, env), hostedTools, clock }, stateOf(restore, row));
}
/** What only works in a working directory whose files may run commands. */
function refuseUntrusted({ settingSources, mcpServers = {} }, row) {
    const remedy = 'set trustWorkspace on the profile if its files may run commands.';
    const source = settingSources?.find((one) => one !== 'user');
    if (row.driver === 'claude' && source)
        throw invalidField('settingSources', `${source} settings are the working directory's: ${remedy}`, 'SG_ERR_UNSUPPORTED');
    if (row.untrusted?.withoutMcp && Object.keys(mcpServers).length > 0)
        throw invalidField('mcpServers', `the agent ${row.name} starts none where it does not trust the working directory: ${remedy}`, 'SG_ERR_UNSUPPORTED');
}
/** Options that the protocol has no word for. To leave them out in silence would be to promise them. */
const CLAUDE_ONLY = ['allowedTools', 'disallowedTools', 'maxTurns', 'maxBudgetUsd', 'settingSources'];
function refuseUnsupported(config, row) {
    const field = CLAUDE_ONLY.find((name) => config[name] !== undefined);
    if (field)
        throw invalidField(field, `the agent ${row.name} has no such setting.`, 'SG_ERR_UNSUPPORTED');
}
function requireExecutable(command, row, env) {
    const found = findExecutable(command, env);
    if (found)
        return found;
    const install = row.package && command === row.command ? ` Run: npm i -g ${row.package}` : '';
    throw new GatewayError('SG_ERR_ENGINE_START', {
        detail: `The agent ${row.name} is not installed: it needs the command ${command}, which is not in the PATH of its sessions.${install}`,
    });
}
function stateOf(restore, row) {
    if (!restore)
        return undefined;
    const state = restore.state;
    if (restore.engine !== 'cli' || state.agent !== row.name)
        throw new GatewayError('SG_ERR_ENGINE_START', { detail: `The session was another agent's, not ${row.name}'s.` });
    return state;
}
//# sourceMappingURL=index.js.map