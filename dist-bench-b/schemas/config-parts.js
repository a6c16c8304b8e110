import { Type } from '@sinclair/typebox';
import { MAX_MS, strict } from './common.js';
/* What the configuration's schema is put together of. */
/** Marks a string as a secret: it may come from a file, and no output shows it. `url`: the origin may be shown. */
export const SECRET_MARK = 'x-secret';
/** Marks a string as a path, taken relative to the config file. `command`: only when it contains a slash. */
export const PATH_MARK = 'x-path';
export const Secret = (options = {}) => Type.String({ minLength: 1, [SECRET_MARK]: true, ...options });
export const SecretUrl = (options) => Secret({ ...options, [SECRET_MARK]: 'url' });
export const SecretRecord = (options) => Type.Record(Type.String(), Secret(), options);
export const Path = (options = {}) => Type.String({ minLength: 1, [PATH_MARK]: true, ...options });
export const Count = (options) => Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, ...options });
export const Ms = (options, minimum = 0) => Type.Integer({ minimum, maximum: MAX_MS, ...options });
export const Flag = (options) => Type.Boolean(options);
export const Section = (fields, options = {}) => Type.Object(fields, { ...strict, ...options });
//# sourceMappingURL=config-parts.js.map