/** Milliseconds of a clock that all processes of the machine share. */
export const machineMs = () => Number(process.hrtime.bigint()) / 1e6;
/** How long nothing happens before an ask, so that it comes alone. */
export const QUIET_MS = 2;
/** An ask that says when it was made. */
export const askNow = () => ({
    toolName: 'fs_write',
    toolUseId: 'tool-1',
    input: { madeAt: machineMs(), path: 'notes.md', content: 'One line of text.\n'.repeat(20) },
});
const MADE_AT = /"madeAt":([\d.]+)/;
/** How long ago the ask was made that a message tells of; undefined when it tells of none. */
export function ageOf(text) {
    const found = MADE_AT.exec(text);
    return found ? machineMs() - Number(found[1]) : undefined;
}
//# sourceMappingURL=ask.js.map