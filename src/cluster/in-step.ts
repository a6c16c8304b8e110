import type { SignIns } from '../console/sign-ins.js'
import { GatewayError, toError } from '../errors.js'
import type { Clock, Timer } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import type { PushSubscriptions } from '../notifications/channels/subscriptions.js'
import type { NotificationFeed } from '../notifications/feed.js'
import type { Inbox } from '../notifications/inbox.js'
import type { ClusterStorage } from '../storage/cluster.js'
import type { Change, Exchange, Peers } from './exchange.js'

/** What this node holds in memory that other nodes change, too. */
export interface SharedHere {
  feed: NotificationFeed
  inbox: Inbox
  signIns: SignIns | undefined
  subscriptions: PushSubscriptions | undefined
}

export interface InStepParts extends SharedHere {
  exchange: Exchange
  storage: Pick<ClusterStorage, 'on' | 'state'>
  peers: Pick<Peers, 'others'>
  clock: Clock
  logger: Logger
}

/** What another node has changed and did not tell, as it died over it, is looked for this often. */
const LOOK_MS = 5_000

/**
 * Keeps what this node holds in memory in step with what other nodes do: who signs out there is signed out here, who subscribes there is told
 * from here, and streams show what is told and what waits there.
 * @returns a function that ends it
 */
export function keepInStep({
  exchange,
  storage,
  peers,
  feed,
  inbox,
  clock,
  logger,
  ...parts
}: InStepParts): () => void {
  const { signIns, subscriptions } = parts
  // before it has joined, and while it may not ask, there is nothing to compare: all of it is read, or looked at, later
  const whileServing = (change: Change, look: () => unknown) =>
    exchange.on(change, () => (storage.state === 'serving' ? look() : undefined))
  whileServing('notifications', () => feed.nudge())
  whileServing('signIns', () => signIns?.refreshed())
  whileServing('subscriptions', () => subscriptions?.refreshed())
  exchange.on('inbox', ({ from, waiting }) => {
    // one that is not known yet tells it again; of one that is gone nothing waits any more
    if (!peers.others().some(({ n }) => n === from)) throw new GatewayError('SG_ERR_WRONG_NODE')
    inbox.setElsewhere(from, waiting)
  })
  const onNodes = () => {
    const there = new Set(peers.others().map(({ n }) => n))
    for (const n of inbox.elsewhere) if (!there.has(n)) inbox.setElsewhere(n, undefined)
    // whoever has just come does not know it
    void exchange.tell('inbox')
  }
  const unsubscribe = [inbox.listeners.on('changed', () => void exchange.tell('inbox')), storage.on('nodes', onNodes)]
  let timer: Timer
  let hasTold = false
  const lookLater = () => {
    timer = clock.after(LOOK_MS, async () => {
      // those that were there before: whether they can be reached is known before anybody asks for what they have
      if (!hasTold && storage.state === 'serving') void exchange.tell('inbox')
      hasTold ||= storage.state === 'serving'
      try {
        if (storage.state === 'serving') await Promise.all([signIns?.refreshed(), subscriptions?.refreshed()])
      } catch (error) {
        logger.debug?.({ err: toError(error) }, 'what other nodes have changed could not be read; it will be')
      }
      if (!isOver) lookLater()
    })
  }
  let isOver = false
  lookLater()
  return () => {
    isOver = true
    timer.cancel()
    exchange.close()
    for (const end of unsubscribe) end()
  }
}
