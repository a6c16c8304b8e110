const LEGAL = {
    building: ['starting', 'asleep', 'ended'],
    starting: ['live', 'asleep', 'ended'],
    live: ['leaving', 'asleep', 'ended'],
    leaving: ['asleep', 'waking', 'ended'],
    asleep: ['waking', 'ended'],
    waking: ['live', 'leaving', 'asleep', 'ended'],
    ended: [],
};
/** @returns `next` @throws Error when a session cannot come to be that */
export function after(before, next) {
    if (!LEGAL[before.is].includes(next.is))
        throw new Error(`A session that is ${before.is} cannot be ${next.is}.`);
    return next;
}
export const BUILDING = { is: 'building' };
//# sourceMappingURL=life.js.map