/**
 * Node's own SQLite, or a package with the same API for releases that have none.
 * @throws Error when there is neither
 */
export async function loadDriver() {
    const builtIn = withoutExperimentalWarning(() => process.getBuiltinModule('node:sqlite'));
    const { DatabaseSync } = (builtIn ?? (await loadPackage()));
    return DatabaseSync;
}
async function loadPackage() {
    try {
        return await import('@photostructure/sqlite');
    }
    catch (cause) {
        const remedy = 'Use Node 22.13 or later, or run `npm i @photostructure/sqlite@1`.';
        throw new Error(`Node ${process.versions.node} has no SQLite. ${remedy}`, { cause });
    }
}
const read = new Set();
/** Rows one at a time. An iterator of the package does not keep its statement from being collected, and crashes the process then. */
export function* rowsOf(statement, ...values) {
    read.add(statement);
    try {
        yield* statement.iterate(...values);
    }
    finally {
        read.delete(statement);
    }
}
/** Node 22 warns of its SQLite, which has not changed since. */
function withoutExperimentalWarning(load) {
    const { emitWarning } = process;
    process.emitWarning = () => { };
    try {
        return load();
    }
    finally {
        process.emitWarning = emitWarning;
    }
}
//# sourceMappingURL=driver.js.map