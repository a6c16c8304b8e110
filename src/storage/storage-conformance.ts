import assert from 'node:assert/strict'
import type { StoredProfile } from '../../schemas/profiles.js'
import type { KeptKey, Made, StoredAnswer } from '../idempotency/store.js'
import { expectedOf, type JobPatch } from '../jobs/adapter.js'
import type { KeptNotification } from '../notifications/store.js'
import type { UsageCount } from '../usage/store.js'
import { jobOf, sessionOf } from './conformance-fixtures.js'
import type { GatewayStorage } from './storage.js'

/** One thing that the parts of every GatewayStorage do together. */
export interface GatewayStorageCase {
  name: string
  /**
   * @param storage an open, empty one
   * @param reopen gives the same one, open, as a new process would see it
   * @throws AssertionError
   */
  run(storage: GatewayStorage, reopen: () => Promise<GatewayStorage>): Promise<void>
}

const ANSWER: StoredAnswer = { status: 201, headers: { location: '/v1/jobs/one' }, body: '{}' }

const keyOf = <Kind extends Made['kind']>(
  kind: Kind,
  id: string,
  key = `key of ${id}`,
): KeptKey & { made: { kind: Kind } } => ({
  ...{ key, fingerprint: 'f' },
  made: { kind, id, location: `/v1/${kind}s/${id}` },
})

const profileOf = (name: string): StoredProfile => ({ name, engine: 'cli', configDir: '/srv/agents/one' })

/** Makes one thing of each kind, with a key. */
const MAKINGS: Record<
  (typeof KINDS)[number],
  (storage: GatewayStorage, id: string, key?: KeptKey) => Promise<unknown>
> = {
  session: ({ journal }, id, key) => journal.write({ ...sessionOf(id), ...(key && { keys: [key] }) }),
  job: ({ queue }, id, key) => queue.add(jobOf(id), key),
  profile: async ({ profiles }, id, key) => profiles.save(profileOf(id), key),
}
const KINDS = ['session', 'job', 'profile'] as const

