import { createHash } from 'node:crypto';
import { GatewayError, optionError } from '../errors.js';
import { signingKeys } from './signing.js';
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible ASCII, with spaces inside. */
const VALUE = /^[!-~](?:[ -~]*[!-~])?$/;
const MAX_HEADERS = 32;
const MAX_HEADER_BYTES = 8 * 1024;
/** They frame the request, name the receiver, or are ours to set. */
const RESERVED = /^(?:host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*|webhook-.*)$/i;
/**
 * What is wrong with a target that a caller or the operator named; empty when nothing is.
 * @param at path of the webhook's fields
 */
export function targetProblems({ url, headers = {} }, guard, at) {
    const problems = [];
    try {
        guard.checkUrl(url);
    }
    catch (error) {
        if (!(error instanceof GatewayError))
            throw error;
        problems.push({ path: `${at}.url`, message: error.message });
    }
    const entries = Object.entries(headers);
    const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    if (entries.length > MAX_HEADERS)
        problems.push({ path: `${at}.headers`, message: `There may be ${MAX_HEADERS} headers.` });
    if (bytes > MAX_HEADER_BYTES)
        problems.push({ path: `${at}.headers`, message: `Names and values may take ${MAX_HEADER_BYTES} bytes.` });
    for (const [name, value] of entries.slice(0, MAX_HEADERS)) {
        const path = `${at}.headers.${name}`;
        if (!TOKEN.test(name))
            problems.push({ path, message: 'The name is no header name.' });
        else if (RESERVED.test(name))
            problems.push({ path, message: 'This header is not yours to set.' });
        else if (value !== '' && !VALUE.test(value))
            problems.push({ path, message: 'The value must be visible ASCII.' });
    }
    return problems;
}
/**
 * The target that an option names.
 * @param option its path
 * @throws SG_ERR_OPTION when it cannot be one
 */
export function operatorTarget({ url, headers, secret }, given) {
    const { option, ...rest } = given;
    const [problem] = targetProblems({ url, headers }, given.guard, option);
    if (problem)
        throw optionError(problem.path, problem.message);
    // another URL is another target, and nothing of it is stored
    const digest = createHash('sha256').update(url).digest('base64url');
    return {
        key: `${option} ${digest}`,
        name: option,
        url,
        headers,
        signingKeys: signingKeys(secret, `${option}.secret`),
        ...rest,
    };
}
//# sourceMappingURL=target.js.map