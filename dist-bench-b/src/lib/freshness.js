import { Anew } from './anew.js';
/**
 * Whether what this process has read is still what is kept, where several processes keep it: asked of the store before it is used, and read
 * again when another one has changed it.
 */
export class Freshness {
    #version;
    #load;
    #comparing = new Anew(() => this.#compare());
    #known;
    /** @param load reads all of it anew */
    constructor(version, load) {
        this.#version = version;
        this.#load = load;
    }
    /** Resolves when everything is read that was kept before the call. @throws what the store throws */
    check() {
        return this.#comparing.done();
    }
    async #compare() {
        const version = await this.#version();
        if (version === this.#known)
            return;
        await this.#load();
        this.#known = version;
    }
}
//# sourceMappingURL=freshness.js.map