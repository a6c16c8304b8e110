import { Type } from '@sinclair/typebox'
import { Flag, Path, SecretUrl, Section } from './config-parts.js'

/** What a schema may be called. */
export const SCHEMA_NAME = '^[a-z_][a-z0-9_]*$'

const postgres = Section({
  url: SecretUrl({
    description: 'postgres://user:password@host:port/database, with ?sslmode=… to encrypt the connection.',
  }),
  schema: Type.Optional(
    Type.String({
      ...{ minLength: 1, maxLength: 63, pattern: SCHEMA_NAME, default: 'session_gateway' },
      description:
        'Of this gateway alone; made when it is missing. Small letters from a to z, digits and _, not beginning with pg_.',
    }),
  ),
  listenUrl: Type.Optional(
    SecretUrl({
      description:
        'The same database without a pooler, where `url` leads to one that shares connections between transactions.',
    }),
  ),
  namedStatements: Type.Optional(
    Flag({ default: true, description: 'Prepares statements by name, as such a pooler may not allow.' }),
  ),
})

export const storage = Type.Union([Type.Literal('memory'), Section({ sqlite: Path() }), Section({ postgres })], {
  description:
    'Where everything is kept that outlives the process: { "sqlite": path }, { "postgres": { … } }, or "memory". Default: session-gateway.db in $STATE_DIRECTORY, else beside this file.',
})
