export { createProviderRunner, providerEngine } from './engine.js';
export { PROVIDER_IDS } from './peers.js';
//# sourceMappingURL=index.js.map