import { Type } from '@sinclair/typebox';
/** A string that is one of the given values; typed as their union. */
export const StringEnum = (...values) => Type.Union(values.map((value) => Type.Literal(value)));
/** The schema with words for who reads the documents; a shape of its own name keeps that. */
export const described = (schema, description) => ({ ...schema, description });
export const Text = (description) => Type.String({ description });
export const Flag = (description) => Type.Boolean({ description });
export const Count = (description) => Type.Number({ description });
/** A point in time. */
export const Moment = (description) => Type.Number({ description: `${description}, epoch milliseconds.` });
/** How long something took. */
export const Duration = (description) => Type.Number({ description: `${description}, milliseconds.` });
/** An object whose unknown members are refused; every request body is one. */
export const strict = { additionalProperties: false };
/** A web origin as a browser sends it: scheme and host, in lower case, the port only when it is not the scheme's own. */
export const Origin = Type.String({ pattern: '^https?://[a-z0-9.\\[\\]:-]+$' });
/** The largest number of milliseconds a caller may name: about 285 years, exact as an integer. */
export const MAX_MS = 9_007_199_254_740;
export const Milliseconds = (minimum = 0, description) => Type.Integer({ minimum, maximum: MAX_MS, ...(description !== undefined && { description }) });
/** Any member name. The pattern of a plain `Type.String()` ends at a line break and leaves members with one unchecked. */
const AnyName = Type.String({ pattern: '^[\\s\\S]*$' });
/** An object whose member names are free and whose values all have one shape. */
export const Dictionary = (value) => Type.Record(AnyName, value);
/** Free-form JSON object; its depth is bounded where it enters. */
export const JsonObject = Dictionary(Type.Unknown());
//# sourceMappingURL=common.js.map