import type { WebhookDelivery } from '../../../schemas/jobs.js'
import type { SignInStore } from '../../console/store.js'
import { toError } from '../../errors.js'
import type { ChannelStore } from '../../notifications/channels/store.js'
import type { NotificationStore } from '../../notifications/store.js'
import type { ProfileStore } from '../../profiles/store.js'
import type { SessionStore } from '../../sessions/kept/store.js'
import type { UsageStore } from '../../usage/store.js'
import type { DeliveryOutbox, KeptDelivery } from '../../webhooks/outbox.js'
import { objectOf, parsed } from './json-columns.js'
import type { CallDatabase } from './operations.js'
import { type DeliveryRow, deliveryValues, keptRow, type ParkedRow } from './rows.js'

/** Records hold whole logs: some megabytes a page. */
const PARKED_PER_PAGE = 25
const DELIVERIES_PER_PAGE = 100
/** Notifications that are forgotten, and attempts that are looked at, in one write: what others ask for comes in between. */
const PRUNED_AT_ONCE = 500

export const sessionStore = (call: CallDatabase): SessionStore => ({
  save: (record) => call('parked.save', record.id, JSON.stringify(record)),
  async get(id) {
    const text = await call('parked.get', id)
    return text === undefined ? undefined : parsed(text, 'The parked session', id, 'parked')
  },
  list: (onUnreadable = () => {}) =>
    listed(
      (last?: ParkedRow) => call('parked.page', last?.n ?? 0, PARKED_PER_PAGE),
      ({ id, record }) => parsed(record, 'The parked session', id, 'parked'),
      onUnreadable,
    ),
  delete: (id) => call('parked.delete', id),
})

export const profileStore = (call: CallDatabase, now: () => number, isShared: boolean): ProfileStore => ({
  list: async () =>
    (await call('profiles.list')).map(({ name, profile }) => parsed(profile, 'The profile', name, 'profiles')),
  save: (profile, key) => call('profiles.save', profile.name, JSON.stringify(profile), key && keptRow(key, now())),
  create: (profile, key) =>
    call('profiles.saveInstead', profile.name, JSON.stringify(profile), null, key && keptRow(key, now())),
  replace: (profile, before) =>
    call('profiles.saveInstead', profile.name, JSON.stringify(profile), JSON.stringify(before)),
  delete: (name) => call('profiles.delete', name),
  ...(isShared && { version: () => call('versions.of', 'profiles') }),
})

/** @param isOneOfMany whether other processes have the database too */
export const deliveryOutbox = (call: CallDatabase, isOneOfMany: () => boolean): DeliveryOutbox => ({
  add: (kept) => call('outbox.add', deliveryValues(kept)),
  change: (kept) => call('outbox.change', deliveryValues(kept)),
  remove: (lane, id) => call('outbox.remove', lane, id),
  async list(lanes, onUnreadable = () => {}) {
    if (!lanes)
      return listed(
        (last?: DeliveryRow) => call('outbox.page', last?.n ?? 0, DELIVERIES_PER_PAGE),
        keptDelivery,
        onUnreadable,
      )
    // looked for once: of very many lanes that takes as long as reading what they have
    const places = await call('outbox.places', lanes)
    const kept: KeptDelivery[] = []
    for (let at = 0; at < places.length; at += DELIVERIES_PER_PAGE) {
      const page = await call('outbox.at', places.slice(at, at + DELIVERIES_PER_PAGE))
      kept.push(...readable(page, keptDelivery, onUnreadable))
    }
    return kept
  },
  log: (lane, attempt) => call('outbox.log', lane, JSON.stringify(attempt)),
  // one that is damaged says nothing any more
  attempts: async (lane) =>
    (await call('outbox.attempts', lane)).flatMap((text) => objectOf<WebhookDelivery>(text) ?? []),
  forget: (lane) => call('outbox.forget', lane),
  prune: attemptPruner(call),
  rememberGone: (target) => call('outbox.rememberGone', target),
  gone: () => call('outbox.gone'),
  get isHeldUp() {
    return isOneOfMany() ? (lane: string, ids: readonly string[]) => call('outbox.isHeldUp', lane, ids) : undefined
  },
})

