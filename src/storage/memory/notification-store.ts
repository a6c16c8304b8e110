import { isIn, pageOf } from '../../notifications/range.js'
import type { KeptNotification, NotificationStore } from '../../notifications/store.js'

/** Characters of all together; the oldest go first. */
const MAX_CHARS = 64 * 1024 * 1024

/** What the other parts of a storage in memory use of it. */
export interface MemoryNotificationStore extends NotificationStore {
  /** Keeps a notification in the same turn in which the event is written that it tells of. */
  addNow(kept: KeptNotification): void
}

/** Keeps notifications for as long as the process runs, at most about 64 MiB of them. */
export function createMemoryNotificationStore(): MemoryNotificationStore {
  /** Rising by `number`; the first of them are gone. Taking one off the front of a long array moves all the others. */
  let slots: (KeptNotification | undefined)[] = []
  let gone = 0
  /** Whether their times rise as their numbers do: the clock may have gone back. */
  let isInStep = true
  let lastTs = 0
  let chars = 0
  let feed: string | undefined
  let lastNumber = 0

  const kept = () => slots.slice(gone) as KeptNotification[]
  const dropOldest = () => {
    chars -= slots[gone]!.json.length
    slots[gone++] = undefined
    if (gone < slots.length / 2) return
    slots = kept()
    gone = 0
  }
  const addNow = (notification: KeptNotification) => {
    const { number, ts, json } = notification
    // several are written at once, and not always in the order of their numbers
    let at = slots.length
    while (at > gone && slots[at - 1]!.number > number) at--
    if (at < slots.length || ts < lastTs) isInStep = false
    lastTs = ts
    if (at === slots.length) slots.push({ ...notification })
    else slots.splice(at, 0, { ...notification })
    lastNumber = Math.max(lastNumber, number)
    for (chars += json.length; chars > MAX_CHARS && slots.length - gone > 1; ) dropOldest()
  }
  return {
    addNow,
    async open(epoch) {
      feed ??= epoch
      return { epoch: feed, lastNumber }
    },
    async add(notification) {
      addNow(notification)
    },
    async read(range, page) {
      const found = kept().filter((notification) => isIn(range, notification))
      return pageOf(found, page).map((notification) => ({ ...notification }))
    },
    async oldest(since) {
      return kept().find(({ ts }) => ts >= since)?.number
    },
    async prune(through, before) {
      const isOver = ({ number, ts }: KeptNotification) => number <= through || ts < before
      while (gone < slots.length && isOver(slots[gone]!)) dropOldest()
      if (isInStep || slots.findIndex((one, index) => index >= gone && isOver(one!)) < 0) return
      slots = kept().filter((one) => !isOver(one))
      gone = 0
      chars = slots.reduce((sum, one) => sum + one!.json.length, 0)
    },
  }
}
