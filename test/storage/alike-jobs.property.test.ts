import fc from 'fast-check'
import t from 'tap'
import type { JobStatus } from '../../schemas/jobs.js'
import { expectedOf, type JobRecord, placeOf, type QueueAdapter } from '../../src/jobs/adapter.js'
import { record, unnumbered } from '../../src/jobs/conformance-fixtures.js'
import { isTerminal } from '../../src/jobs/job.js'
import {
  type Asking,
  areAlike,
  asking,
  IDS,
  id,
  limit,
  maybe,
  NOW,
  one,
  PROFILES,
  ROUNDS,
  some,
  time,
} from '../fixtures/alike.js'

/** Records that an adapter has given out, by id. */
type Own = Map<string, JobRecord>

const ask = asking<QueueAdapter, Own>

const STATUSES: JobStatus[] = ['queued', 'running', 'parked', 'succeeded', 'failed', 'canceled']
const DAY = '2026-01-01'

const shown = (records: readonly (JobRecord | null)[]) => records.map(unnumbered)

const patch = fc.tuple(one(STATUSES), time, fc.integer({ min: 1, max: 3 })).map(([status, at, attempt]) => ({
  ...{ status, attempt, nextRunAt: status === 'queued' ? at : undefined },
  ...{ finishedAt: isTerminal(status) ? (at ?? NOW) : undefined, parkedAt: status === 'parked' ? NOW : undefined },
}))

const asked: fc.Arbitrary<Asking<QueueAdapter, Own>> = fc.oneof(
  fc.tuple(id, one([undefined, -1, 1]), time, one(PROFILES)).map(([id, priority, runAt, profile]) =>
    ask(`add ${id} ${priority} ${runAt} ${profile}`, async (queue) => {
      // an id is given to one job
      if (await queue.get(id)) return 'there'
      const more = { ...(priority !== undefined && { priority }), ...(runAt !== undefined && { runAt }) }
      return queue.add(record(id, { ...more, profile, at: NOW }))
    }),
  ),
  fc.constant(ask('claimNext', async (queue) => shown([await queue.claimNext()]))),
  limit.map((count) =>
    ask(`claim ${count}`, async (queue) =>
      shown((await queue.claim!(count, { begin: { at: NOW, sessionIds: ['s1', 's2'] } })).jobs),
    ),
  ),
  fc.tuple(id, patch, fc.boolean()).map(([id, patch, isFresh]) =>
    ask(`update ${id} ${JSON.stringify(patch)} as ${isFresh ? 'it is' : 'it was'}`, async (queue, own) => {
      const known = isFresh ? await queue.get(id) : own.get(id)
      if (known) own.set(id, known)
      return shown([await queue.update(id, patch, known ? expectedOf(known) : undefined)])
    }),
  ),
  fc.tuple(id, patch, one(STATUSES)).map(([id, patch, expected]) =>
    ask(`settle ${id} ${JSON.stringify(patch)} if ${expected}`, async (queue) => {
      const { record, dailyTokens } = await queue.settle!(id, patch, { day: DAY, tokens: 3 }, expected)
      return [shown([record]), dailyTokens]
    }),
  ),
  fc.tuple(some(STATUSES), some(PROFILES), maybe(id), maybe(limit)).map(([status, profiles, after, limit]) =>
    ask(`list ${status} of ${profiles} after ${after}, ${limit}`, async (queue, own) => {
      const last = after === undefined ? undefined : own.get(after)
      const listed = await queue.list({
        ...(status && { status }),
        ...(profiles && { profiles }),
        ...(last && { after: placeOf(last) }),
        ...(limit !== undefined && { limit }),
      })
      for (const one of listed) own.set(one.info.id, one)
      return shown(listed)
    }),
  ),
  id.map((id) => ask(`get ${id}`, async (queue) => shown([await queue.get(id)]))),
  fc.constant(
    ask('counts', async (queue) =>
      (await queue.counts!()).map(({ profile, status, count }) => `${profile} ${status} ${count}`).sort(),
    ),
  ),
  fc
    .tuple(time, limit)
    .map(([after = 0, limit]) => ask(`delayed ${after} ${limit}`, (queue) => queue.delayed!(after, limit))),
  id.map((id) => ask(`remove ${id}`, (queue) => queue.remove!(id))),
  fc
    .tuple(one([0, 500, 5_000]), limit)
    .map(([age, limit]) => ask(`ended ${age} ${limit}`, (queue) => queue.ended!(age, limit))),
  one([500, 5_000]).map((age) => ask(`prune ${age}`, (queue) => queue.prune(age))),
)

t.test(`memory and SQLite answer alike to ${ROUNDS} lives of jobs`, (t) =>
  areAlike(t, {
    seam: ({ queue }) => queue,
    asked,
    clear: async (queue) => {
      for (const id of IDS) await queue.remove!(id)
    },
  }),
)
