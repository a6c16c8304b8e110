import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { GatewayError, toError } from '../../errors.js';
import { DEMO_MODEL, demoModel } from './demo.js';
import { PEERS, PROVIDER_IDS } from './peers.js';
const cannotStart = (detail, cause) => new GatewayError('SG_ERR_ENGINE_START', { detail, cause });
/**
 * The models of a profile's provider, with its credentials read from the environment.
 * @throws {GatewayError} `SG_ERR_ENGINE_START` naming the variable that is not set, the package to install or the field that is missing
 */
export async function openProvider(provider, options) {
    const peer = PEERS.get(provider.id);
    const keyEnv = provider.apiKeyEnv ?? peer?.keyEnv;
    const apiKey = (keyEnv && options.env[keyEnv]) || undefined;
    if (keyEnv && !apiKey) {
        if (options.isManaged)
            throw cannotStart(`The key of provider ${provider.id} is none that managed profiles may use here.`);
        throw cannotStart(`The environment variable ${keyEnv} holds the key of provider ${provider.id}, and is not set.`);
    }
    return {
        apiKeySource: keyEnv ?? 'none',
        models: modelList(provider),
        open: await openModels(provider, peer, apiKey, options),
        redact: (text) => (apiKey ? text.replaceAll(apiKey, '[redacted]') : text),
    };
}
/** The declared list, with the default model in it. */
function modelList({ id, model, models }) {
    const listed = new Set([...(model ? [model] : []), ...(models ?? [])]);
    if (listed.size > 0)
        return [...listed];
    return id === 'demo' ? [DEMO_MODEL] : undefined;
}
async function openModels(provider, peer, apiKey, options) {
    const settings = {
        ...(apiKey && { apiKey }),
        ...(provider.baseUrl && { baseURL: provider.baseUrl }),
        ...(options.fetch && { fetch: options.fetch }),
    };
    if (provider.id === 'demo')
        return (modelId) => demoModel(modelId, { chunkDelayMs: options.demoChunkDelayMs });
    if (provider.id === 'openai-compatible') {
        if (!provider.baseUrl)
            throw cannotStart('Provider openai-compatible needs a baseUrl.');
        return createOpenAICompatible({ ...settings, name: provider.id, baseURL: provider.baseUrl, includeUsage: true });
    }
    if (!peer) {
        throw cannotStart(`There is no provider ${provider.id}. Known here: ${PROVIDER_IDS.join(', ')}.`);
    }
    return (await importPeer(provider.id, peer))(settings);
}
async function importPeer(id, peer) {
    const install = `npm i ${peer.package}@^${peer.version}`;
    try {
        const module = (await import(peer.package));
        const factory = module[peer.factory];
        if (factory)
            return factory;
    }
    catch (thrown) {
        const { code, message } = toError(thrown);
        const missing = code === 'ERR_MODULE_NOT_FOUND' && message.includes(peer.package);
        const what = missing ? `Provider ${id} needs a package that is not installed` : `${peer.package} failed to load`;
        throw cannotStart(`${what}. Run: ${install}`, thrown);
    }
    throw cannotStart(`The installed ${peer.package} does not fit. Run: ${install}`);
}
//# sourceMappingURL=models.js.map