import { COUNTED, GREATEST } from '../../../usage/sums.js';
import { columnOf, USAGE_KEY } from '../../sql/rows.js';
/** Adds to a sum, in the transaction of the event that is counted. */
export function usageKeeper(db) {
    const columns = COUNTED.map(columnOf);
    const added = COUNTED.map((name) => {
        const column = columnOf(name);
        return `${column} = ${name === GREATEST ? `max(${column}, excluded.${column})` : `${column} + excluded.${column}`}`;
    });
    const add = db.prepare(`INSERT INTO usage_sums (${[...USAGE_KEY, ...columns].join(', ')}) VALUES (${[...USAGE_KEY, ...columns].map(() => '?').join(', ')})
     ON CONFLICT (${USAGE_KEY.join(', ')}) DO UPDATE SET ${added.join(', ')}`);
    return (count) => {
        add.run(...USAGE_KEY.map((name) => count[name]), ...COUNTED.map((name) => count[name] ?? 0));
    };
}
/** Daily sums of what was used. */
export function usageOperations(db) {
    const add = usageKeeper(db);
    const sums = COUNTED.map((name) => `${name === GREATEST ? 'max' : 'sum'}(${columnOf(name)}) AS ${name}`).join(', ');
    return {
        'usage.add'(counts) {
            for (const count of counts)
                add(count);
        },
        'usage.read'({ from, to, profiles }, by, limit) {
            const groups = USAGE_KEY.filter((name) => by.includes(name)).sort((a, b) => by.indexOf(a) - by.indexOf(b));
            const list = groups.join(', ');
            const read = db.prepare(`SELECT ${list}, ${sums} FROM usage_sums
         WHERE day >= ?1 AND day <= ?2 AND (?3 IS NULL OR profile IN (SELECT value FROM json_each(?3)))
         GROUP BY ${list} ORDER BY ${list} LIMIT ?4`);
            return read.all(from, to, profiles ? JSON.stringify(profiles) : null, limit).map((row) => ({ ...row }));
        },
    };
}
//# sourceMappingURL=usage.js.map