/** Attempts lie about in the order of their times. What is old and stays, as jobs are kept for longer, is not looked at again. */
function attemptPruner(call: CallDatabase): (before: number) => Promise<void> {
  let looked = 0
  return async (before) => {
    let isOld = true
    for (let after = looked; ; ) {
      const attempts = await call('outbox.prune', after, before, PRUNED_AT_ONCE)
      for (const attempt of attempts) {
        isOld &&= attempt.isOld
        if (isOld) looked = attempt.n
      }
      if (attempts.length < PRUNED_AT_ONCE || !attempts.some((attempt) => attempt.isOld)) return
      after = attempts.at(-1)!.n
    }
  }
}

const keptDelivery = ({ n, id, lane, delivery }: DeliveryRow): KeptDelivery => ({
  ...{ id, lane },
  delivery: parsed(delivery, 'The delivery', `${id} (n = ${n})`, 'deliveries'),
})

export const notificationStore = (call: CallDatabase, isShared: boolean): NotificationStore => ({
  open: (epoch) => call('notifications.open', epoch),
  add: (kept) => call('notifications.add', kept),
  read: (range, page) => call('notifications.read', range, page),
  oldest: (since) => call('notifications.oldest', since),
  prune: (through, before) => untilOver(() => call('notifications.prune', through, before, PRUNED_AT_ONCE)),
  ...(isShared && {
    shared: {
      placeOf: (number) => call('notifications.placeOf', number),
      keepNewest: (count) => untilOver(() => call('notifications.keepNewest', count, PRUNED_AT_ONCE)),
    },
  }),
})

async function untilOver(forgetSome: () => Promise<boolean>): Promise<void> {
  while (await forgetSome());
}

export const channelStore = (call: CallDatabase, isShared: boolean): ChannelStore => ({
  keyOnce: (name, value) => call('channels.keyOnce', name, value),
  key: (name) => call('channels.key', name),
  saveKey: (name, value) => call('channels.saveKey', name, value),
  subscriptions: async (onUnreadable = () => {}) =>
    readable(
      await call('channels.subscriptions'),
      ({ id, subscription }) => parsed(subscription, 'The push subscription', id, 'push_subscriptions'),
      onUnreadable,
    ),
  saveSubscription: (subscription) => call('channels.saveSubscription', subscription.id, JSON.stringify(subscription)),
  removeSubscription: (id) => call('channels.removeSubscription', id),
  ...(isShared && { version: () => call('versions.of', 'push_subscriptions') }),
})

export const signInStore = (call: CallDatabase, isShared: boolean): SignInStore => ({
  list: async (onUnreadable = () => {}) =>
    readable(
      await call('signIns.list'),
      ({ id, signIn }) => parsed(signIn, 'The sign-in', id, 'sign_ins'),
      onUnreadable,
    ),
  save: (signIn) => call('signIns.save', signIn.id, JSON.stringify(signIn)),
  renew: (signIn) => call('signIns.renew', signIn.id, JSON.stringify(signIn)),
  remove: (id) => call('signIns.remove', id),
  ...(isShared && { version: () => call('versions.of', 'sign_ins') }),
})

export const usageStore = (call: CallDatabase): UsageStore => ({
  add: (counts) => call('usage.add', counts),
  read: (range, by, limit) => call('usage.read', range, by, limit),
})

/**
 * Reads page by page, so that nobody is busy with it for long.
 * @param onUnreadable told of each that cannot be read
 */
export async function listed<Row, Item>(
  pageAfter: (last?: Row) => Promise<Row[]>,
  itemOf: (row: Row) => Item,
  onUnreadable: (error: Error) => void,
): Promise<Item[]> {
  const items: Item[] = []
  for (let page = await pageAfter(); page.length > 0; page = await pageAfter(page.at(-1)))
    items.push(...readable(page, itemOf, onUnreadable))
  return items
}

/** @param onUnreadable told of each that cannot be read */
export const readable = <Row, Item>(
  rows: readonly Row[],
  itemOf: (row: Row) => Item,
  onUnreadable: (error: Error) => void,
): Item[] =>
  rows.flatMap((row) => {
    try {
      return [itemOf(row)]
    } catch (error) {
      onUnreadable(toError(error))
      return []
    }
  })
