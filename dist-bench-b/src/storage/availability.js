import { GatewayError, toError } from '../errors.js';
import { PATIENCE_MS, unavailable } from '../lib/patience.js';
import { isFenced, isRefusal, isUnreadable, StorageError } from './storage.js';
/** How often a storage that takes nothing is asked again. */
const PROBE_MS = 1_000;
const PARTS = [
    ...['journal', 'sessions', 'profiles', 'queue', 'idempotency', 'outbox'],
    ...['notifications', 'channels', 'signIns', 'usage'],
];
/** What is answered without a write says nothing of whether one would be taken. */
const READS = new Set([
    ...[
        'list',
        'get',
        'read',
        'dailyTokens',
        'atRest',
        'listed',
        'awake',
        'ended',
        'endedFirst',
        'dueFirst',
        'restTotals',
        'sessionOf',
        'continues',
        'claimNext',
        'claim',
        'attempts',
        'begin',
        'left',
        'gone',
        'oldest',
        'key',
        'keyOnce',
        'subscriptions',
        'version',
        'counts',
        'delayed',
        'isHeldUp',
    ],
]);
/** What may well take long. */
const LONG = new Set(['list', 'awake', 'restTotals', 'prune', 'subscriptions']);
/**
 * Whether a storage takes what it is given: told by everything that is asked of it and, while it takes nothing, by asking it again every
 * second. The first write that it takes wakes all who wait for it.
 */
export class StorageWatch {
    /** The storage, watched. */
    storage;
    #given;
    #clock;
    #logger;
    #waiting = new Set();
    #probe;
    #closed = false;
    /** It takes nothing from this process any more: whoever would try again does not. */
    #fenced = false;
    /** What was asked of the storage and is not answered yet. */
    #asked = 0;
    #silence;
    /** Nothing that was asked was answered for so long that nothing more is asked. */
    #silent = false;
    constructor(given, { clock, logger }) {
        this.#given = given;
        this.#clock = clock;
        this.#logger = logger;
        // a host's own storage may have some of them
        const watched = PARTS.flatMap((name) => {
            const part = given[name];
            return part ? [[name, this.#watched(part)]] : [];
        });
        this.storage = Object.assign(Object.create(given), Object.fromEntries(watched), {
            open: () => given.open(),
            close: () => this.#close(),
        });
    }
    /** False from the first failure until something was written again, and while the storage does not answer. */
    get available() {
        return this.#probe === undefined && !this.#silent && !this.#fenced;
    }
    /** Runs `work` after `delayMs`, or as soon as the storage takes something again. */
    retryAfter = (delayMs, work) => {
        const run = () => {
            if (this.#fenced)
                return;
            timer.cancel();
            this.#waiting.delete(run);
            work();
        };
        const timer = this.#clock.after(delayMs, run);
        this.#waiting.add(run);
        return {
            cancel: () => {
                timer.cancel();
                this.#waiting.delete(run);
            },
        };
    };
    #watched(part) {
        return eachCall(part, (name, call) => {
            // what is not even asked cannot happen later
            if (this.#silent)
                return Promise.reject(new StorageError('STORAGE_SILENT', 'The storage does not answer.'));
            const answer = call();
            if (!(answer instanceof Promise))
                return answer;
            const isLong = LONG.has(name);
            if (!isLong)
                this.#onAsked();
            answer.then(() => {
                if (!isLong)
                    this.#onAnswer();
                if (!READS.has(name))
                    this.#onTaken();
            }, (error) => {
                if (!isLong)
                    this.#onAnswer();
                this.#onFailed(error);
            });
            return answer;
        });
    }
    #onAsked() {
        this.#asked++;
        this.#listen();
    }
    #listen() {
        this.#silence ??= this.#clock.after(PATIENCE_MS, () => {
            this.#silent = true;
            this.#logger.error({ afterMs: PATIENCE_MS }, 'the storage does not answer; nothing is taken until it does');
        });
    }
    #onAnswer() {
        this.#asked--;
        this.#silence?.cancel();
        this.#silence = undefined;
        if (this.#asked > 0 && !this.#closed)
            this.#listen();
        if (!this.#silent)
            return;
        this.#silent = false;
        this.#logger.warn({}, 'the storage answers again');
        if (!this.#probe)
            for (const run of [...this.#waiting])
                run();
    }
    #onTaken() {
        if (!this.#probe)
            return;
        this.#probe.cancel();
        this.#probe = undefined;
        this.#logger.warn({}, 'the storage takes what it is given again');
        for (const run of [...this.#waiting])
            run();
    }
    #onFailed(error) {
        if (isFenced(error))
            this.#onFenced();
        if (this.#probe || this.#closed || this.#fenced || isRefusal(error) || isUnreadable(error))
            return;
        this.#logger.error({ err: toError(error) }, 'the storage fails; nothing that has to be kept is taken until it works');
        this.#probeLater();
    }
    #onFenced() {
        this.#fenced = true;
        this.#probe?.cancel();
        this.#probe = undefined;
        this.#waiting.clear();
    }
    #probeLater() {
        this.#probe = this.#clock.after(PROBE_MS, () => {
            const probe = this.#given.probe?.();
            if (probe)
                probe.then(() => this.#onTaken(), () => this.#probe && !this.#closed && this.#probeLater());
            // it is asked by whoever waits for it, and by the next caller
            else
                this.#onTaken();
        });
    }
    #close() {
        this.#closed = true;
        this.#probe?.cancel();
        this.#silence?.cancel();
        return this.#given.close();
    }
}
/** A store whose failures are refusals: to the caller "come again", with the cause for the log. */
export const refusing = (store) => eachCall(store, (_name, call) => {
    try {
        const answer = call();
        return answer instanceof Promise ? answer.catch(refuse) : answer;
    }
    catch (error) {
        return refuse(error);
    }
});
function refuse(error) {
    if (error instanceof GatewayError || isRefusal(error))
        throw error;
    throw unavailable(error);
}
/** The same object, whose methods are called by `around`. */
function eachCall(target, around) {
    const known = new Map();
    return new Proxy(target, {
        get(_target, name) {
            const member = Reflect.get(target, name);
            if (typeof member !== 'function')
                return member;
            if (!known.has(name)) {
                // looked up at each call: a host may have replaced it
                const call = (given) => Reflect.apply(Reflect.get(target, name), target, given);
                known.set(name, (...given) => around(String(name), () => call(given)));
            }
            return known.get(name);
        },
    });
}
//# sourceMappingURL=availability.js.map