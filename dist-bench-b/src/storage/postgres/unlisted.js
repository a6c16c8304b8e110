import { executionsOf } from '../../sessions/kept/journal.js';
import { listedColumns } from '../sql/rows.js';
import { listAll, unlistedAsked } from './tables/listed-sessions.js';
const AT_ONCE = 200;
/** Gives sessions that were written, or copied, without them the columns by which several processes find them. */
export async function listUnlisted(link) {
    for (let last = 0;;) {
        const [rows] = await link.run([unlistedAsked(last, AT_ONCE)]);
        if (rows.length === 0)
            return;
        last = rows.at(-1).key;
        const listed = rows.flatMap(({ key, state }) => {
            const found = stateOf(state);
            return found ? [{ key: key, columns: listedColumns(found), executions: executionsOf(found) }] : [];
        });
        if (listed.length > 0)
            await link.run(listAll(listed));
    }
}
/** Undefined: it cannot be read, and whoever reads the session says so. */
function stateOf(text) {
    try {
        return JSON.parse(text);
    }
    catch {
        return undefined;
    }
}
//# sourceMappingURL=unlisted.js.map