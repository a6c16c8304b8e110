import { sessionOf } from '../sql/session-journal.js';
import { listed } from '../sql/stores.js';
/** Sessions of all nodes, as the journal gives them. */
export const listedSessions = (call) => async (query, onUnreadable = () => { }) => {
    const { rows, isLast } = await call('journal.listed', query);
    const sessions = await listed(async (last) => (last ? [] : rows), (row) => ({
        ...{ ...sessionOf(row, []), position: row.key, place: row.place },
        ...(row.owner !== null && { owner: row.owner }),
    }), onUnreadable);
    return { sessions, next: isLast ? undefined : rows.at(-1).place };
};
//# sourceMappingURL=listed.js.map