import { homedir } from 'node:os';
import { agentTable, DEFAULT_AGENT } from '../engines/cli/agent-table.js';
import { cannotDistrust } from '../engines/cli/workspace/trust.js';
import { GatewayError } from '../errors.js';
import { systemClock } from '../lib/clock.js';
import { Listeners } from '../lib/listeners.js';
import { visible } from '../principal.js';
import { configDirRoots, declareProfiles } from './declare.js';
import { generationOf } from './generation.js';
import { ManagedProfiles } from './managed.js';
import { pinConfigDir } from './pin.js';
import { ProviderGrants } from './provider-grants.js';
import { ConfigSnapshots, emptySnapshot } from './snapshot.js';
/** Nothing is declared: sessions run on the default engine, as the operator. */
const NO_PROFILE = Object.freeze({
    info: Object.freeze({ name: '', engine: 'cli' }),
    generation: '',
});
/**
 * Every profile there is, declared and managed, and who may use which. A profile is resolved once per session; what it says later
 * does not reach sessions that run.
 */
export class ProfileCatalog {
    #agents;
    #env;
    #servesTools;
    #notices;
    #declared;
    #managed;
    #grants;
    #snapshots;
    /** By name and generation: a verdict says nothing about who comes after, nor about another one in the same directory. */
    #credentials = new Map();
    #listeners;
    /** @throws SG_ERR_OPTION, one sentence for each thing that keeps the service from starting */
    constructor(options) {
        const { store, logger, env = process.env, allowConfigDirOverlap = false } = options;
        const agents = agentTable(options.agents);
        this.#agents = agents;
        for (const { name } of [...agents.values()].filter(({ modesUnknown }) => modesUnknown))
            logger.warn({ agent: name }, 'whether a declared agent asks before it acts is not known, and dontAsk is refused for it: name its modes in agents[].modes');
        this.#env = env;
        this.#servesTools = options.servesTools ?? false;
        this.#notices = options.notices ?? logger;
        this.#listeners = new Listeners((err) => logger.error({ err }, 'a listener for profile changes failed'));
        const { clock = systemClock, retryAfter = (delayMs, run) => clock.after(delayMs, run) } = options;
        this.#snapshots = new ConfigSnapshots(clock);
        const declare = {
            ...options,
            agents,
            env,
            allowConfigDirOverlap,
            allowedCwdRoots: options.allowedCwdRoots,
        };
        this.#declared = new Map(declareProfiles(declare).map((info) => [info.name, { info, generation: generationOf(info) }]));
        const roots = configDirRoots(options.allowedConfigDirRoots, declare);
        const grants = new ProviderGrants(options.managedProfiles, env, options.egress);
        this.#grants = grants;
        const parts = { clock, retryAfter, store, roots, agents, grants, declared: this.#declared };
        this.#managed = store && new ManagedProfiles({ ...options, ...parts, store });
    }
    /**
     * Reads the store; call it once, before anything is resolved.
     * @throws SG_ERR_OPTION when what is stored cannot be read
     */
    async load() {
        await this.#managed?.load();
        for (const profile of this.#all())
            this.#warnOfTrust(profile);
    }
    /**
     * To be waited for before a profile is resolved, recalled, shown or listed that another process may have changed; undefined: there is
     * none. @throws SG_ERR_STORE_UNAVAILABLE
     */
    refreshed() {
        return this.#managed?.refreshed();
    }
    async close() {
        await this.#managed?.close();
        await this.#grants.close();
    }
    /** Whether profiles can be created, changed and deleted at all. */
    get isManageable() {
        return this.#managed !== undefined;
    }
    /**
     * The profile that a new session or job runs as.
     * @param name what the request names; absent when it names none
     * @throws SG_ERR_PROFILE_REQUIRED (400) none named and there are several · SG_ERR_PROFILE_FORBIDDEN (403) outside `allowedProfiles`,
     * there or not, named or implicit · SG_ERR_PROFILE_UNKNOWN (400) · SG_ERR_ENGINE_START (502) a stored profile that cannot run here
     */
    resolve(name, principal) {
        const found = name === undefined ? this.#implicit() : this.#find(name);
        if (!visible(principal, name ?? found.info.name))
            throw new GatewayError('SG_ERR_PROFILE_FORBIDDEN');
        if (!found)
            throw new GatewayError('SG_ERR_PROFILE_UNKNOWN');
        return usable(found);
    }
    #implicit() {
        const [only, second] = this.#all();
        if (second)
            throw new GatewayError('SG_ERR_PROFILE_REQUIRED');
        return only ?? NO_PROFILE;
    }
    /** The empty name, which sessions without a profile bear, exists as long as no profile is. */
    #find(name) {
        return this.get(name) ?? (name === '' && this.#all().length === 0 ? NO_PROFILE : undefined);
    }
    /**
     * The profile of a job or a session that was resolved earlier: as it is now, but only if it still is who it was.
     * @throws SG_ERR_PROFILE_CHANGED when it was deleted, replaced, or points elsewhere · SG_ERR_ENGINE_START when it cannot run here
     */
    recall(name, generation) {
        // A gateway that declares nothing still runs nameless sessions as the operator, whatever was created over HTTP since.
        const found = name === '' && this.#declared.size === 0 ? NO_PROFILE : this.get(name);
        if (found?.generation !== generation)
            throw new GatewayError('SG_ERR_PROFILE_CHANGED', {
                detail: `Profile ${JSON.stringify(name)} ${found ? 'now runs as someone else' : 'no longer exists'}.`,
            });
        return usable(found);
    }
    get(name) {
        return this.#declared.get(name) ?? this.#managed?.get(name);
    }
    #all() {
        return [...this.#declared.values(), ...(this.#managed?.all() ?? [])];
    }
    /** Declared profiles in their order, then managed ones in theirs. */
    list(principal) {
        return {
            profiles: this.#all()
                .filter(({ info }) => visible(principal, info.name))
                .map((profile) => this.#shown(profile)),
            canManage: this.isManageable && principal.canManageProfiles === true,
        };
    }
    /** @throws SG_ERR_PROFILE_FORBIDDEN (403) · SG_ERR_PROFILE_NOT_FOUND (404) */
    async describe(name, principal) {
        assertVisible(name, principal);
        const found = this.get(name);
        if (!found)
            throw new GatewayError('SG_ERR_PROFILE_NOT_FOUND');
        const { info } = found;
        const row = this.agentOf(info);
        const config = info.configDir && row ? await this.#snapshots.read(info.configDir, row) : emptySnapshot();
        return { profile: this.#shown(found), config };
    }
    /**
     * @throws SG_ERR_PROFILES_NOT_MANAGEABLE, SG_ERR_PROFILE_FORBIDDEN (403) · SG_ERR_PROFILE_EXISTS (409) · SG_ERR_PROFILE_INVALID
     * (400) · SG_ERR_CONFIG_DIR_FORBIDDEN, SG_ERR_BYPASS_DISABLED (403)
     * @param takenKey of the request: kept in the same write
     */
    async create(request, principal, takenKey) {
        const managed = this.authorize(principal, request.name);
        const created = await managed.create(request, principal, takenKey);
        this.#listeners.emit('change', { type: 'created', name: created.info.name });
        return this.#shown(created);
    }
    /** Merges into a managed profile; `null` clears. @throws as `create`, SG_ERR_PROFILE_DECLARED (403), SG_ERR_PROFILE_NOT_FOUND (404) */
    async update(name, request, principal) {
        const managed = this.authorize(principal, name);
        const updated = await managed.update(name, request, principal);
        this.#listeners.emit('change', { type: 'updated', name });
        return this.#shown(updated);
    }
    /** Sessions that run go on; what is queued or parked fails when its turn comes. @throws as `update` */
    async remove(name, principal) {
        await this.authorize(principal, name).remove(name);
        this.#listeners.emit('change', { type: 'deleted', name });
    }
    /**
     * Whether the caller may manage, and this name: both have to hold, and neither tells whether the name exists.
     * @param name absent while it is not known yet
     */
    authorize(principal, name) {
        if (!this.#managed)
            throw new GatewayError('SG_ERR_NOT_FOUND');
        if (principal.canManageProfiles !== true)
            throw new GatewayError('SG_ERR_PROFILES_NOT_MANAGEABLE');
        if (name !== undefined)
            assertVisible(name, principal);
        return this.#managed;
    }
    /** The agent that runs a `cli` profile. */
    agentOf(profile) {
        return profile.engine === 'cli' ? this.#agents.get(profile.agent ?? DEFAULT_AGENT) : undefined;
    }
    /** How the models of a profile that a caller manages are reached; undefined for the operator's own, which reach anything. */
    fetchFor(profile) {
        return profile.managed && profile.engine === 'provider' ? this.#grants.fetchFor(profile) : undefined;
    }
    /** Pins a session to its profile's directory: on what `buildRunnerConfig` returned, as the last step before the engine. */
    pin(config, { info }) {
        const agentRow = this.agentOf(info);
        return agentRow ? pinConfigDir(config, info, { agentRow, env: this.#env, home: homedir() }) : config;
    }
    /** Shows the verdict of a credential probe on a profile, until the next one or until it runs as someone else. */
    reportCredentials(profile, state) {
        this.#credentials.set(identityOf(profile), state);
    }
    /**
     * Tells of changes after they were stored.
     * @returns unsubscribe
     */
    onChange(listener) {
        return this.#listeners.on('change', listener);
    }
    #shown(profile) {
        const { info } = profile;
        const credentials = this.#credentials.get(identityOf(profile));
        const trustsWorkspace = this.#cannotDistrust(info);
        if (!credentials && !trustsWorkspace)
            return info;
        return { ...info, ...(trustsWorkspace && { trustsWorkspace }), ...(credentials && { credentials }) };
    }
    /** Its agent runs what files of the working directory say, whatever the profile says. */
    #cannotDistrust(info) {
        const row = this.agentOf(info);
        return row !== undefined && cannotDistrust(row, info, this.#servesTools);
    }
    #warnOfTrust({ info }) {
        if (info.trustWorkspace === true || !this.#cannotDistrust(info))
            return;
        this.#notices.warn({ profile: info.name, agent: this.agentOf(info)?.name }, 'the agent runs what files of the working directory say (hooks, MCP servers, plugins) without asking, and cannot be kept from it here: use it only where you trust them; trustWorkspace: true says that you do');
    }
}
const identityOf = ({ info, generation }) => `${info.name} ${generation}`;
function assertVisible(name, principal) {
    if (!visible(principal, name))
        throw new GatewayError('SG_ERR_PROFILE_FORBIDDEN');
}
function usable(profile) {
    if (profile.problem === undefined)
        return profile;
    throw new GatewayError('SG_ERR_ENGINE_START', {
        detail: `Profile ${JSON.stringify(profile.info.name)} cannot run: ${profile.problem}`,
    });
}
//# sourceMappingURL=catalog.js.map