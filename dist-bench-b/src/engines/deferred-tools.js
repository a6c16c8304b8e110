import { ASK_USER_QUESTION } from '../../schemas/permissions.js';
import { optionError } from '../errors.js';
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** Names of tools that sessions of the bundled provider engine have anyway. */
const BUNDLED_NAMES = [
    ASK_USER_QUESTION,
    ...['fs_list', 'fs_read', 'fs_write', 'deliver_file', 'download', 'web_fetch', 'web_search'],
];
/**
 * Checks the names of deferred tools, which models are told and which must not hide another tool.
 * @param option where they were declared
 * @throws SG_ERR_OPTION
 */
export function assertDeferredToolNames(tools, option) {
    const taken = new Set(BUNDLED_NAMES);
    for (const { name } of tools) {
        if (!TOOL_NAME.test(name))
            throw optionError(option, `${name} must match ${TOOL_NAME.source}`);
        if (taken.has(name))
            throw optionError(option, `the name ${name} is taken`);
        taken.add(name);
    }
}
//# sourceMappingURL=deferred-tools.js.map