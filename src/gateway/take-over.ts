import type { OwnNode } from '../cluster/own-node.js'
import { answerLeft } from '../idempotency/making.js'
import type { IdempotencyStore, Made } from '../idempotency/store.js'
import type { JobQueue } from '../jobs/queue.js'
import { type Persistence, persistently } from '../lib/patience.js'
import type { Outward } from '../notifications/outward.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { LeftDelivery } from '../webhooks/delivery.js'

/** What goes on with what another node had, beside its sessions. */
export interface TakeOverParts extends Persistence {
  queue: JobQueue | undefined
  deliverer: WebhookDeliverer
  outward: Outward
  idempotency: IdempotencyStore
  findMade(made: Made): object | undefined | Promise<object | undefined>
}

/** Has a node go on with the jobs, deliveries, reminders and keys of one that is gone, as the next process does after a crash. */
export function goOnWithOthers(
  cluster: OwnNode,
  { queue, deliverer, outward, idempotency, findMade, logger, retryAfter }: TakeOverParts,
): void {
  let reminders: LeftDelivery[] = []
  // it is told of once: what the storage does not give now nobody would ask for again
  const surely = (work: () => Promise<void>) => persistently(work, { logger, retryAfter })
  cluster.onResidence('job', (id) => queue?.isUnderWay(id) ?? false)
  // what sessions and jobs tell when they are taken up comes after what was told before
  cluster.onTaken(
    'lanes',
    ({ lanes, jobIds }) => {
      queue?.expect(jobIds)
      return surely(() => {
        reminders = []
        // one of its own may be told, and over, before the others are taken over
        return deliverer.takeUp(lanes, (left) => void (outward.hasReminder(left) || reminders.push(left)))
      })
    },
    ({ lanes }) => deliverer.expect(lanes),
  )
  cluster.onTaken('jobs', ({ jobIds }) => queue?.takeUp(jobIds))
  // whether a request still waits is known once its session is there
  cluster.onTaken('reminders', () => {
    for (const left of reminders.splice(0)) outward.takeOver(left)
  })
  cluster.onTaken('keys', ({ keys }) => surely(() => answerLeft(idempotency, findMade, { keys, logger })))
}
