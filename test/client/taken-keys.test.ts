import t from 'tap'
import { clientOn } from '../../client/client.js'
import { fakePlatform, problem } from '../fixtures/client-platform.js'

/** What comes of a call, with as much time as it takes. */
async function inTime<T>(clock: { advance(ms: number): Promise<void> }, call: Promise<T>): Promise<T> {
  let isDone = false
  const done = () => {
    isDone = true
  }
  call.then(done, done)
  while (!isDone) await clock.advance(1000)
  return call
}

t.test('a create whose node was lost with it waits until its key is free', async (t) => {
  const w = fakePlatform()
  const client = clientOn(w.platform, { baseUrl: 'http://gateway.test/v1' })
  const from = w.clock.now()
  const leaseMs = 10_000
  w.answer = () => {
    if (w.requests.length === 1) throw new TypeError('fetch failed')
    if (w.clock.now() - from < leaseMs) return problem(409, 'SG_ERR_IDEMPOTENCY_IN_FLIGHT', { 'retry-after': '1' })
    return Response.json({ id: 's1' }, { status: 201 })
  }
  t.same(await inTime(w.clock, client.sessions.create({ cwd: '/' })), { id: 's1' })
  t.equal(new Set(w.requests.map(({ headers }) => headers.get('idempotency-key'))).size, 1)
  w.answer = () => problem(409, 'SG_ERR_IDEMPOTENCY_IN_FLIGHT', { 'retry-after': '1' })
  const again = w.clock.now()
  await t.rejects(inTime(w.clock, client.sessions.create({ cwd: '/' })), { code: 'SG_ERR_IDEMPOTENCY_IN_FLIGHT' })
  t.ok(w.clock.now() - again < 60_000, 'and not for ever')
})