/** For authors of storages: run every case on a new, empty storage, besides the suites of its parts. The bundled storages run the same ones. */
export const gatewayStorageConformance: readonly GatewayStorageCase[] = [
  {
    name: 'keeps a key with what its request makes, to be answered by the next process',
    async run(storage, reopen) {
      assert.equal(storage.oneWrite, true)
      const keys = KINDS.map((kind) => keyOf(kind, kind))
      for (const { key, made } of keys) {
        await storage.idempotency.begin(key, 'f')
        await MAKINGS[made.kind](storage, made.id, keyOf(made.kind, made.id))
        assert.deepEqual(await storage.idempotency.begin(key, 'f'), { state: 'in_flight' })
      }
      const { idempotency } = await reopen()
      const left = await idempotency.left!()
      assert.deepEqual(new Set(left), new Set(keys))
      for (const { key } of keys) assert.deepEqual(await idempotency.begin(key, 'f'), { state: 'in_flight' })
      for (const { key } of left) await idempotency.complete(key, ANSWER)
      for (const { key } of keys)
        assert.deepEqual(await idempotency.begin(key, 'f'), { state: 'answered', answer: ANSWER })
      const again = (await reopen()).idempotency
      assert.deepEqual(await again.left!(), [])
      for (const { key } of keys) assert.deepEqual(await again.begin(key, 'f'), { state: 'answered', answer: ANSWER })
    },
  },
  {
    name: 'keeps a key with what is asked of a session, whoever has it',
    async run(storage, reopen) {
      const live = keyOf('answer', 'live')
      await storage.journal.write(sessionOf('one'))
      await storage.journal.write({ id: 'one', state: sessionOf('one').state!, keys: [live] })
      const asleep = keyOf('answer', 'asleep')
      assert.equal(await storage.journal.deposit('one', [{ key: 'k', type: 'close' }], [asleep]), true)
      assert.equal(
        await storage.journal.deposit('two', [{ key: 'k', type: 'close' }], [keyOf('answer', 'gone')]),
        false,
      )
      const { idempotency } = await reopen()
      assert.deepEqual(new Set(await idempotency.left!()), new Set([live, asleep]))
    },
  },
  {
    name: 'keeps no key with what it refuses to make',
    async run(storage, reopen) {
      for (const kind of ['session', 'job'] as const) {
        await MAKINGS[kind](storage, kind)
        await storage.idempotency.begin(`key of ${kind}`, 'f')
        await assert.rejects(MAKINGS[kind](storage, kind, keyOf(kind, kind)))
      }
      const { idempotency } = await reopen()
      assert.deepEqual(await idempotency.left!(), [])
      assert.deepEqual(await idempotency.begin('key of job', 'other'), { state: 'new' })
    },
  },
  {
    name: 'leaves nothing of a key that was answered or released',
    async run(storage, reopen) {
      for (const [index, kind] of KINDS.entries()) {
        const key = keyOf(kind, kind)
        await storage.idempotency.begin(key.key, 'f')
        await MAKINGS[kind](storage, kind, key)
        await (index % 2 ? storage.idempotency.release(key.key) : storage.idempotency.complete(key.key, ANSWER))
      }
      const { idempotency } = await reopen()
      assert.deepEqual(await idempotency.left!(), [])
      assert.equal((await idempotency.begin('key of session', 'f')).state, 'answered')
      assert.equal((await idempotency.begin('key of job', 'g')).state, 'new')
    },
  },
  {
    name: 'keeps a key for what is made elsewhere, until it is released',
    async run(storage, reopen) {
      const key = keyOf('job', 'elsewhere')
      await storage.idempotency.begin(key.key, 'f')
      await storage.idempotency.keep!(key)
      const { idempotency } = await reopen()
      assert.deepEqual(await idempotency.left!(), [key])
      await idempotency.release(key.key)
      assert.deepEqual(await idempotency.begin(key.key, 'other'), { state: 'new' })
      assert.deepEqual(await (await reopen()).idempotency.left!(), [])
    },
  },
  {
    name: 'keeps what is to be delivered about events with them, and about an end with the removal',
    async run(storage, reopen) {
      const delivery = (id: string) => ({ id: `one:${id}`, lane: 'one', delivery: { to: 'a receiver' } })
      const events = [{ seq: 1, json: '{"seq":1}' }]
      await storage.journal.write({ ...sessionOf('one'), events, deliveries: [delivery('1'), delivery('2')] })
      await assert.rejects(storage.journal.write({ id: 'one', events, deliveries: [delivery('refused')] }))
      const second = await reopen()
      assert.deepEqual(await second.outbox.list(), [delivery('1'), delivery('2')])
      await second.journal.remove('one', [delivery('ended')])
      await second.journal.remove('one', [delivery('again')])
      const third = await reopen()
      assert.deepEqual(await third.outbox.list(), [delivery('1'), delivery('2'), delivery('ended')])
      assert.deepEqual(await third.journal.list(), [])
    },
  },
  {
    name: 'keeps what is to be delivered about a change of a job with it, and nothing about one that is not made',
    async run(storage, reopen) {
      const delivery = (id: string) => ({ id, lane: 'job', delivery: { to: 'a receiver' } })
      const { queue } = storage
      await queue.add(jobOf('job'))
      await queue.update('job', { status: 'running' }, 'queued', [delivery('started'), delivery('more')])
      await queue.update('job', { status: 'canceled' }, 'queued', [delivery('late')])
      await queue.update('nobody', { status: 'canceled' }, undefined, [delivery('of nobody')])
      const second = await reopen()
      assert.deepEqual(await second.outbox.list(), [delivery('started'), delivery('more')])
      const charge = { day: '2026-01-01', tokens: 1 }
      await second.queue.settle?.('job', { status: 'failed' }, charge, 'parked', [delivery('of another')])
      const end: JobPatch = { status: 'succeeded', finishedAt: 1 }
      await (second.queue.settle
        ? second.queue.settle('job', end, charge, 'running', [delivery('ended')])
        : second.queue.update('job', end, 'running', [delivery('ended')]))
      const third = await reopen()
      assert.deepEqual(await third.outbox.list(), [delivery('started'), delivery('more'), delivery('ended')])
    },
  },
  {
    name: 'counts the changes of a job, so that nothing is taken from an attempt that is over',
    async run(storage, reopen) {
      await storage.queue.add(jobOf('job'))
      const first = (await storage.queue.claimNext())!
      const again = { status: 'queued', attempt: 2 } as const
      const queued = (await storage.queue.update('job', again, expectedOf(first)))!
      const { queue } = await reopen()
      const second = (await queue.claimNext())!
      assert.ok(first.rev! < queued.rev! && queued.rev! < second.rev!)
      assert.equal((await queue.list())[0]!.rev, second.rev)
      assert.equal(await queue.update('job', { status: 'failed' }, expectedOf(first)), null)
      assert.deepEqual(await queue.get('job'), second)
    },
  },
  {
    name: 'keeps what is told of events with them, and of an end with the removal',
    async run(storage, reopen) {
      const told = (number: number): KeptNotification => ({
        ...{ number, type: 'turn_completed', sessionId: 'one', profile: 'one', ts: number, json: `{"n":${number}}` },
      })
      const range = { after: 0, until: 99, since: 0 }
      const read = ({ notifications }: GatewayStorage) => notifications!.read(range, { limit: 99, maxBytes: 1e6 })
      const events = [{ seq: 1, json: '{"seq":1}' }]
      await storage.journal.write({ ...sessionOf('one'), events, notifications: [told(1), told(2)] })
      await assert.rejects(storage.journal.write({ id: 'one', events, notifications: [told(3)] }))
      const second = await reopen()
      assert.deepEqual(await read(second), [told(1), told(2)])
      await second.journal.remove('one', [], [told(4)])
      await second.journal.remove('one', [], [told(5)])
      const third = await reopen()
      assert.deepEqual(await read(third), [told(1), told(2), told(4)])
      assert.equal((await third.notifications!.open('e')).lastNumber, 4)
    },
  },
  {
    name: 'counts what events are of with them, each once, and what is refused not at all',
    async run(storage, reopen) {
      const count: UsageCount = { day: '2026-01-01', profile: 'one', agent: 'claude', person: 'ann', turns: 1 }
      const turns = async ({ usage }: GatewayStorage) =>
        (await usage!.read({ from: '2026-01-01', to: '2026-01-01' }, ['profile'], 9)).map((sum) => sum.turns)
      const events = [{ seq: 1, json: '{"seq":1}' }]
      await storage.journal.write({ ...sessionOf('one'), events, usage: [count, count] })
      await assert.rejects(storage.journal.write({ id: 'one', events, usage: [count] }))
      const second = await reopen()
      assert.deepEqual(await turns(second), [2])
      await second.journal.remove('one', [], [], undefined, [count])
      await second.journal.remove('one', [], [], undefined, [count])
      assert.deepEqual(await turns(await reopen()), [3])
    },
  },
]
