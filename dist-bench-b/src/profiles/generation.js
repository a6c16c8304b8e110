import { createHash } from 'node:crypto';
import { DEFAULT_AGENT } from '../engines/cli/agent-table.js';
import { comparablePath } from './config-dir.js';
/**
 * Tells what runs under a profile's name: who it runs as, and for a managed one which creation it is. A parked session keeps it, and
 * wakes only where it is still the same. What merely shapes a session (model, defaults, grants, description) is not part of it.
 * @param creation random for every `POST /profiles`; empty for a declared profile, which stays the same over a restart
 */
export function generationOf(profile, creation = '') {
    const { engine, agent = DEFAULT_AGENT, configDir, provider } = profile;
    const directory = configDir && comparablePath(configDir);
    const identity = [creation, engine, agent, directory, provider?.id, provider?.baseUrl, provider?.apiKeyEnv];
    return createHash('sha256').update(JSON.stringify(identity)).digest('base64url').slice(0, 22);
}
//# sourceMappingURL=generation.js.map