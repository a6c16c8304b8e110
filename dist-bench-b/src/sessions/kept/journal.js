export const SOLE_OWNER = { term: 0 };
export const isTerminal = ({ status }) => status === 'failed' || status === 'closed';
/** Where a session stands in the lists; of a version that wrote no order down: as it was first written, or by time. */
export const orderOf = ({ state: { order, info }, position }) => order ?? position ?? info.createdAt;
/** Ids of the executions that a session has had; what nobody settled is taken as settled, as cut off. */
export const executionsOf = ({ settled = [], executions = [] }) => [
    ...new Set([...settled, ...executions.map(({ executionId }) => executionId)]),
];
//# sourceMappingURL=journal.js.map