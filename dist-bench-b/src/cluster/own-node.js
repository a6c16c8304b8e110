import { toError } from '../errors.js';
import { VERSION } from '../lib/package-root.js';
import { keeperOf } from '../storage/cluster.js';
import { TAKEN_KINDS } from './cluster.js';
/** Of what nodes say to each other. */
const PROTOCOL = 1;
/** Of places that are remembered. */
const MAX_PLACES = 100_000;
/** This process in its cluster: where things are, and what was taken over. */
export class OwnNode {
    options;
    #storage;
    hops;
    #nodeListeners = new Set();
    #clock;
    #logger;
    #announced;
    #takeUps = new Map();
    #residence = new Map();
    /** Owners of what is elsewhere, by kind and id. */
    #places = new Map();
    /** What is being claimed for somebody, by id. */
    #claims = new Map();
    /** Nodes that are set up differently and were told of. */
    #different = new Set();
    #url;
    /** One taking after the other, from the start of the gateway on. */
    #takingUp;
    #started = () => { };
    constructor({ options, storage, hops, clock, logger, slots, digest }) {
        this.options = options;
        this.#storage = storage;
        this.hops = hops;
        this.#clock = clock;
        this.#logger = logger;
        this.#announced = { slots, digest };
        this.#url = options.url;
        this.#takingUp = new Promise((resolve) => {
            this.#started = resolve;
        });
        storage.on('nodes', () => this.#onNodes());
    }
    get self() {
        return { n: this.#storage.n, name: this.options.node, url: this.#url };
    }
    get state() {
        return this.#storage.state;
    }
    others() {
        return this.#storage.nodes().filter(({ n }) => n !== this.#storage.n);
    }
    /** This node as the others see it; absent while it is none. */
    itself() {
        return this.#storage.nodes().find(({ n }) => n === this.#storage.n);
    }
    /** Calls when a node has come or gone. */
    onNodes(listener) {
        this.#nodeListeners.add(listener);
    }
    /** Before it is announced. @param port which the system chose, where the option says 0 */
    listensOn(port) {
        const url = new URL(this.options.url);
        if (url.port === '0')
            url.port = String(port);
        this.#url = url.origin;
    }
    /** Before the storage is opened, which joins. */
    announce() {
        const { slots, digest } = this.#announced;
        const node = {
            name: this.options.node,
            url: this.#url,
            protocol: PROTOCOL,
            version: VERSION,
            slots,
            config: digest,
        };
        this.#storage.announce(node, this.options.leaseMs);
    }
    /** The gateway has taken up what it owned before: what came since is next. */
    started() {
        // not sooner: whoever hears of it takes over, and what is read at a start is in several steps
        this.#storage.on('taken', (taken) => void this.#takeUp(taken));
        this.#started();
        this.#compare(this.others());
    }
    /** Says that it is about to leave; that others do not hear of it keeps nothing waiting. */
    async drain() {
        await this.#storage.drain().catch((error) => {
            this.#logger.warn({ err: toError(error) }, 'the other nodes could not be told that this one leaves');
        });
    }
    onTaken(kind, takeUp) {
        this.#takeUps.set(kind, takeUp);
    }
    onResidence(kind, isHere) {
        this.#residence.set(kind, isHere);
    }
    isResident(target) {
        const [kind, id] = partsOf(target);
        return this.#residence.get(kind)?.(id) ?? false;
    }
    async where(target) {
        if (this.isResident(target))
            return 'here';
        const known = this.#places.get(keyOf(target));
        // one that was looked for while its node was being declared dead is remembered with that node
        if (known && known.until > this.#clock.now() && this.#isAlive(known.node))
            return known.node;
        const place = await this.#placeOf(target);
        return place ? this.#settle(target, place) : 'here';
    }
    /** What was remembered of it was wrong. */
    forget(target) {
        this.#places.delete(keyOf(target));
    }
    ask(node, request) {
        return this.hops.ask(node, request);
    }
    #placeOf(target) {
        const [kind, id] = partsOf(target);
        switch (kind) {
            case 'session':
                return this.#storage.placeOfSession(id);
            case 'execution':
                return this.#storage.placeOfExecution(id);
            case 'job':
                return this.#storage.placeOfJob(id);
        }
    }
    async #settle(target, place) {
        const keeper = place.owner ?? keeperOf(place, this.self, this.#storage.nodes());
        if (keeper)
            return this.#at(target, keeper);
        // while it is queued or over, every node says the same of it
        return 'job' in target ? 'here' : this.#claim(target, place.id);
    }
    async #at(target, node) {
        if (node.n === this.#storage.n) {
            // this one's by a taking that may still be under way
            await this.#takingUp;
            return 'here';
        }
        if (this.#places.size >= MAX_PLACES)
            this.#places.clear();
        this.#places.set(keyOf(target), { node, until: this.#clock.now() + this.options.leaseMs / 2 });
        return node;
    }
    #isAlive({ n }) {
        return this.#storage.nodes().some((node) => node.n === n);
    }
    /** Once for all who ask at the same time. */
    #claim(target, id) {
        const known = this.#claims.get(id);
        if (known)
            return known;
        const claim = this.#claimNow(target, id).finally(() => this.#claims.delete(id));
        this.#claims.set(id, claim);
        return claim;
    }
    async #claimNow(target, id) {
        const place = await this.#storage.claim(id);
        if (!place)
            return 'here';
        if (place.owner && place.owner.n !== this.#storage.n)
            return this.#at(target, place.owner);
        if (place.owner)
            await this.#takeUp({ sessionIds: [id], jobIds: [], lanes: [], keys: [] });
        return 'here';
    }
    #takeUp(taken) {
        this.#takingUp = this.#takingUp.then(() => this.#takeUpNow(taken));
        return this.#takingUp;
    }
    async #takeUpNow(taken) {
        if (taken.from)
            this.#logger.info({ node: taken.from.name, sessions: taken.sessionIds.length, jobs: taken.jobIds.length }, 'this node goes on with what another one had');
        for (const kind of TAKEN_KINDS)
            try {
                await this.#takeUps.get(kind)?.(taken);
            }
            catch (error) {
                this.#logger.error({ err: toError(error), kind }, 'what another node had could not be taken up');
            }
    }
    #onNodes() {
        this.#places.clear();
        const nodes = this.#storage.nodes();
        this.hops.keep(nodes);
        for (const listener of this.#nodeListeners)
            listener(nodes);
        this.#compare(this.others());
    }
    /** Callers would find a difference by chance. */
    #compare(others) {
        for (const { n, name, config } of others) {
            if (config === this.#announced.digest || this.#different.has(n))
                continue;
            this.#different.add(n);
            this.#logger.warn({ node: name }, 'another node is set up differently: profiles, tools, basePath, maxBodyBytes, requireApiKey, disableBypassPermissions and agentState have to be the same at all of them');
        }
    }
}
const partsOf = (target) => 'session' in target
    ? ['session', target.session]
    : 'execution' in target
        ? ['execution', target.execution]
        : ['job', target.job];
const keyOf = (target) => partsOf(target).join('/');
//# sourceMappingURL=own-node.js.map