import { checkUrl, failureOf } from './failures.js';
import { NamedStatements, Pipeline } from './pipeline.js';
import { inSchema } from './schema.js';
const CONNECT_TIMEOUT_MS = 10_000;
/** Whoever has not answered for so long is gone: a cut connection does not fail, it hangs. */
const REPLY_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 10_000;
/** The goodbye of one who is gone never comes either. */
const END_TIMEOUT_MS = 1_000;
/** One connection to the database. */
export class Link {
    client;
    /** Resolves when it is lost or ended. */
    lost;
    /** Of the process that serves it. */
    backend = { pid: 0, since: '' };
    #schema;
    #named;
    /** Texts for this schema, made once. */
    #texts = new Map();
    #isLost = false;
    /** Until what was asked last is answered; never rejects. */
    #underWay;
    constructor(client, { schema, namedStatements }) {
        this.client = client;
        this.#schema = schema;
        this.#named = namedStatements ? new NamedStatements() : undefined;
        this.lost = new Promise((resolve) => {
            const onEnd = () => {
                this.#isLost = true;
                resolve();
            };
            client.once('end', onEnd);
            client.on('error', onEnd);
        });
    }
    /** @throws StorageError */
    static async open(options) {
        const { url, place, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
        checkUrl(url);
        let client;
        try {
            // loaded only now: most gateways have no use for it
            const { default: driver } = await import('pg');
            client = new driver.Client({
                connectionString: url,
                fallback_application_name: 'session-gateway',
                connectionTimeoutMillis: connectTimeoutMs,
                keepAlive: true,
                keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
            });
            const link = new Link(client, options);
            await client.connect();
            const { rows } = await client.query('SELECT pid, backend_start::text AS since FROM pg_stat_activity WHERE pid = pg_backend_pid()');
            link.backend = rows[0];
            return link;
        }
        catch (error) {
            void client?.end().catch(() => { });
            throw failureOf(error, place);
        }
    }
    get isLost() {
        return this.#isLost;
    }
    /** One transaction, in one round trip, after what was asked before: the driver takes one at a time. @throws StatementError */
    async run(statements) {
        while (this.#underWay)
            await this.#underWay;
        const pipeline = new Pipeline(statements.map(({ sql, values }) => ({ sql: this.#textOf(sql), values })), this.#named);
        // a reply that never comes is no reason to wait for ever
        const timer = setTimeout(() => this.destroy(), REPLY_TIMEOUT_MS);
        const over = () => {
            this.#underWay = undefined;
        };
        this.#underWay = pipeline.done.then(over, over);
        this.client.query(pipeline);
        try {
            return await pipeline.done;
        }
        finally {
            clearTimeout(timer);
        }
    }
    /** Lets the process end while nothing is asked. */
    unref() {
        this.#stream.unref();
    }
    ref() {
        this.#stream.ref();
    }
    async end() {
        // whoever waits for it is not to end before
        this.ref();
        const timer = setTimeout(() => this.destroy(), END_TIMEOUT_MS);
        await this.client.end().catch(() => { });
        clearTimeout(timer);
    }
    /** Cuts the connection; what is under way on it fails. */
    destroy() {
        this.#stream.destroy();
    }
    get #stream() {
        return this.client.connection.stream;
    }
    #textOf(sql) {
        let text = this.#texts.get(sql);
        if (text === undefined) {
            text = inSchema(sql, this.#schema);
            this.#texts.set(sql, text);
        }
        return text;
    }
}
//# sourceMappingURL=link.js.map