import { isAbsolute } from 'node:path';
import { ListDirectoriesQuery, ListDirectoriesResponse } from '../schemas/directories.js';
import { invalidField } from '../src/errors.js';
import { completeDirectory } from '../src/lib/directory-completion.js';
import { patiently } from '../src/lib/patience.js';
import { visibleProfiles } from '../src/principal.js';
/** Where a session may start, as it is typed. */
export const directoryRoutes = async (scope, { gateway }) => {
    const { options, clock } = gateway;
    scope.get('/directories', { schema: { querystring: ListDirectoriesQuery, response: { 200: ListDirectoriesResponse } } }, async ({ query: { prefix = '', hidden }, principal }) => {
        if (prefix !== '' && !isAbsolute(prefix))
            throw invalidField('prefix', 'must be an absolute path.');
        // who may start nothing has no use for it
        if (visibleProfiles(principal)?.length === 0)
            return { directories: [], truncated: false };
        return patiently(clock, () => completeDirectory(prefix, options.cwdRoots, { hidden: hidden === 'true' }));
    });
};
//# sourceMappingURL=directories.js.map