import { databaseStorage } from '../sql/storage.js';
import { PostgresDatabase } from './database.js';
import { PostgresCluster } from './directory.js';
import { placeOf } from './failures.js';
import { listedSessions } from './listed.js';
import { Membership } from './membership.js';
import { Sweeper } from './sweeper.js';
const SCHEMA = 'session_gateway';
/**
 * Keeps everything in one schema of a PostgreSQL database, over two connections. From `open` until `close` the schema is this process's:
 * a second one is refused and told who has it, and one that was taken for dead writes nothing any more (`STORAGE_FENCED`). A schema of
 * something else or of a newer version is refused and left as it is.
 *
 * Every method of the parts rejects with a `StorageError` when nothing of what it was to do was done: while the database is away, at
 * once; the same call may succeed later. A write that was under way when the connection broke waits until the database says whether it was
 * done.
 */
export function createPostgresStorage(options) {
    const place = placeOf(options.url);
    const cluster = new PostgresCluster(place);
    const storage = databaseStorage(place, () => (cluster.isAnnounced ? cluster.open(linkOptions(options), directOptions(options)) : openDatabase(options)), options.now, true);
    return { ...storage, cluster, journal: { ...storage.journal, listed: listedSessions(cluster.call) } };
}
const linkOptions = ({ url, schema = SCHEMA, namedStatements = true }) => ({
    ...{ url, place: placeOf(url), schema, namedStatements },
});
/** The connection that nothing may come between. */
export const directOptions = (options) => ({
    ...linkOptions({ ...options, url: options.listenUrl ?? options.url }),
    namedStatements: false,
});
async function openDatabase(options) {
    const membership = await Membership.join(directOptions(options));
    try {
        const database = await PostgresDatabase.open(linkOptions(options), { n: membership.n, isOneOfMany: false });
        const sweeper = new Sweeper(database.call);
        sweeper.start();
        return {
            call(name, ...args) {
                const answer = database.call(name, ...args);
                if (name === 'journal.remove')
                    answer.then(sweeper.start, () => { });
                return answer;
            },
            atTurnsEnd: database.atTurnsEnd,
            async close() {
                sweeper.stop();
                await database.close();
                await membership.leave();
            },
        };
    }
    catch (error) {
        await membership.leave();
        throw error;
    }
}
//# sourceMappingURL=storage.js.map