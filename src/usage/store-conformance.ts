import assert from 'node:assert/strict'
import { USAGE_NUMBERS, type UsageNumbers } from '../../schemas/usage.js'
import type { ConformanceCase } from '../lib/conformance.js'
import type { UsageCount, UsageStore } from './store.js'

/** One promise of a UsageStore. `reopen` gives what the next process finds; absent: nothing outlives this one. */
export type UsageStoreCase = ConformanceCase<UsageStore>

const key = (day: string, profile: string, person = 'ann', agent = 'claude') => ({ day, profile, agent, person })
const turn = (day: string, profile: string, more: Partial<UsageCount> = {}): UsageCount => ({
  ...key(day, profile),
  ...{ turns: 1, turnsSucceeded: 1, inputTokens: 10, outputTokens: 2, costUsd: 0.25 },
  ...more,
})
const ALWAYS = { from: '2026-01-01', to: '2026-12-31' }

/** What every UsageStore promises: run each on an empty one. */
export const usageStoreConformance: readonly UsageStoreCase[] = [
  {
    name: 'adds up what belongs to one key, and the greatest wait stays the greatest',
    async run(store, reopen) {
      await store.add([turn('2026-01-01', 'a'), turn('2026-01-01', 'a', { inputTokens: 5 })])
      const waited = (approvalWaitMaxMs: number) => ({ ...key('2026-01-01', 'a'), approvalWaits: 1, approvalWaitMaxMs })
      await store.add([waited(7)])
      await store.add([waited(3)])
      await store.add([])
      const [sum, ...others] = await (reopen ? await reopen() : store).read(ALWAYS, ['profile'], 9)
      assert.deepEqual(others, [])
      assert.deepEqual(sum, {
        ...{ profile: 'a', turns: 2, turnsSucceeded: 2, turnsFailed: 0, turnsInterrupted: 0 },
        ...{ inputTokens: 15, outputTokens: 4, cacheCreationTokens: 0, cacheReadTokens: 0, costUsd: 0.5 },
        ...{ approvalsAsked: 0, approvalsAnswered: 0, approvalsExpired: 0 },
        ...{ approvalWaits: 2, approvalWaitMs: 0, approvalWaitMaxMs: 7, jobs: 0 },
      })
    },
  },
  {
    name: 'keeps each number for itself, whole and also when it is large',
    async run(store, reopen) {
      const numbers = Object.fromEntries(USAGE_NUMBERS.map((name, index) => [name, 2 ** 33 + index])) as UsageNumbers
      const one = { ...key('2026-01-01', 'a'), ...numbers, costUsd: 2 ** -20 }
      await store.add([one])
      const seen = reopen ? await reopen() : store
      assert.deepEqual(await seen.read(ALWAYS, ['profile'], 9), [{ profile: 'a', ...numbers, costUsd: 2 ** -20 }])
      await seen.add([one])
      const doubled = Object.fromEntries(Object.entries(numbers).map(([name, number]) => [name, 2 * number]))
      const { approvalWaitMaxMs } = numbers
      assert.deepEqual(await seen.read(ALWAYS, ['profile'], 9), [
        { profile: 'a', ...doubled, approvalWaitMaxMs, costUsd: 2 ** -19 },
      ])
    },
  },
  {
    name: 'loses nothing of what is added at once, and gives the greatest wait of all that it sums',
    async run(store, reopen) {
      const waited = (index: number) => turn('2026-01-01', 'a', { person: `p${index % 3}`, approvalWaitMaxMs: index })
      await Promise.all(Array.from({ length: 60 }, (_, index) => store.add([waited(index)])))
      const [sum, ...others] = await (reopen ? await reopen() : store).read(ALWAYS, ['profile'], 9)
      assert.deepEqual(others, [])
      assert.deepEqual([sum?.turns, sum?.inputTokens, sum?.approvalWaitMaxMs], [60, 600, 59])
    },
  },
  {
    name: 'sums by any parts of the key, in their order, of the days and profiles that are asked for',
    async run(store) {
      await store.add([
        turn('2026-01-02', 'b'),
        turn('2026-01-01', 'b', { person: '' }),
        turn('2026-01-01', 'a', { agent: 'codex' }),
        turn('2026-01-01', 'a', { person: "o'neil; DROP TABLE" }),
        turn('2026-01-03', '__proto__'),
      ])
      const rows = async (...asked: Parameters<UsageStore['read']>) =>
        (await store.read(...asked)).map(({ day, profile, agent, person, turns }) => [
          ...[day, profile, agent, person].filter((part) => part !== undefined),
          turns,
        ])
      assert.deepEqual(await rows(ALWAYS, ['day'], 9), [
        ['2026-01-01', 3],
        ['2026-01-02', 1],
        ['2026-01-03', 1],
      ])
      assert.deepEqual(await rows(ALWAYS, ['profile', 'day'], 2), [
        ['2026-01-03', '__proto__', 1],
        ['2026-01-01', 'a', 2],
      ])
      assert.deepEqual(await rows(ALWAYS, ['agent'], 9), [
        ['claude', 4],
        ['codex', 1],
      ])
      assert.deepEqual(await rows({ ...ALWAYS, to: '2026-01-01', profiles: ['b', 'c'] }, ['person'], 9), [['', 1]])
      assert.deepEqual(await rows({ ...ALWAYS, profiles: [] }, ['day'], 9), [])
      assert.deepEqual(await rows({ from: '2026-01-02', to: '2026-01-02' }, ['day', 'person'], 9), [
        ['2026-01-02', 'ann', 1],
      ])
    },
  },
  {
    name: 'tells keys apart that differ in one part, whatever the parts are made of',
    async run(store, reopen) {
      const keys = [
        ['2026-01-01', 'a', 'claude', 'ann'],
        ['2026-01-02', 'a', 'claude', 'ann'],
        ['2026-01-02', 'b', 'claude', 'ann'],
        ['2026-01-02', 'b', 'codex', 'ann'],
        ['2026-01-02', 'b', 'codex', 'bob'],
        ['2026-01-02', 'b codex', 'x', 'bob'],
        ['2026-01-02', 'b', 'codex x', 'bob'],
        ['2026-01-02', 'b', 'codex', '","bob'],
        ['2026-01-02', 'b', 'codex', 'Bob'],
        ['2026-01-02', 'b', 'codex', 'bob '],
      ] as const
      await store.add(keys.map(([day, profile, agent, person]) => turn(day, profile, { agent, person })))
      const seen = reopen ? await reopen() : store
      const found = await seen.read(ALWAYS, ['day', 'profile', 'agent', 'person'], 99)
      const shown = found.map(({ day, profile, agent, person, turns }) =>
        JSON.stringify([day, profile, agent, person, turns]),
      )
      assert.deepEqual(new Set(shown), new Set(keys.map((one) => JSON.stringify([...one, 1]))))
    },
  },
  {
    name: 'is not affected by what happens to what it took or gave',
    async run(store) {
      const mine = turn('2026-01-01', 'a')
      await store.add([mine])
      mine.turns = 100
      for (const theirs of await store.read(ALWAYS, ['day'], 9)) theirs.turns = 100
      assert.equal((await store.read(ALWAYS, ['day'], 9))[0]?.turns, 1)
    },
  },
]
