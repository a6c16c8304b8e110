import { answerLeft } from './idempotency/making.js';
import { persistently } from './lib/patience.js';
/** Has a node go on with the jobs, deliveries, reminders and keys of one that is gone, as the next process does after a crash. */
export function goOnWithOthers(cluster, { queue, deliverer, outward, idempotency, findMade, logger, retryAfter }) {
    let reminders = [];
    // it is told of once: what the storage does not give now nobody would ask for again
    const surely = (work) => persistently(work, { logger, retryAfter });
    cluster.onResidence('job', (id) => queue?.isUnderWay(id) ?? false);
    // what sessions and jobs tell when they are taken up comes after what was told before
    cluster.onTaken('lanes', ({ lanes, jobIds }) => {
        queue?.expect(jobIds);
        return surely(() => {
            reminders = [];
            return deliverer.takeUp(lanes, (left) => void reminders.push(left));
        });
    });
    cluster.onTaken('jobs', ({ jobIds }) => queue?.takeUp(jobIds));
    // whether a request still waits is known once its session is there
    cluster.onTaken('reminders', () => {
        for (const left of reminders.splice(0))
            outward.takeOver(left);
    });
    cluster.onTaken('keys', ({ keys }) => surely(() => answerLeft(idempotency, findMade, keys)));
}
//# sourceMappingURL=gateway-take-over.js.map