import assert from 'node:assert/strict'
import type { ConformanceCase } from '../lib/conformance.js'
import { type JobFilter, placeOf, type QueueAdapter } from './adapter.js'
import { HOUR_MS, ids, listed, record } from './conformance-fixtures.js'

/** What every QueueAdapter gives when it is asked for jobs by a filter. */
export const listCases: readonly ConformanceCase<QueueAdapter>[] = [
  {
    name: 'lists newest first, by status, by profile and in pages',
    async run(adapter, reopen) {
      for (let index = 0; index < 10; index++)
        await adapter.add(
          record(`j${index}`, { at: 1000 + Math.floor(index / 5), profile: index % 2 ? 'odd' : 'even' }),
        )
      await adapter.update('j3', { status: 'canceled', finishedAt: 2000 })
      const list = (filter?: JobFilter) => listed(adapter, filter)
      const all = ['j9', 'j8', 'j7', 'j6', 'j5', 'j4', 'j3', 'j2', 'j1', 'j0']
      assert.deepEqual(await list(), all)
      if (reopen) assert.deepEqual(await listed(await reopen()), all)
      assert.deepEqual(await list({ status: ['canceled'] }), ['j3'])
      assert.deepEqual(await list({ status: ['queued', 'canceled'] }), all)
      assert.deepEqual(await list({ status: [] }), [])
      // of a caller who sees no profile, or asks for one that he does not see
      assert.deepEqual(await list({ profiles: [], limit: 3 }), [])
      assert.deepEqual(await list({ profiles: ['odd'], status: ['queued'] }), ['j9', 'j7', 'j5', 'j1'])
      assert.deepEqual(await list({ profiles: ['even'], limit: 3 }), ['j8', 'j6', 'j4'])
      assert.deepEqual(await list({ profiles: ['odd', 'even'], limit: 3 }), ['j9', 'j8', 'j7'])
      assert.deepEqual(await list({ after: { id: 'j7', createdAt: 1001 }, limit: 2 }), ['j6', 'j5'])
      assert.deepEqual(await list({ after: { id: 'j7', createdAt: 1001 }, profiles: ['odd'] }), ['j5', 'j3', 'j1'])
    },
  },
  {
    name: 'lists all when it is asked for no number of them',
    async run(adapter) {
      const all = Array.from({ length: 120 }, (_, index) => `job-${index}`)
      await Promise.all(all.map((id) => adapter.add(record(id))))
      assert.deepEqual((await listed(adapter, { status: ['queued'] })).sort(), all.sort())
    },
  },
  {
    name: 'goes on behind a job that is gone by its time',
    async run(adapter) {
      for (const [id, at] of Object.entries({ a: 1000, b: 2000, c: 3000 })) await adapter.add(record(id, { at }))
      assert.deepEqual(await listed(adapter, { after: { id: 'gone', createdAt: 2500 } }), ['b', 'a'])
      assert.deepEqual(await listed(adapter, { after: { id: 'gone', createdAt: 2000 } }), ['b', 'a'])
    },
  },
  {
    name: 'lists in the order of submission when the clock went back, also behind a job that is gone, if it numbers them',
    async run(adapter, reopen) {
      for (const [id, at] of Object.entries({ a: 3000, b: 1000, c: 4000, d: 2000, e: 2000 }))
        await adapter.add(record(id, { at }))
      const all = ['e', 'd', 'c', 'b', 'a']
      assert.deepEqual(await listed(adapter), all)
      const opened = reopen ? await reopen() : adapter
      const records = await opened.list()
      assert.deepEqual(ids(records), all)
      const after = placeOf(records[3]!)
      assert.deepEqual(await listed(opened, { after }), ['a'])
      await opened.update('b', { status: 'canceled', finishedAt: 1 })
      await opened.prune(HOUR_MS)
      await opened.add(record('f', { at: 500 }))
      assert.deepEqual(await listed(opened), ['f', 'e', 'd', 'c', 'a'])
      if (after.position !== undefined) assert.deepEqual(await listed(opened, { after }), ['a'])
    },
  },
]
