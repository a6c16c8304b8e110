import { CreateSessionRequest } from '../../schemas/sessions.js';
import { GatewayError, invalidField } from '../errors.js';
import { assertMeta } from '../lib/json-value.js';
import { resolveWithinRoots } from '../lib/paths-within-roots.js';
import { compileSchema } from '../lib/validation.js';
import { UNLIMITED } from '../principal.js';
import { applyPolicy, assertRunnerCan } from './policy.js';
const requestChecker = compileSchema(CreateSessionRequest);
/**
 * The door that every session comes through, from REST, the library and jobs alike: each step refuses or hands on, and nothing is
 * registered before the last.
 */
export class Admission {
    #options;
    constructor(options) {
        this.#options = options;
    }
    /** @param recalled the profile, when it was decided about earlier */
    async admit(request, principal = UNLIMITED, recalled) {
        requestChecker.assert(request);
        assertMeta(request.meta, 'meta');
        const { profiles, roots } = this.#options;
        const refreshed = recalled ? undefined : profiles.refreshed();
        if (refreshed)
            await refreshed;
        const profile = recalled ?? profiles.resolve(request.profile, principal);
        // one promise for the disk, none for the rest: every session comes through here
        const cwd = pathOrRefusal(await resolveWithinRoots(request.cwd, roots), 'cwd');
        return this.#configure(this.#policy(withDefaults(request, profile, cwd), profile), profile);
    }
    /**
     * Lets a parked session in again: as the same profile, through the same policy, configured afresh by the host.
     * @throws SG_ERR_PROFILE_CHANGED when its profile is gone or someone else
     */
    async readmit(request, profile, generation) {
        const refreshed = this.#options.profiles.refreshed();
        if (refreshed)
            await refreshed;
        const recalled = this.#options.profiles.recall(profile, generation);
        const asked = this.#policy({ ...request, cwd: await this.#resolveCwd(request.cwd) }, recalled);
        return this.#configure(asked, recalled);
    }
    #configure(asked, profile) {
        const { buildRunnerConfig } = this.#options;
        const pinned = (config) => ({
            profile,
            request: asked,
            config: this.#options.profiles.pin(config, profile),
        });
        // the hook gets a copy when there is one: what is kept is what was asked
        return buildRunnerConfig ? this.#hostConfig(buildRunnerConfig, { ...asked }, profile).then(pinned) : pinned(asked);
    }
    /**
     * Refuses at once what `admit` would refuse later; the host's hook is not asked.
     * @param request its form was checked
     * @returns the profile and the resolved `cwd`
     */
    async examine(request, principal = UNLIMITED) {
        const refreshed = this.#options.profiles.refreshed();
        if (refreshed)
            await refreshed;
        const profile = this.#options.profiles.resolve(request.profile, principal);
        const { cwd } = this.#policy(withDefaults(request, profile, await this.#resolveCwd(request.cwd)), profile);
        return { profile, cwd };
    }
    /** @throws SG_ERR_ENGINE_START, or a 400 for what the engine cannot do; the runner is closed again then */
    async buildRunner({ profile, config }, sessionId, bridge, restore) {
        const { engines, deferredTools, profiles, standstill } = this.#options;
        if (standstill?.stands)
            await standstill.goesOn;
        const create = engines[profile.info.engine];
        if (!create)
            throw new GatewayError('SG_ERR_ENGINE_START', { detail: 'No createEngineRunner is configured.' });
        const context = { sessionId, config, profile: profile.info, bridge };
        if (deferredTools.length > 0)
            context.deferredTools = deferredTools;
        if (restore)
            context.restore = restore;
        const fetch = profiles.fetchFor(profile.info);
        if (fetch)
            context.fetch = fetch;
        let runner;
        try {
            runner = await create(context);
        }
        catch (error) {
            throw startFailure(error);
        }
        if (!isRunner(runner))
            throw new GatewayError('SG_ERR_ENGINE_START', { detail: 'createEngineRunner returned no runner.' });
        try {
            assertRunnerCan(config, runner.capabilities);
        }
        catch (refusal) {
            await runner.close().catch(() => { });
            throw refusal;
        }
        return runner;
    }
    async #hostConfig(buildRunnerConfig, asked, profile) {
        // kept here, since the hook may write into what it is given
        const { cwd: acceptedCwd, permissionMode: acceptedMode } = asked;
        let built;
        try {
            built = await buildRunnerConfig(asked);
        }
        catch (error) {
            throw startFailure(error);
        }
        if (typeof built !== 'object' || built === null)
            throw new GatewayError('SG_ERR_ENGINE_START', { detail: 'buildRunnerConfig returned no config.' });
        const cwd = built.cwd === acceptedCwd ? acceptedCwd : await this.#resolveCwd(built.cwd);
        const permissionMode = built.permissionMode ?? acceptedMode;
        return this.#policy({ ...built, cwd, ...(permissionMode !== undefined && { permissionMode }) }, profile);
    }
    #policy(config, profile) {
        return applyPolicy(config, profile.info, this.#options.disableBypassPermissions);
    }
    async #resolveCwd(cwd) {
        return pathOrRefusal(await resolveWithinRoots(cwd, this.#options.roots), 'cwd');
    }
}
/** Fills in what the profile has defaults for; an explicit value wins. The mode is always explicit towards the engine. */
function withDefaults(request, { info }, cwd) {
    const permissionMode = request.permissionMode ?? info.defaults?.permissionMode ?? 'default';
    const model = request.model ?? info.defaults?.model;
    // spread last: V8 makes a shape for each object that something is added to after it was spread
    const config = { permissionMode, ...request };
    config.permissionMode = permissionMode;
    config.cwd = cwd;
    if (model !== undefined)
        config.model = model;
    return config;
}
/** The resolved path, or the refusal that the contract has for why there is none. */
export function pathOrRefusal(resolved, field) {
    if (resolved.ok)
        return resolved.path;
    switch (resolved.reason) {
        case 'outside':
            throw invalidField(field, 'lies outside the allowed roots.', 'SG_ERR_CWD_FORBIDDEN');
        case 'missing':
            throw invalidField(field, 'does not exist.', 'SG_ERR_CWD_INVALID');
        case 'not-a-directory':
            throw invalidField(field, 'is no directory.', 'SG_ERR_CWD_INVALID');
        case 'invalid':
            throw invalidField(field, 'must be an absolute path of at most 4096 bytes.', 'SG_ERR_CWD_INVALID');
    }
}
/** A host's code returns what it likes. */
function isRunner(built) {
    if (typeof built !== 'object' || built === null)
        return false;
    const { start, send, interrupt, close, capabilities } = built;
    const isWhole = [start, send, interrupt, close].every((member) => typeof member === 'function');
    return isWhole && Array.isArray(capabilities?.permissionModes);
}
/** A refusal of ours says what to do; what a host's code threw may hold anything and goes to the log only, as the cause. */
const startFailure = (error) => error instanceof GatewayError ? error : new GatewayError('SG_ERR_ENGINE_START', { cause: error });
//# sourceMappingURL=admission.js.map