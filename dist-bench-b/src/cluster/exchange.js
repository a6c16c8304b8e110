import { toError } from '../errors.js';
import { within } from '../lib/within.js';
/** What a node holds in memory that another one may have changed. */
export const CHANGES = ['notifications', 'signIns', 'subscriptions', 'inbox'];
/** Of the routes for nodes alone, under the base path. */
export const EXCHANGE_PATH = '/cluster/v1';
/** A node that says nothing for so long is left out. */
const PATIENCE_MS = 2_000;
/** Before a node that did not hear it is told again. */
const AGAIN_MS = 1_000;
/** What nodes tell and ask each other beside the requests that they pass on. */
export class Exchange {
    #parts;
    #lines = new Map();
    #listeners = new Map();
    #closed = false;
    constructor(parts) {
        this.#parts = parts;
    }
    close() {
        this.#closed = true;
    }
    /** @param listener one for each; resolves when it has looked */
    on(change, listener) {
        this.#listeners.set(change, listener);
    }
    /** Tells every other node, and resolves when each of them has looked, or did not hear it. Never rejects. */
    async tell(change) {
        if (this.#closed)
            return;
        await Promise.all(this.#parts.peers.others().map((node) => this.#tellOne(node, change)));
    }
    /** Another node has told something. */
    async told(told) {
        await Promise.all(told.changed.map(async (change) => this.#listeners.get(change)?.(told)));
    }
    /** Asks every other node. @returns what those gave that answered in time, by their numbers */
    async askAll(path, question) {
        const answers = new Map();
        const ask = async (node) => {
            answers.set(node.n, await this.askOne(node, path, question));
        };
        await Promise.all(this.#parts.peers.others().map((node) => ask(node).catch((error) => this.#onSilent(node, error))));
        return answers;
    }
    /** Asks one node. @throws when it does not answer in time */
    async askOne(node, path, question) {
        return JSON.parse(await this.#post(node, path, question));
    }
    async #tellOne(node, change) {
        const line = this.#lines.get(node.n) ?? { pending: new Set(), telling: undefined };
        this.#lines.set(node.n, line);
        line.pending.add(change);
        // what is under way was read before
        await line.telling;
        line.telling ??= this.#send(node, line).finally(() => {
            line.telling = undefined;
        });
        await line.telling;
    }
    async #send(node, line) {
        const changed = [...line.pending];
        line.pending.clear();
        if (changed.length === 0)
            return;
        const { n, waiting } = this.#parts;
        const told = { from: n(), changed, ...(changed.includes('inbox') && { waiting: waiting() }) };
        try {
            await this.#post(node, '/changes', told);
        }
        catch (error) {
            this.#onSilent(node, error);
            this.#again(node, changed);
        }
    }
    #again(node, changed) {
        this.#parts.clock.after(AGAIN_MS, () => {
            const isThere = !this.#closed && this.#parts.peers.others().some(({ n }) => n === node.n);
            if (!isThere)
                this.#lines.delete(node.n);
            else
                for (const change of changed)
                    void this.#tellOne(node, change);
        });
    }
    /** @returns what it says, whole */
    #post(node, path, body) {
        const { clock, peers, basePath } = this.#parts;
        const late = new AbortController();
        const asked = async () => {
            const response = await peers.ask(node, {
                ...{
                    method: 'POST',
                    path: `${basePath}${EXCHANGE_PATH}${path}`,
                    body: JSON.stringify(body),
                    signal: late.signal,
                },
                headers: { 'content-type': 'application/json' },
            });
            if (!response.ok)
                throw new Error(`it answered ${response.status}`);
            return response.text();
        };
        const onLate = () => {
            const error = new Error(`no answer in ${PATIENCE_MS} ms`);
            late.abort(error);
            throw error;
        };
        return within(PATIENCE_MS, asked(), { clock, onLate });
    }
    #onSilent(node, error) {
        if (this.#closed)
            return;
        this.#parts.logger.debug?.({ err: toError(error), node: node.name }, 'another node did not answer; it was left out');
    }
}
//# sourceMappingURL=exchange.js.map