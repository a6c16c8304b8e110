export const statement = (sql, ...values) => ({ sql, values });
/** Asks without changing anything. */
export const asks = (asked, result) => ({
    statements: [asked],
    writes: false,
    result: ([rows]) => result(rows),
});
/** Changes what is the same afterwards however often it is done. */
export const sets = (...statements) => ({ statements, writes: true, result: () => { } });
/** Changes what must be done once. */
export const does = (...statements) => ({ ...sets(...statements), again: [] });
//# sourceMappingURL=plan.js.map