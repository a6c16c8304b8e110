import t from 'tap'
import type { NotificationFeed } from '../../src/notifications/feed.js'
import { FeedReader } from '../../src/notifications/feed-reader.js'
import type { Inbox } from '../../src/notifications/inbox.js'
import type { KeptNotification } from '../../src/notifications/store.js'
import { type Principal, UNLIMITED, visible } from '../../src/principal.js'
import { until } from '../fixtures/build.js'
import { only } from '../fixtures/profiles.js'

const listeners = { on: () => () => {} }
const kept = (number: number, profile: string): KeptNotification => {
  const json = JSON.stringify({ id: `e:${number}`, session: { profile } })
  return { number, type: 'turn_completed', sessionId: 's', profile, ts: 0, json }
}

t.test('what is read for a caller that sees less by then is not told', async (t) => {
  const all = [kept(1, 'hidden'), kept(2, 'seen')]
  const reads: (() => void)[] = []
  const feed = {
    ...{ listeners, headNumber: 2, head: 'e:2' },
    async readOn(after: number, _filter: object, principal: Principal) {
      await new Promise<void>((resolve) => reads.push(resolve))
      const found = all.filter(({ number, profile }) => number > after && visible(principal, profile))
      return { found, through: 2, id: 'e:2' }
    },
  } as unknown as NotificationFeed
  const inbox = { listeners, count: () => ({ permissions: 0, questions: 0 }) } as unknown as Inbox
  const told: string[] = []
  const sink = {
    write(frames: readonly { text: string }[]) {
      told.push(...frames.map(({ text }) => text))
      return true
    },
    close() {},
  }
  const place = { number: 0, id: 'e:0', truncated: false }
  const reader = new FeedReader({ feed, inbox }, sink, place, { filter: {}, principal: UNLIMITED })
  await until(() => reads.length === 1, 'a page that is read')
  reader.becomes(only('seen'))
  reads[0]!()
  await until(() => reads.length === 2, 'another look')
  reads[1]!()
  await until(() => told.some((text) => text.includes('notifications_synced')), 'all that there is')
  t.match(
    told.map((text) => JSON.parse(text)),
    [
      { type: 'notifications_attached' },
      { type: 'notification', notification: { id: 'e:2' } },
      { type: 'notifications_synced' },
      { type: 'inbox_changed' },
    ],
  )
  t.notMatch(told.join(), /hidden/)
})
