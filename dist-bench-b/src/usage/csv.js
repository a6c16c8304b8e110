import { USAGE_NUMBERS } from '../../schemas/usage.js';
/** The rows as CSV (RFC 4180) with a header; the columns are the members, what is absent is empty. */
export function usageCsv({ by, rows }) {
    const columns = [...by, ...USAGE_NUMBERS, 'costUsd'];
    const lines = [columns.join(','), ...rows.map((row) => columns.map((column) => cell(row[column])).join(','))];
    return `${lines.join('\r\n')}\r\n`;
}
/** A program that calculates with a table must not take a name for a formula. */
function cell(value) {
    if (typeof value !== 'string')
        return value === undefined ? '' : String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
//# sourceMappingURL=csv.js.map