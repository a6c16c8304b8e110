import selectSerializer from '@fastify/fast-json-stringify-compiler';
import { KindGuard } from '@sinclair/typebox';
import { compileSchema, validationError } from '../src/lib/validation.js';
const compile = selectSerializer()({}, {});
/** By schema as JSON: routes share them, and so do all gateways of a process. */
const serializers = new Map();
/**
 * Fastify's own, whatever the host has set for its routes: answers carry what their schema declares. One is compiled with the first
 * answer that needs it, since compiling all of them is most of what a start costs.
 */
export const serializerCompiler = (route) => {
    let serialize;
    return (answer) => {
        serialize ??= serializerOf(route);
        return serialize(answer);
    };
};
function serializerOf(route) {
    const text = JSON.stringify(route.schema);
    const known = serializers.get(text) ?? compile(route);
    serializers.set(text, known);
    return known;
}
/**
 * Checks the parts of a request against their TypeBox schemas. Nothing is filled in or removed and bodies are not coerced; in a query,
 * where everything is text, a decimal number becomes one where the schema has an integer.
 */
export const validatorCompiler = ({ schema, httpPart }) => {
    const checker = compileSchema(schema);
    const integers = httpPart === 'querystring' ? integerNames(schema) : [];
    return (value) => {
        const read = integers.length > 0 ? withIntegers(value, integers) : value;
        return checker.check(read) ? { value: read } : { error: validationError(checker.errors(read)) };
    };
};
const integerNames = (schema) => Object.entries(schema.properties)
    .filter(([, property]) => KindGuard.IsInteger(property))
    .map(([name]) => name);
function withIntegers(query, names) {
    const read = { ...query };
    for (const name of names) {
        const text = read[name];
        if (typeof text === 'string' && /^\d{1,16}$/.test(text))
            read[name] = Number(text);
    }
    return read;
}
//# sourceMappingURL=validation.js.map