import assert from 'node:assert/strict';
const key = (day, profile, person = 'ann', agent = 'claude') => ({ day, profile, agent, person });
const turn = (day, profile, more = {}) => ({
    ...key(day, profile),
    ...{ turns: 1, turnsSucceeded: 1, inputTokens: 10, outputTokens: 2, costUsd: 0.25 },
    ...more,
});
const ALWAYS = { from: '2026-01-01', to: '2026-12-31' };
/** What every UsageStore promises: run each on an empty one. */
export const usageStoreConformance = [
    {
        name: 'adds up what belongs to one key, and the greatest wait stays the greatest',
        async run(store, reopen) {
            await store.add([turn('2026-01-01', 'a'), turn('2026-01-01', 'a', { inputTokens: 5 })]);
            const waited = (approvalWaitMaxMs) => ({ ...key('2026-01-01', 'a'), approvalWaits: 1, approvalWaitMaxMs });
            await store.add([waited(7)]);
            await store.add([waited(3)]);
            await store.add([]);
            const [sum, ...others] = await (reopen ? await reopen() : store).read(ALWAYS, ['profile'], 9);
            assert.deepEqual(others, []);
            assert.deepEqual(sum, {
                ...{ profile: 'a', turns: 2, turnsSucceeded: 2, turnsFailed: 0, turnsInterrupted: 0 },
                ...{ inputTokens: 15, outputTokens: 4, cacheCreationTokens: 0, cacheReadTokens: 0, costUsd: 0.5 },
                ...{ approvalsAsked: 0, approvalsAnswered: 0, approvalsExpired: 0 },
                ...{ approvalWaits: 2, approvalWaitMs: 0, approvalWaitMaxMs: 7, jobs: 0 },
            });
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
            ]);
            const rows = async (...asked) => (await store.read(...asked)).map(({ day, profile, agent, person, turns }) => [
                ...[day, profile, agent, person].filter((part) => part !== undefined),
                turns,
            ]);
            assert.deepEqual(await rows(ALWAYS, ['day'], 9), [
                ['2026-01-01', 3],
                ['2026-01-02', 1],
                ['2026-01-03', 1],
            ]);
            assert.deepEqual(await rows(ALWAYS, ['profile', 'day'], 2), [
                ['2026-01-03', '__proto__', 1],
                ['2026-01-01', 'a', 2],
            ]);
            assert.deepEqual(await rows(ALWAYS, ['agent'], 9), [
                ['claude', 4],
                ['codex', 1],
            ]);
            assert.deepEqual(await rows({ ...ALWAYS, to: '2026-01-01', profiles: ['b', 'c'] }, ['person'], 9), [['', 1]]);
            assert.deepEqual(await rows({ ...ALWAYS, profiles: [] }, ['day'], 9), []);
            assert.deepEqual(await rows({ from: '2026-01-02', to: '2026-01-02' }, ['day', 'person'], 9), [
                ['2026-01-02', 'ann', 1],
            ]);
        },
    },
    {
        name: 'is not affected by what happens to what it took or gave',
        async run(store) {
            const mine = turn('2026-01-01', 'a');
            await store.add([mine]);
            mine.turns = 100;
            for (const theirs of await store.read(ALWAYS, ['day'], 9))
                theirs.turns = 100;
            assert.equal((await store.read(ALWAYS, ['day'], 9))[0]?.turns, 1);
        },
    },
];
//# sourceMappingURL=store-conformance.js.map