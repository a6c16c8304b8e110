/** Why the storage did not do what it was asked for: nothing of it was done. */
export class StorageError extends Error {
    name = 'StorageError';
    /** The backend's own name of the problem, such as `SQLITE_FULL`. */
    code;
    constructor(code, message) {
        super(message);
        this.code = code;
    }
}
/** Asked for what cannot be, which says nothing about the storage. */
export const isRefusal = (error) => error instanceof StorageError && error.code === 'STORAGE_REFUSED';
/** A record is there that cannot be read, which says nothing about the others. */
export const isUnreadable = (error) => error instanceof StorageError && error.code === 'STORAGE_UNREADABLE';
/** This process is no member of the storage any more: nothing that it asks for is ever done. */
export const isFenced = (error) => error instanceof StorageError && error.code === 'STORAGE_FENCED';
//# sourceMappingURL=storage.js.map