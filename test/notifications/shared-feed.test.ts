import t, { type Test } from 'tap'
import type { SessionInfo } from '../../schemas/sessions.js'
import { silentLogger } from '../../src/lib/logger.js'
import { DEFAULT_NOTIFICATION_RETENTION, NotificationFeed } from '../../src/notifications/feed.js'
import { idIn } from '../../src/notifications/shared-places.js'
import type { KeptNotification, NotificationStore } from '../../src/notifications/store.js'
import { UNLIMITED } from '../../src/principal.js'
import { createMemoryNotificationStore } from '../../src/storage/memory/notification-store.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

/** One store of several processes: places are given in the order in which writes are let through. */
function sharedStore() {
  const inner = createMemoryNotificationStore()
  const places = new Map<number, number>()
  let last = 0
  let forgotten = 0
  const waiting: { number: number; go: () => void }[] = []
  const store: NotificationStore = {
    ...inner,
    async add(kept: KeptNotification) {
      await new Promise<void>((go) => waiting.push({ number: kept.number, go }))
      last = Math.max(last + 1, kept.number)
      places.set(kept.number, last)
      await inner.add({ ...kept, number: last })
    },
    shared: {
      placeOf: async (number) => ({ place: places.get(number), forgotten }),
      async keepNewest(count) {
        const all = await inner.read(
          { after: 0, until: Number.MAX_SAFE_INTEGER, since: 0 },
          { limit: 1e9, maxBytes: 1e9 },
        )
        const through = all.at(-count - 1)?.number ?? 0
        for (const [number, place] of places) if (place <= through) places.delete(number)
        forgotten = Math.max(forgotten, through)
        await inner.prune(through, 0)
      },
    },
  }
  /** Lets the write that has waited for longest through, or the one behind it. */
  const write = async (at = 0) => {
    waiting.splice(at, 1)[0]!.go()
    await new Promise(setImmediate)
  }
  return { store, write }
}

async function build(t: Test, retention = DEFAULT_NOTIFICATION_RETENTION) {
  const clock = new VirtualClock(1_760_000_000_000)
  const { store, write } = sharedStore()
  const node = async (n?: number) => {
    const feed = new NotificationFeed({
      ...{
        store,
        clock,
        logger: silentLogger,
        ridesAlong: false,
        retention,
        node: n === undefined ? undefined : () => n,
        forgetBefore: async () => {},
      },
    })
    t.teardown(() => feed.close())
    await feed.open()
    return feed
  }
  const session = { id: 's', profile: '' } as SessionInfo
  const tell = (feed: NotificationFeed, preview: string) => {
    const placed = feed.place({ type: 'turn_completed', sessionId: 's', seq: 1, ts: clock.now(), session, preview })
    feed.add(placed)
    return placed.notification.id
  }
  const after = async (feed: NotificationFeed, id: string | undefined) => {
    const { items } = await feed.page({ ...(id !== undefined && { after: id }) }, UNLIMITED)
    return items.map(({ json }) => JSON.parse(json).preview)
  }
  return { a: await node(1), b: await node(2), clock, tell, write, after, node }
}

t.test('nodes give different numbers, and all of them see all notifications in one order', async (t) => {
  const { a, b, tell, write, after } = await build(t)
  const ids = [tell(a, 'one'), tell(b, 'two'), tell(a, 'three')]
  t.equal(new Set(ids).size, 3)
  for (let rest = 3; rest > 0; rest--) await write()
  t.same(await after(a, undefined), ['one', 'two', 'three'])
  t.same(await after(b, undefined), ['one', 'two', 'three'])
  t.same(await after(b, ids[0]), ['two', 'three'])
})

t.test('a reader that comes back anywhere misses none, although writes overtake each other', async (t) => {
  const { a, b, tell, write, after } = await build(t)
  const early = tell(a, 'given early')
  const late = tell(b, 'given late')
  t.ok(early < late, 'the number of the first is smaller')
  await write(1)
  t.same(await after(a, undefined), ['given late'], 'the second can be read first')
  await write()
  t.same(await after(a, late), ['given early'])
  t.same(await after(b, late), ['given early'])
  t.same(await after(b, early), [])
})

t.test('who follows at one node hears what another one tells, in order and once', async (t) => {
  const { a, b, tell, write, clock } = await build(t)
  const heard: string[] = []
  a.listeners.on('notification', (kept) => heard.push(JSON.parse(kept.json).preview))
  tell(b, 'one')
  tell(a, 'two')
  await write(1)
  await write()
  await clock.advance(1_000)
  t.same(heard, ['two', 'one'])
  await a.page({}, UNLIMITED)
  t.same(heard, ['two', 'one'])
})

t.test('a place says whether something after it was forgotten, and only then', async (t) => {
  const { a, b, tell, write } = await build(t, { ...DEFAULT_NOTIFICATION_RETENTION, maxCount: 3 })
  const ids: string[] = []
  for (let at = 0; at < 4; at++) {
    ids.push(tell(at % 2 ? a : b, `${at}`))
    await write()
  }
  t.match(await b.placeAfter(ids[0]), { truncated: false, id: ids[0] })
  // the hundredth of a node has the old ones forgotten
  for (let at = 4; at < 110; at++) {
    ids.push(tell(a, `${at}`))
    await write()
  }
  await new Promise(setImmediate)
  t.match(await b.placeAfter(ids[0]), { truncated: true })
  t.match(await b.placeAfter(ids.at(-1)), { truncated: false, id: ids.at(-1) })
  t.match(await b.placeAfter('elsewhere:000000000001'), { truncated: true })
  const { items } = await b.page({ after: ids.at(-2)! }, UNLIMITED)
  t.same(items.map(idIn), [ids.at(-1)])
  t.match(JSON.parse((await a.find(ids.at(-1)!, UNLIMITED)).json), { preview: '109' })
  await t.rejects(a.find(ids[0]!, UNLIMITED), { code: 'SG_ERR_NOTIFICATION_NOT_FOUND' })
})

t.test(
  'a process that goes on with it alone keeps as many as before, and not those with the next numbers',
  async (t) => {
    const { a, b, tell, write, after, node, clock } = await build(t, { ...DEFAULT_NOTIFICATION_RETENTION, maxCount: 3 })
    const ids: string[] = []
    for (const [feed, preview] of [
      [a, 'one'],
      [b, 'two'],
      [a, 'three'],
    ] as const) {
      ids.push(tell(feed, preview))
      await write()
      await clock.advance(1_000)
    }
    const alone = await node()
    await new Promise(setImmediate)
    t.same(await after(alone, undefined), ['one', 'two', 'three'])
    t.same(await after(alone, ids[0]), ['two', 'three'])
    t.match(await alone.placeAfter(ids[0]), { truncated: false })
    for (const preview of ['four', 'five', 'six', 'seven']) {
      tell(alone, preview)
      await write()
    }
    t.same(await after(alone, undefined), ['five', 'six', 'seven'])
  },
)
