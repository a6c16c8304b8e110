/** What an operator is to see who gave no logger: warnings and errors, a line each. */
export const consoleNotices = {
    info() { },
    warn: (fields, message) => console.warn(line(fields, message)),
    error: (fields, message) => console.error(line(fields, message)),
};
function line(fields, message) {
    const facts = Object.entries(fields).map(([name, value]) => `${name}: ${String(value)}`);
    return `session-gateway: ${message}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}`;
}
/** Says nothing: the library's default inside tests and hosts without a logger. */
export const silentLogger = { info() { }, warn() { }, error() { } };
//# sourceMappingURL=logger.js.map