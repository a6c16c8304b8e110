import { Type } from '@sinclair/typebox';
import { Moment, strict, Text } from './common.js';
export const SdkSession = Type.Object({
    sessionId: Text('What `resume` of a create takes.'),
    summary: Text('What it is about, in one line.'),
    lastModified: Moment('When it was written to last'),
    createdAt: Type.Optional(Moment('When it began')),
    firstPrompt: Type.Optional(Type.String()),
    gitBranch: Type.Optional(Text('On which it worked.')),
    cwd: Type.Optional(Text('The directory that it worked in.')),
    profile: Type.Optional(Text('The profile in whose config directory it lies.')),
    agent: Type.Optional(Text('Which command-line agent it is of.')),
}, { description: "An agent's own session, kept by the agent on disk." });
export const ListSdkSessionsQuery = Type.Object({
    dir: Type.Optional(Text('Only sessions that worked in this directory. Required where the operator limits directories.')),
    profile: Type.Optional(Text('Only sessions of this profile. Default: all that the caller may see.')),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'At most so many. Default 50.' })),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'So many are left out first. Default 0.' })),
}, strict);
export const SdkSessionParams = Type.Object({ sessionId: Type.String({ minLength: 1 }) });
/** Whose session it is, and where it worked: as they were listed. */
export const DeleteSdkSessionQuery = Type.Object({ dir: Type.Optional(Type.String()), profile: Type.Optional(Type.String()) }, strict);
//# sourceMappingURL=sdk-sessions.js.map