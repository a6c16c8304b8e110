import { type SchemaOptions, type TSchema, Type } from '@sinclair/typebox'
import { MAX_MS, SHAPE, strict } from './common.js'
import { VARIABLE_NAME_PATTERN, VARIABLE_NAME_SHAPE } from './profiles.js'

/* What the configuration's schema is put together of. */

/** Marks a string as a secret: it may come from a file, and no output shows it. `url`: the origin may be shown. */
export const SECRET_MARK = 'x-secret'
/** Marks a string as a path, taken relative to the config file. `command`: only when it contains a slash. */
export const PATH_MARK = 'x-path'

/** The kernel would end the path there. */
export const NO_NUL = '^[^\\u0000]*$'

export const Secret = (options: SchemaOptions = {}) => Type.String({ minLength: 1, [SECRET_MARK]: true, ...options })
/** Given as secrets are, from a file of its own perhaps, though everybody may read it. */
export const Certificate = (options: SchemaOptions) => Secret({ ...options, [SECRET_MARK]: 'public' })
export const SecretUrl = (options: SchemaOptions) => Secret({ ...options, [SECRET_MARK]: 'url' })
export const SecretRecord = (options: SchemaOptions) => Type.Record(Type.String(), Secret(), options)
export const Path = (options: SchemaOptions = {}) =>
  Type.String({ minLength: 1, pattern: NO_NUL, [PATH_MARK]: true, ...options })
export const Count = (options: SchemaOptions) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, ...options })
export const Ms = (options: SchemaOptions, minimum = 0) => Type.Integer({ minimum, maximum: MAX_MS, ...options })
export const Flag = (options: SchemaOptions) => Type.Boolean(options)
export const Section = <T extends Record<string, TSchema>>(fields: T, options: SchemaOptions = {}) =>
  Type.Object(fields, { ...strict, ...options })
export const VariableName = (options: SchemaOptions) =>
  Type.String({ pattern: VARIABLE_NAME_PATTERN, [SHAPE]: VARIABLE_NAME_SHAPE, ...options })
