import { Type } from '@sinclair/typebox';
import { Flag, StringEnum, Text } from './common.js';
export const ListDirectoriesQuery = Type.Object({
    prefix: Type.Optional(Type.String({
        maxLength: 4096,
        description: 'The absolute path as far as it is typed. Default: empty, which gives where sessions may start.',
    })),
    hidden: Type.Optional(StringEnum('true', 'false')),
}, { additionalProperties: false });
export const ListDirectoriesResponse = Type.Object({
    directories: Type.Array(Text('Absolute path, symbolic links resolved.'), {
        description: 'That begin as typed and that sessions may start in, by name.',
    }),
    truncated: Flag('Whether there are more.'),
}, { description: 'What a directory that is being typed may become.' });
//# sourceMappingURL=directories.js.map