import { CLI_PERMISSION_MODES, PROVIDER_PERMISSION_MODES } from '../../schemas/permissions.js';
import { GatewayError, invalidField } from '../errors.js';
/** Refuses a permission mode that policy or the engine excludes; `at` names the field. */
export function assertPermissionMode(mode, engine, disableBypassPermissions, at = 'permissionMode') {
    if (mode === 'bypassPermissions' && disableBypassPermissions)
        throw new GatewayError('SG_ERR_BYPASS_DISABLED');
    const modes = engine === 'provider' ? PROVIDER_PERMISSION_MODES : CLI_PERMISSION_MODES;
    if (!modes.includes(mode))
        throw invalidField(at, `a ${engine} session has ${modes.join(', ')}, not ${mode}.`, 'SG_ERR_PERMISSION_MODE');
}
/**
 * The policy that every way to start a session passes, on the request and again on what `buildRunnerConfig` made of it.
 * @returns the config, without a pre-authorisation that is not to be had
 */
export function applyPolicy(config, profile, disableBypassPermissions) {
    if (config.permissionMode !== undefined)
        assertPermissionMode(config.permissionMode, profile.engine, disableBypassPermissions);
    if (profile.engine === 'provider') {
        if (config.mcpServers !== undefined)
            throw new GatewayError('SG_ERR_MCP_SERVERS_NOT_ALLOWED', {
                errors: [{ path: 'mcpServers', message: 'Not for provider sessions.' }],
            });
    }
    if (config.capabilities !== undefined)
        assertGranted(config.capabilities, profile);
    if (config.forkSession && config.resume === undefined)
        throw invalidField('forkSession', 'needs resume, the session to fork from.');
    if (disableBypassPermissions && config.allowDangerouslySkipPermissions !== undefined) {
        const { allowDangerouslySkipPermissions: _stripped, ...rest } = config;
        return rest;
    }
    return config;
}
/** Capabilities may only narrow what the profile grants by name. */
function assertGranted(capabilities, profile) {
    if (profile.engine !== 'provider')
        throw invalidField('capabilities', 'only provider sessions have capabilities.');
    if (!profile.session)
        throw invalidField('capabilities', `profile ${profile.name} grants none by name.`, 'SG_ERR_CAPABILITY_NOT_GRANTED');
    const granted = profile.session.capabilities ?? [];
    const refused = capabilities.find((capability) => !granted.includes(capability));
    if (refused !== undefined)
        throw invalidField('capabilities', `profile ${profile.name} does not grant ${refused}.`, 'SG_ERR_CAPABILITY_NOT_GRANTED');
}
/** Refuses what the runner that was built cannot do. */
export function assertRunnerCan(config, can) {
    if (config.permissionMode !== undefined && !can.permissionModes.includes(config.permissionMode))
        throw invalidField('permissionMode', `this engine has ${can.permissionModes.join(', ')}, not ${config.permissionMode}.`, 'SG_ERR_PERMISSION_MODE');
    if (config.resume !== undefined && !can.resume)
        throw invalidField('resume', 'this engine cannot resume a session.', 'SG_ERR_UNSUPPORTED');
    if (config.forkSession && !can.fork)
        throw invalidField('forkSession', 'this engine cannot fork a session.', 'SG_ERR_UNSUPPORTED');
}
//# sourceMappingURL=policy.js.map