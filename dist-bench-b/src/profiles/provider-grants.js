import { fetch as guardedFetch } from 'undici';
import { PEERS } from '../engines/provider/peers.js';
import { GatewayError, invalidField, optionError } from '../errors.js';
import { EgressGuard } from '../webhooks/egress.js';
const invalid = (field, message) => invalidField(`provider.${field}`, message, 'SG_ERR_PROFILE_INVALID');
/**
 * Decides which credentials and addresses a managed provider profile may name. Whoever may manage profiles must learn nothing about the
 * gateway's environment by it: a variable that is not listed and one that is not set are refused in the same words.
 */
export class ProviderGrants {
    #keys;
    #endpoints;
    #env;
    #guard;
    #operatorGuard = new EgressGuard({ allowPrivateNetworks: true });
    /** @throws SG_ERR_OPTION for an endpoint that is no http or https URL */
    constructor(grants = {}, env = {}, policy = {}) {
        this.#keys = new Set(grants.apiKeyEnvs);
        this.#endpoints = (grants.endpoints ?? []).map(({ baseUrl, apiKeyEnv }, index) => {
            if (!/^https?:$/.test(URL.canParse(baseUrl) ? new URL(baseUrl).protocol : ''))
                throw optionError(`managedProfiles.endpoints[${index}].baseUrl`, 'must be an http or https URL.');
            return { baseUrl: comparable(baseUrl), apiKeyEnv };
        });
        this.#env = env;
        this.#guard = new EgressGuard(policy);
    }
    /** @throws SG_ERR_PROFILE_INVALID naming the field */
    assert({ id, baseUrl, apiKeyEnv }) {
        const peer = PEERS.get(id);
        const key = apiKeyEnv ?? peer?.keyEnv;
        // Some packages find a key by themselves, under whatever name.
        const isKeyKnown = key !== undefined || peer === undefined;
        if (baseUrl !== undefined && isKeyKnown && this.#isListed(baseUrl, key)) {
            if (key !== undefined && !this.#env[key])
                throw this.#keyRefusal();
            return;
        }
        if (apiKeyEnv !== undefined && !(this.#keys.has(apiKeyEnv) && this.#env[apiKeyEnv]))
            throw this.#keyRefusal();
        if (baseUrl === undefined)
            return;
        if (apiKeyEnv !== undefined || peer !== undefined)
            throw invalid('baseUrl', 'with a key only as a pair that managedProfiles.endpoints lists.');
        try {
            this.#guard.checkUrl(baseUrl);
        }
        catch (refused) {
            if (!(refused instanceof GatewayError))
                throw refused;
            throw invalid('baseUrl', refused.message);
        }
    }
    /** Reaches the models of a managed profile: connects only where the policy lets it, and follows no redirect with its key. */
    fetchFor({ provider }) {
        const baseUrl = provider?.baseUrl;
        const isOperators = baseUrl !== undefined && this.#endpoints.some((listed) => listed.baseUrl === comparable(baseUrl));
        const { dispatcher } = isOperators ? this.#operatorGuard : this.#guard;
        const reach = (input, init) => guardedFetch(input, { ...init, dispatcher, redirect: 'error' });
        return reach;
    }
    async close() {
        await Promise.all([this.#guard.dispatcher.destroy(), this.#operatorGuard.dispatcher.destroy()]);
    }
    #isListed(baseUrl, apiKeyEnv) {
        return this.#endpoints.some((listed) => listed.baseUrl === comparable(baseUrl) && listed.apiKeyEnv === apiKeyEnv);
    }
    #keyRefusal() {
        return invalid('apiKeyEnv', 'is none that managed profiles may use here; the operator lists them in managedProfiles.');
    }
}
const comparable = (url) => new URL(url).href.replace(/\/+$/, '');
//# sourceMappingURL=provider-grants.js.map