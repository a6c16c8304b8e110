import { rowsOf } from './driver.js';
/** What says nothing about the rows: busy, locked, out of memory. */
const PASSING = [5, 6, 7];
/** Positions that are tried one by one behind an unreadable page, before the steps grow: some hundred pages of short rows. */
const CAREFUL = 10_000;
/** All rows of a table that can be read, around those that cannot; some come twice. @throws what is not about the rows */
export function* readableRows(db, rows) {
    if (rows.numbered)
        yield* numberedRows(db, rows);
    else
        yield* rowsFromBothEnds(db, rows);
}
function* numberedRows(db, { select, position, onUnreadable }) {
    const behind = `WHERE ${position} >= ? ORDER BY ${position}`;
    const from = db.prepare(`${select} ${behind}`);
    const first = db.prepare(`${select} ${behind} LIMIT 1`);
    const probe = db.prepare(`SELECT ${position} ${select.slice(select.lastIndexOf('FROM '))} ${behind} LIMIT 1`);
    for (let at = 1; at !== undefined;) {
        try {
            for (const row of rowsOf(from, at)) {
                // never back: a damaged table may be out of order
                at = Math.max(at, Number(row[position]) + 1);
                yield row;
            }
            return;
        }
        catch (error) {
            unlessPassing(error);
            onUnreadable();
        }
        // a driver that reads ahead has kept the last one before the gap to itself
        const kept = orNothing(() => first.get(at));
        if (kept)
            yield kept;
        at = kept ? Math.max(at, Number(kept[position])) + 1 : readableFrom(at, (n) => canRead(() => probe.get(n)));
    }
}
/** The next position after `bad` that can be read. */
function readableFrom(bad, isReadable) {
    let last = bad;
    for (let next = bad + 1; next <= bad + CAREFUL; next++) {
        if (isReadable(next))
            return next;
        last = next;
    }
    let next = last + 1;
    for (let step = 1; !isReadable(next); step *= 2) {
        last = next;
        next += step;
        if (next > Number.MAX_SAFE_INTEGER)
            return undefined;
    }
    while (next - last > 1) {
        const middle = Math.floor((last + next) / 2);
        if (isReadable(middle))
            next = middle;
        else
            last = middle;
    }
    return next;
}
function* rowsFromBothEnds(db, { select, position, onUnreadable }) {
    for (const [direction, beyond] of [
        ['ASC', '>'],
        ['DESC', '<'],
    ]) {
        let last;
        try {
            for (const row of rowsOf(db.prepare(`${select} ORDER BY ${position} ${direction}`))) {
                last = row[position];
                yield row;
            }
            return;
        }
        catch (error) {
            unlessPassing(error);
            onUnreadable();
        }
        const [where, values] = last === undefined ? ['', []] : [`WHERE ${position} ${beyond} ?`, [last]];
        const next = db.prepare(`${select} ${where} ORDER BY ${position} ${direction} LIMIT 1`);
        const kept = orNothing(() => next.get(...values));
        if (kept)
            yield kept;
    }
}
function orNothing(read) {
    try {
        return read();
    }
    catch (error) {
        unlessPassing(error);
        return undefined;
    }
}
const canRead = (read) => orNothing(() => [read()]) !== undefined;
function unlessPassing(error) {
    const { errcode } = error;
    if (errcode !== undefined && PASSING.includes(errcode & 0xff))
        throw error;
}
//# sourceMappingURL=readable-rows.js.map