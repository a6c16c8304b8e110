import { cutOffBy, cutOffMessage } from './cut-off.js';
import { loadDriver, rowsOf } from './driver.js';
import { damaged, failureOf, Refusal } from './failures.js';
import { readableRows } from './readable-rows.js';
import { FIND_BY_STATE, migrate, TABLES, versionOf } from './schema.js';
import { inTransaction } from './transaction.js';
const MAX_NAMED = 100;
/** Columns whose text is JSON: a page in the middle of a long one can be overwritten without SQLite seeing it. */
const JSON_COLUMNS = {
    sessions: ['state'],
    origins: ['origin'],
    snapshots: ['snapshot'],
    events: ['json'],
    parked: ['record'],
    profiles: ['profile'],
    jobs: ['info', 'request'],
    idempotency_keys: ['answer', 'made'],
    deliveries: ['delivery'],
    delivery_attempts: ['attempt'],
    notifications: ['notification'],
    news: ['news'],
};
const BUSY_TIMEOUT_MS = 5_000;
/**
 * @param target an empty file, to be synced and, when this throws, removed by the caller
 * @throws Refusal for a database of something else or of a newer version, and for one whose list of tables is lost
 */
export async function salvageFile(path, target) {
    const OpenDatabase = await loadDriver();
    const source = new OpenDatabase(path, { readOnly: true });
    try {
        source.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA cell_size_check = ON`);
        assertSalvageable(source, path);
        const copy = new OpenDatabase(target);
        try {
            copy.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
            migrate(copy, target);
            source.exec('BEGIN');
            const tables = salvageInto(copy, source);
            const { integrity_check: said } = copy.prepare('PRAGMA integrity_check(1)').get();
            if (said !== 'ok')
                throw damaged(target, said);
            const ok = Object.values(tables).every(({ missingRows, unknown }) => missingRows === 0 && !unknown);
            return { path, target, ok, tables };
        }
        finally {
            copy.close();
        }
    }
    finally {
        source.close();
    }
}
function assertSalvageable(source, path) {
    try {
        source.prepare('SELECT count(*) FROM sqlite_master').get();
    }
    catch (error) {
        if (cutOffBy(error, path))
            throw new Refusal(cutOffMessage(path));
        const { code, message } = failureOf(error, path);
        throw new Refusal(`The list of its tables cannot be read, and nothing is found without it: ${message}`, code);
    }
    try {
        versionOf(source, path);
    }
    catch (error) {
        // the table of versions may be what is damaged
        if (error instanceof Refusal)
            throw error;
    }
}
/** Copies every row that can be read into a new database that has its tables already. */
function salvageInto(target, source) {
    const unread = new Map();
    for (const table of TABLES)
        unread.set(table, inTransaction(target, () => copyTable(target, source, table)));
    inTransaction(target, () => {
        // without its beginning a session is in every list and can be opened by nobody
        target.exec('DELETE FROM sessions WHERE key NOT IN (SELECT session FROM origins)');
        target.exec(FIND_BY_STATE);
        keepNumbers(target, source);
    });
    const ids = sessionIds(source);
    const salvaged = TABLES.map((table) => [table, compare(target, source, table, unread.get(table), ids)]);
    return Object.fromEntries(salvaged);
}
/** @returns whether something could not be read */
function copyTable(target, source, table) {
    const known = new Set(columnsOf(source, table).map(({ name }) => name));
    // a table of a version after the one that wrote the database
    if (known.size === 0)
        return false;
    const all = columnsOf(target, table);
    const columns = all.map(({ name }) => name).filter((name) => known.has(name));
    const { wr: withoutRowid } = target.prepare('SELECT wr FROM pragma_table_list(?)').get(table);
    const key = all.find(({ pk }) => pk > 0);
    const named = key?.type === 'INTEGER' || withoutRowid;
    const position = named ? key.name : 'rowid';
    const written = named ? columns : ['rowid', ...columns];
    const insert = target.prepare(`INSERT OR IGNORE INTO ${table} (${written.join(', ')}) VALUES (${written.map(() => '?').join(', ')})`);
    let unread = false;
    const rows = readableRows(source, {
        select: `SELECT ${written.join(', ')} FROM ${table}`,
        position,
        numbered: !withoutRowid,
        onUnreadable: () => {
            unread = true;
        },
    });
    for (const row of rows) {
        if (!(JSON_COLUMNS[table] ?? []).every((name) => isJson(row[name])))
            unread = true;
        else
            insert.run(...written.map((name) => row[name]));
    }
    return unread;
}
const columnsOf = (db, table) => db.prepare(`PRAGMA table_info(${table})`).all();
function isJson(text) {
    if (text === null || text === undefined)
        return true;
    try {
        JSON.parse(text);
        return true;
    }
    catch {
        return false;
    }
}
/** A number that was given once is not given again: a new session would have the events of one whose row is lost. */
function keepNumbers(target, source) {
    const raise = target.prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?');
    const add = target.prepare('INSERT INTO sqlite_sequence (seq, name) VALUES (?, ?)');
    const keep = (name, seq) => {
        if (raise.run(seq, name).changes === 0)
            add.run(seq, name);
    };
    const given = orNothing(() => source.prepare('SELECT name, seq FROM sqlite_sequence').all());
    for (const { name, seq } of given)
        if (TABLES.includes(name))
            keep(name, seq);
    for (const table of ['events', 'origins', 'snapshots', 'removed_sessions', 'news'])
        keep('sessions', target.prepare(`SELECT coalesce(max(session), 0) AS seq FROM ${table}`).get().seq);
}
function orNothing(read) {
    try {
        return read();
    }
    catch {
        return [];
    }
}
/** Ids of sessions by their number, from an index: also of those whose row is lost. */
function sessionIds(source) {
    const ids = new Map();
    const index = indexOf(source, 'sessions');
    if (index)
        each(source, `SELECT rowid AS n, id FROM sessions INDEXED BY ${index.name}`, ({ n, id }) => ids.set(n, id));
    return ids;
}
/** Holds what arrived against an index of the damaged database, which lies in pages of its own. */
function compare(target, source, table, unread, ids) {
    const { rows } = target.prepare(`SELECT count(*) AS rows FROM ${table}`).get();
    const index = indexOf(source, table);
    if (!index)
        return { rows, missing: [], missingRows: 0, unknown: unread };
    const count = `SELECT ${index.column} AS part, count(*) AS rows FROM ${table}`;
    const arrived = target.prepare(`SELECT count(*) AS rows FROM ${table} WHERE ${index.column} = ?`);
    const missing = [];
    const whole = each(source, `${count} INDEXED BY ${index.name} GROUP BY ${index.column}`, ({ part, rows: expected }) => {
        const lacking = expected - arrived.get(part).rows;
        if (lacking > 0)
            missing.push({ of: nameOf(table, part, ids), rows: lacking });
    });
    missing.sort((a, b) => b.rows - a.rows);
    const missingRows = missing.reduce((sum, { rows }) => sum + rows, 0);
    return { rows, missing: missing.slice(0, MAX_NAMED), missingRows, unknown: unread && (!whole || missingRows === 0) };
}
const nameOf = (table, part, ids) => table === 'events' ? (ids.get(part) ?? `number ${part}`) : String(part);
/** An index with all rows of a table, and what it is ordered by first. */
function indexOf(source, table) {
    const { wr: withoutRowid } = source.prepare('SELECT wr FROM pragma_table_list(?)').get(table) ?? { wr: 1 };
    if (withoutRowid)
        return undefined;
    const indexes = source
        .prepare(`PRAGMA index_list(${table})`)
        .all();
    const whole = indexes.filter(({ partial }) => !partial).sort((a, b) => b.unique - a.unique);
    if (!whole[0])
        return undefined;
    const { name } = whole[0];
    return { name, column: source.prepare(`PRAGMA index_info(${name})`).get().name };
}
/** @returns whether all rows could be read */
// biome-ignore lint/suspicious/noExplicitAny: a row is what its query says
function each(source, sql, take) {
    const rows = rowsOf(source.prepare(sql));
    for (;;) {
        let next;
        try {
            next = rows.next();
        }
        catch {
            return false;
        }
        if (next.done)
            return true;
        take(next.value);
    }
}
//# sourceMappingURL=salvage.js.map