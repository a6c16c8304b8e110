import { comparablePath } from './config-dir.js';
/** The gateway's own name for the variable, whichever agent runs. */
export const CONFIG_DIR_ENV = 'AGENT_CONFIG_DIR';
/**
 * Makes a `cli` session run in its profile's config directory, whatever `buildRunnerConfig` put into `env` before: call it after that
 * hook. Nothing else of the environment is touched, credentials least of all.
 *
 * Where the agent would go there by itself nothing is set: some agents look for their credentials elsewhere once the variable is set,
 * be it to the very default. Directories are compared by real path.
 * @returns the same config when nothing needs to be pinned
 */
export function pinConfigDir(config, profile, options) {
    const { configDir } = profile;
    if (configDir === undefined || profile.engine !== 'cli')
        return config;
    const { agentRow } = options;
    const env = { ...options.env, ...config.env };
    const target = comparablePath(configDir);
    const isTarget = (path) => Boolean(path) && comparablePath(path) === target;
    const own = env[agentRow.configDirEnv] || undefined;
    const goesThere = own
        ? isTarget(own) && (agentRow.configDirEnvToo ?? []).every((name) => isTarget(env[name]))
        : isTarget(agentRow.defaultConfigDir?.(env.HOME || options.home));
    const pinned = {};
    if (!goesThere)
        for (const name of variables(agentRow))
            pinned[name] = configDir;
    // Left over from the operator or the hook, and naming another directory than the session's.
    else if (env[CONFIG_DIR_ENV] && !isTarget(env[CONFIG_DIR_ENV]))
        pinned[CONFIG_DIR_ENV] = configDir;
    return Object.keys(pinned).length === 0 ? config : { ...config, env: { ...config.env, ...pinned } };
}
/** The directory in which sessions run that have no profile to say so: the operator's. */
export function operatorConfigDir({ agentRow, env, home }) {
    return env[CONFIG_DIR_ENV] || env[agentRow.configDirEnv] || agentRow.defaultConfigDir?.(env.HOME || home);
}
const variables = (row) => [CONFIG_DIR_ENV, row.configDirEnv, ...(row.configDirEnvToo ?? [])];
//# sourceMappingURL=pin.js.map