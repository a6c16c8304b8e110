import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { WebhookDelivery } from '../../schemas/jobs.js'
import type { ConformanceCase } from '../lib/conformance.js'
import type { DeliveryOutbox, KeptDelivery } from './outbox.js'

/** One thing that every DeliveryOutbox does. */
export type DeliveryOutboxCase = ConformanceCase<DeliveryOutbox>

const kept = (lane: string, id: string, delivery: object = { url: `https://hooks.example/${id}` }): KeptDelivery => ({
  id,
  lane,
  delivery,
})

const FULL = kept('job-1', 'delivery-1', {
  target: { url: 'https://hooks.example/jobs?k=1', headers: { authorization: 'Bearer x' } },
  body: { text: 'Zwölf "Boxkämpfer"\n\u2028 🥊', nothing: null, nested: [{ deep: [] }] },
})

const attempt = (number: number): WebhookDelivery => ({
  id: 'delivery-1',
  type: 'job_completed',
  attempt: number,
  at: 1_760_000_000_000 + number,
  durationMs: 12.5,
  ...(number % 2 ? { status: 503, error: 'status' } : { status: 204, channel: 'team' }),
})

const ids = async (outbox: DeliveryOutbox) => (await outbox.list()).map(({ lane, id }) => `${lane}/${id}`)

