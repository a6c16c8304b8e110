import t from 'tap'
import { clientOn } from '../../client/client.js'
import { fakePlatform, said } from '../fixtures/client-platform.js'

const BASE = 'http://gateway.test/v1'

/** A gateway whose log may be another one with each page that is asked for. */
function world(...pages: { from?: number; to: number; lastSeq: number; epoch?: string }[]) {
  const fake = fakePlatform()
  fake.answer = () => {
    const { from = 1, to, lastSeq, epoch = 'e1' } = pages.shift()!
    const events = Array.from({ length: to - from + 1 }, (_, index) => said(from + index))
    return Response.json({ events, nextAfterSeq: to, lastSeq, epoch, truncated: false })
  }
  const { sessions } = clientOn(fake.platform, { baseUrl: BASE })
  const read: number[] = []
  return {
    read,
    async all(position: { afterSeq?: number; epoch?: string } = {}) {
      for await (const { seq } of sessions.events('s1', position)) read.push(seq)
      return read
    },
    left: () => pages.length,
  }
}

t.test('the pages of a log follow one another', async (t) => {
  const { all } = world({ to: 3, lastSeq: 5 }, { from: 4, to: 5, lastSeq: 5 })
  t.strictSame(await all(), [1, 2, 3, 4, 5])
})

t.test('a log that another took the place of is not read as one with it', async (t) => {
  const { read, all } = world({ to: 3, lastSeq: 5 }, { to: 2, lastSeq: 2, epoch: 'e2' })
  await t.rejects(all(), { name: 'GatewayError', code: 'SG_CLIENT_LOG_REPLACED' })
  t.strictSame(read, [1, 2, 3])
})

t.test('whoever comes with the place of another log gets this one', async (t) => {
  const { all } = world({ to: 2, lastSeq: 2, epoch: 'e2' })
  t.strictSame(await all({ afterSeq: 7, epoch: 'e1' }), [1, 2])
})

t.test('what is replayed because a crash took the end of a log back comes once', async (t) => {
  const { all, left } = world({ to: 5, lastSeq: 7 }, { to: 2, lastSeq: 4 }, { from: 3, to: 4, lastSeq: 4 })
  t.strictSame(await all(), [1, 2, 3, 4, 5])
  t.equal(left(), 1, 'nor is it asked for')
})
