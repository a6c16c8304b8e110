import { storable } from './values.js';
/** What the server has said about one statement of a pipeline. */
export class StatementError extends Error {
    index;
    error;
    isOver;
    name = 'StatementError';
    /**
     * @param index of the statement that it is about
     * @param error as the server or the socket told it
     * @param isOver the server has taken everything back and goes on; else nobody knows what became of it
     */
    constructor(index, error, isOver) {
        super(error.message);
        this.index = index;
        this.error = error;
        this.isOver = isOver;
    }
}
/** int8, int2, int4, float4, float8, numeric */
const NUMBERS = new Set([20, 21, 23, 700, 701, 1700]);
const BOOLEAN = 16;
/** Codes of errors that leave a statement unknown to the server. */
const NOT_PARSED = /^(42|26|08)/;
/** Statements that a connection has by name, with what their rows look like. */
export class NamedStatements {
    #names = new Map();
    #given = 0;
    of(sql) {
        return this.#names.get(sql);
    }
    add(sql) {
        const named = { name: `sg${++this.#given}` };
        this.#names.set(sql, named);
        return named;
    }
    delete(sql) {
        this.#names.delete(sql);
    }
}
/**
 * Statements that travel together and are one transaction, which the server ends by itself: none of it is ever open while a packet is
 * under way. When one fails, nothing of them is done.
 */
export class Pipeline {
    done;
    #statements;
    #named;
    #columns;
    #rows;
    /** By their place, statements that the server is asked to remember. */
    #parsed = new Map();
    #at = 0;
    #resolve;
    #reject;
    /** @param named absent: statements are sent in full each time */
    constructor(statements, named) {
        this.#statements = statements;
        this.#named = named;
        this.#columns = statements.map(() => undefined);
        this.#rows = statements.map(() => []);
        this.done = new Promise((resolve, reject) => {
            this.#resolve = resolve;
            this.#reject = reject;
        });
    }
    submit(connection) {
        const { stream } = connection;
        stream.cork();
        for (const [index, { sql, values }] of this.#statements.entries())
            this.#send(connection, index, sql, values);
        connection.sync();
        stream.uncork();
    }
    #send(connection, index, sql, values) {
        let known = this.#named?.of(sql);
        if (!known) {
            known = this.#named?.add(sql) ?? { name: '' };
            this.#parsed.set(index, sql);
            connection.parse({ name: known.name, text: sql, types: [] }, true);
        }
        const given = values.map((value) => {
            if (typeof value === 'string')
                return storable(value);
            return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
        });
        connection.bind({ statement: known.name, values: given }, true);
        if (known.columns)
            this.#columns[index] = known.columns;
        else
            connection.describe({ type: 'P', name: '' }, true);
        connection.execute({ portal: '', rows: '0' }, true);
    }
    handleRowDescription({ fields }) {
        const columns = fields.map(({ name, dataTypeID }) => ({
            name,
            isNumber: NUMBERS.has(dataTypeID),
            isBoolean: dataTypeID === BOOLEAN,
        }));
        this.#columns[this.#at] = columns;
        const named = this.#named?.of(this.#statements[this.#at].sql);
        if (named)
            named.columns = columns;
    }
    handleDataRow({ fields }) {
        const row = {};
        for (const [index, { name, isNumber, isBoolean }] of this.#columns[this.#at].entries()) {
            const text = fields[index] ?? null;
            if (text === null)
                row[name] = null;
            else if (isNumber)
                row[name] = Number(text);
            else
                row[name] = isBoolean ? text === 't' : text;
        }
        this.#rows[this.#at].push(row);
    }
    handleCommandComplete() {
        this.#at++;
    }
    handleEmptyQuery() { }
    handlePortalSuspended() { }
    handleReadyForQuery() {
        this.#resolve(this.#rows);
    }
    handleError(error) {
        // what comes after the one that failed was not even looked at
        const isKnown = error.severity === 'ERROR' && !NOT_PARSED.test(error.code ?? '');
        for (const [index, sql] of this.#parsed)
            if (index > this.#at || !isKnown)
                this.#named?.delete(sql);
        this.#reject(new StatementError(this.#at, error, error.severity === 'ERROR'));
    }
}
//# sourceMappingURL=pipeline.js.map