/** For authors of outboxes: run every case on a new, empty outbox. The bundled outboxes run the same ones. */
export const deliveryOutboxConformance: readonly DeliveryOutboxCase[] = [
  {
    name: 'is empty at first, and takes what is not there for removed',
    async run(outbox) {
      assert.deepEqual(await outbox.list(), [])
      assert.deepEqual(await outbox.attempts('nobody'), [])
      await outbox.remove('nobody', 'nothing')
      await outbox.forget('nobody')
    },
  },
  {
    name: 'keeps a delivery as it was',
    async run(outbox, reopen) {
      await outbox.add(FULL)
      assert.deepEqual(await outbox.list(), [FULL])
      const seen = reopen ? await reopen() : outbox
      assert.deepEqual(await seen.list(), [FULL])
      const long = kept('job-1', 'long', { body: 'ü'.repeat(300_000) })
      await seen.add(long)
      // not deepEqual: it would say in megabytes what differs
      assert.ok(isDeepStrictEqual((await seen.list())[1], long), 'a long delivery came back changed')
    },
  },
  {
    name: 'changes a delivery in its place, and none that is not there',
    async run(outbox, reopen) {
      if (!outbox.change) return
      for (const id of ['1', '2', '3']) await outbox.add(kept('a', id))
      await outbox.remove('a', '3')
      for (const id of ['1', '3']) await outbox.change(kept('a', id, { changed: id }))
      await outbox.change(kept('b', '2', { changed: 'in another lane' }))
      const expected = [kept('a', '1', { changed: '1' }), kept('a', '2')]
      assert.deepEqual(await outbox.list(), expected)
      if (reopen) assert.deepEqual(await (await reopen()).list(), expected)
    },
  },
  {
    name: 'lists in the order of adding, across lanes',
    async run(outbox, reopen) {
      for (const [lane, id] of ['b/1', 'a/1', 'b/2', 'c/1', 'a/2'].map((name) => name.split('/')))
        await outbox.add(kept(lane!, id!))
      await outbox.remove('b', '1')
      await outbox.add(kept('b', '1'))
      assert.deepEqual(await ids(reopen ? await reopen() : outbox), ['a/1', 'b/2', 'c/1', 'a/2', 'b/1'])
    },
  },
  {
    name: 'leaves an id that its lane has as it is, and knows the same id of another lane for another',
    async run(outbox) {
      await outbox.add(kept('a', '1', { first: true }))
      await outbox.add(kept('b', '1'))
      await outbox.add(kept('a', '1', { second: true }))
      assert.deepEqual(await outbox.list(), [kept('a', '1', { first: true }), kept('b', '1')])
    },
  },
  {
    name: 'removes the one that is named',
    async run(outbox, reopen) {
      const names = [
        ['a', '1'],
        ['a', '2'],
        ['b', '1'],
        ['a","1', 'x'],
        ['B', '1'],
        ['c', 'x'],
        ['c', 'X'],
        ['__proto__', 'constructor'],
      ] as const
      for (const [lane, id] of names) await outbox.add(kept(lane, id))
      await outbox.remove('a', '1')
      await outbox.remove('__proto__', 'constructor')
      await outbox.remove('a', '3')
      await outbox.remove('B', '1')
      await outbox.remove('c', 'X')
      assert.deepEqual(await ids(reopen ? await reopen() : outbox), ['a/2', 'b/1', 'a","1/x', 'c/x'])
    },
  },
  {
    name: 'keeps a great many, and all that is added at once',
    async run(outbox, reopen) {
      const names = Array.from({ length: 1_500 }, (_, index) => `lane-${index % 7}/${index}`)
      await Promise.all(names.map((name) => outbox.add(kept(...(name.split('/') as [string, string])))))
      assert.deepEqual(await ids(reopen ? await reopen() : outbox), names)
    },
  },
  {
    name: 'gives the attempts of a lane newest first, and keeps the last hundred',
    async run(outbox, reopen) {
      for (let number = 1; number <= 130; number++) await outbox.log('a', attempt(number))
      await outbox.log('b', attempt(1))
      for (const seen of [outbox, await reopen?.()]) {
        if (!seen) continue
        const attempts = await seen.attempts('a')
        assert.equal(attempts.length, 100)
        assert.deepEqual([attempts[0], attempts[99]], [attempt(130), attempt(31)])
        assert.deepEqual(await seen.attempts('b'), [attempt(1)])
        assert.deepEqual(await seen.attempts('A'), [])
      }
    },
  },
  {
    name: 'forgets the attempts of a lane, and leaves its deliveries',
    async run(outbox, reopen) {
      await outbox.add(FULL)
      await outbox.log('job-1', attempt(1))
      for (const lane of ['job-2', 'JOB-1', 'job-10']) await outbox.log(lane, attempt(1))
      await outbox.forget('job-1')
      const seen = reopen ? await reopen() : outbox
      assert.deepEqual(await seen.attempts('job-1'), [])
      for (const lane of ['job-2', 'JOB-1', 'job-10']) assert.deepEqual(await seen.attempts(lane), [attempt(1)], lane)
      assert.deepEqual(await seen.list(), [FULL])
    },
  },
  {
    name: 'forgets old attempts of lanes that have a blank in their name, and leaves all others, when it offers that',
    async run(outbox, reopen) {
      if (!outbox.prune) return
      await outbox.prune(attempt(1).at)
      await outbox.add(kept('tool a', '1'))
      // as a channel may be called, and as a clock that was set back may tell the times
      const later = { ...attempt(90), channel: '"at":1,' }
      for (const lane of ['tool a', 'job', 'notification a:1']) {
        await outbox.log(lane, later)
        for (let number = 1; number <= 60; number++) await outbox.log(lane, attempt(number))
      }
      for (let job = 1; job <= 600; job++) await outbox.log(`job-${job}`, attempt(1))
      await outbox.log('notification b:1', attempt(1))
      await outbox.prune(attempt(60).at)
      await outbox.log('notification c:1', attempt(59))
      await outbox.log('notification c:1', attempt(61))
      await Promise.all([outbox.prune(attempt(60).at), outbox.prune(attempt(60).at)])
      const seen = reopen ? await reopen() : outbox
      for (const lane of ['tool a', 'notification a:1'])
        assert.deepEqual(await seen.attempts(lane), [attempt(60), later], lane)
      assert.equal((await seen.attempts('job')).length, 61)
      assert.equal((await seen.attempts('job-600')).length, 1)
      assert.deepEqual(await seen.attempts('notification b:1'), [])
      assert.deepEqual(await seen.attempts('notification c:1'), [attempt(61)])
      assert.equal((await seen.list()).length, 1)
      await seen.prune!(attempt(100).at)
      assert.deepEqual(await seen.attempts('tool a'), [])
    },
  },
  {
    name: 'remembers targets that are gone, until their lane is forgotten, when it offers that',
    async run(outbox, reopen) {
      if (!outbox.rememberGone || !outbox.gone) return
      assert.deepEqual(await outbox.gone(), [])
      for (const target of ['job-1', 'job-2', 'job-1', '__proto__']) await outbox.rememberGone(target)
      await outbox.forget('job-2')
      const seen = reopen ? await reopen() : outbox
      assert.deepEqual((await seen.gone!()).sort(), ['__proto__', 'job-1'])
    },
  },
  {
    name: 'is not affected by what happens to what it took or gave',
    async run(outbox) {
      const mine = structuredClone(FULL)
      const tried = attempt(1)
      await outbox.add(mine)
      await outbox.log('job-1', tried)
      Object.assign(mine.delivery, { body: 'changed' })
      tried.type = 'changed'
      for (const theirs of await outbox.list()) Object.assign(theirs.delivery, { body: 'changed' })
      for (const theirs of await outbox.attempts('job-1')) theirs.type = 'changed'
      assert.deepEqual(await outbox.list(), [FULL])
      assert.deepEqual(await outbox.attempts('job-1'), [attempt(1)])
      await outbox.change?.(mine)
      const changed = structuredClone(await outbox.list())
      Object.assign(mine.delivery, { body: 'changed again' })
      assert.deepEqual(await outbox.list(), changed)
    },
  },
]
