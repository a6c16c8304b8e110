import { configDirOf } from '../environment.js';
/**
 * Whether an agent cannot be kept from what the working directory says.
 * @param servesTools whether the gateway hosts tools of its own, which every session is to have
 */
export const cannotDistrust = ({ untrusted }, { trustWorkspace }, servesTools) => untrusted === undefined || (untrusted.withoutMcp === true && servesTools && trustWorkspace === undefined);
/** Whether files of the working directory that can run commands are honoured in sessions of a profile. */
export const isTrusted = (row, profile, servesTools) => profile.trustWorkspace === true || cannotDistrust(row, profile, servesTools);
/** What is to stand in an agent's environment, whoever else says something about it. */
export async function workspaceEnv(row, trusted, { env, cwd }) {
    const { untrusted = {}, command } = row;
    if (trusted)
        return { ...untrusted.trustedEnv };
    const configDir = configDirOf(row, env);
    return { ...untrusted.env, ...(await untrusted.prepare?.({ env, cwd, command, configDir })) };
}
/** The row of an agent at work where nothing is trusted. */
export const untrustedRow = (row) => row.untrusted?.modes ? { ...row, modes: { ...row.modes, ...row.untrusted.modes } } : row;
//# sourceMappingURL=trust.js.map