import { readFileSync } from 'node:fs';
/** Below it many clients, agents and webhooks at once do not fit. */
const LOW = 4096;
/** This process's own; undefined where there is no `/proc`. */
export function descriptorLimit(file = '/proc/self/limits') {
    let text;
    try {
        text = readFileSync(file, 'latin1');
    }
    catch {
        return undefined;
    }
    const [, soft, hard] = /^Max open files +(\w+) +(\w+)/m.exec(text) ?? [];
    if (soft === undefined || hard === undefined)
        return undefined;
    const count = (word) => (word === 'unlimited' ? Number.POSITIVE_INFINITY : Number(word));
    return { soft: count(soft), hard: count(hard) };
}
/** What to do about a limit that is low; undefined when it is not. */
export const descriptorRemedy = ({ soft }) => soft < LOW
    ? 'raise it for many clients: LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 before the start'
    : undefined;
//# sourceMappingURL=descriptors.js.map