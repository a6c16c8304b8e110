/** The operation asks for what cannot be; it throws this before it has written anything. */
export class Refusal extends Error {
    code;
    constructor(message, code = 'STORAGE_REFUSED') {
        super(message);
        this.code = code;
    }
}
const REPAIR = 'Look at it with `session-gateway doctor`; `doctor --salvage FILE` writes what can be read into a new one. To restore a backup, remove the -wal and -shm files beside it too. It was left as it is.';
/** What the primary result codes of SQLite mean to whoever runs the gateway. */
const MEANINGS = {
    3: { code: 'SQLITE_PERM', message: (path) => `this account may not use ${path}` },
    5: { code: 'SQLITE_BUSY', message: (path) => `another program has locked ${path}` },
    8: { code: 'SQLITE_READONLY', message: (path) => `this account may not write to ${path}, or its directory` },
    10: { code: 'SQLITE_IOERR', message: (path) => `the disk failed while reading or writing ${path}` },
    11: { code: 'SQLITE_CORRUPT', message: (path) => `${path} is damaged. ${REPAIR}` },
    13: { code: 'SQLITE_FULL', message: (path) => `there is no space left for ${path}` },
    14: { code: 'SQLITE_CANTOPEN', message: (path) => `${path} cannot be opened` },
    26: { code: 'SQLITE_NOTADB', message: (path) => `${path} is not a database. ${REPAIR}` },
};
export function failureOf(error, path) {
    if (error instanceof Refusal)
        return { code: error.code, message: error.message };
    const { message, errcode, code } = error;
    const meaning = errcode === undefined ? undefined : MEANINGS[errcode & 0xff];
    if (!meaning)
        return { code: code ?? 'STORAGE', message };
    return { code: meaning.code, message: `${meaning.message(path)} (${meaning.code} ${errcode}: ${message})` };
}
export const damaged = (path, problem) => new Refusal(`${path} is damaged: ${problem.replace(/\s+/g, ' ')}. ${REPAIR}`, 'SQLITE_CORRUPT');
//# sourceMappingURL=failures.js.map