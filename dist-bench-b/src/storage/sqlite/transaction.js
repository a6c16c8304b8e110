const observers = new WeakMap();
/** Has whoever remembers what was written told that it was not. */
export function onRollback(db, forget) {
    observers.set(db, forget);
}
/** @throws whatever `work` or the commit throws; nothing is written then */
export function inTransaction(db, work) {
    db.exec('BEGIN');
    try {
        const result = work();
        db.exec('COMMIT');
        return result;
    }
    catch (error) {
        rollBack(db);
        throw error;
    }
}
function rollBack(db) {
    observers.get(db)?.();
    try {
        db.exec('ROLLBACK');
    }
    catch {
        // After some errors SQLite has done it already, and says that there is nothing to roll back.
    }
}
//# sourceMappingURL=transaction.js.map