import { burst } from './burst.js';
import { consoleInBrowser } from './console.js';
import { createDelete, durableCreateDelete } from './create-delete.js';
import { durableQueue } from './durable-queue.js';
import { durableSessions } from './durable-sessions.js';
import { fanOut } from './fan-out.js';
import { firstToken } from './first-token.js';
import { hop } from './hop.js';
import { idleHeap } from './idle-heap.js';
import { inbox } from './inbox.js';
import { jobApi } from './job-api.js';
import { jobQueue } from './job-queue.js';
import { largestLists } from './largest-lists.js';
import { notifications } from './notifications.js';
import { parking } from './parking.js';
import { permissionRequest } from './permission-request.js';
import { permissionRoundTrip } from './permission-round-trip.js';
import { postgresEvents } from './postgres-events.js';
import { postgresJobs } from './postgres-jobs.js';
import { postgresLists } from './postgres-lists.js';
import { postgresStart } from './postgres-start.js';
import { postgresTakeover } from './postgres-takeover.js';
import { replay, replayFromDisk } from './replay.js';
import { returningClients } from './returning-clients.js';
import { socketHeap } from './socket-heap.js';
import { stalledReader } from './stalled-reader.js';
import { start } from './start.js';
import { storage } from './storage.js';
import { wake } from './wake.js';
const BENCHMARKS = {
    'fan-out': fanOut,
    replay,
    'replay-from-disk': replayFromDisk,
    'stalled-reader': stalledReader,
    burst,
    'create-delete': createDelete,
    'permission-request': permissionRequest,
    'permission-round-trip': permissionRoundTrip,
    'idle-heap': idleHeap,
    'socket-heap': socketHeap,
    parking,
    wake,
    inbox,
    'largest-lists': largestLists,
    'returning-clients': returningClients,
    'job-queue': jobQueue,
    'job-api': jobApi,
    'first-token': firstToken,
    storage,
    'durable-sessions': durableSessions,
    'durable-queue': durableQueue,
    'durable-create-delete': durableCreateDelete,
    'postgres-events': postgresEvents,
    hop,
    'postgres-jobs': postgresJobs,
    'postgres-lists': postgresLists,
    'postgres-takeover': postgresTakeover,
    'postgres-start': postgresStart,
    notifications,
    start,
    console: consoleInBrowser,
};
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in BENCHMARKS));
if (unknown.length > 0) {
    console.error(`There is no benchmark ${unknown.join(', ')}; there are ${Object.keys(BENCHMARKS).join(', ')}.`);
    process.exit(2);
}
for (const name of asked.length > 0 ? asked : Object.keys(BENCHMARKS))
    await BENCHMARKS[name]();
//# sourceMappingURL=run.js.map