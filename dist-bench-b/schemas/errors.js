import { Type } from '@sinclair/typebox';
import { Text } from './common.js';
export const Problem = Type.Object({
    type: Text('`about:blank`, or a stable URI.'),
    title: Text("The status' reason phrase."),
    status: Type.Integer({ description: 'The HTTP status.' }),
    detail: Text('One sentence for a person.'),
    instance: Text("The request's id, as the log of the gateway has it."),
    code: Text('Stable name of what went wrong, `SG_ERR_…`: what programs tell refusals by.'),
    error: Text('The same as `detail`.'),
    errors: Type.Optional(Type.Array(Type.Object({ path: Text('The field, as in `session.cwd`.'), message: Text('What is wrong with it.') }), { description: 'The fields that were not as they should be.' })),
}, { description: 'Body of every refusal (`application/problem+json`, RFC 9457). Programs match `code`.' });
//# sourceMappingURL=errors.js.map