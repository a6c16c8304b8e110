import { tried } from '../../lib/tried.js'
import { StorageError } from '../storage.js'
import { RAISED } from './schema.js'

/**
 * What a URL of PostgreSQL says; undefined: it is not one. A password with `/`, `?` or `#` in it ends the host before its `@`, and what is
 * left of it is then taken for a port and a database.
 */
function parsed(url: string): URL | undefined {
  const found = /^postgres(ql)?:\/\//i.test(url) && URL.canParse(url) ? new URL(url) : undefined
  return found && `${found.pathname}${found.search}${found.hash}`.match(/[@#]/) ? undefined : found
}

/** As libpq takes them, in the place of the host or as parameter. A comma may also be in a password, which ends with `@`. */
const SEVERAL_HOSTS = /^postgres(ql)?:\/\/([^/?#]*@)?[^/?#@]*,[^/?#@]*([/?#][^@]*)?$|[?&]host=[^&#]*(,|%2C)/i

/** @throws StorageError, which quotes nothing of it */
export function checkUrl(url: string): void {
  if (SEVERAL_HOSTS.test(url))
    throw new StorageError(
      'POSTGRES_URL',
      'the url names several hosts, of which the driver takes one: name the primary, or what leads to it after a failover as well (a DNS name, a proxy)',
    )
  // no host, and yet a user: only the driver reads that
  if (parsed(url.replace(/@(?=\/)/, '@localhost'))) return
  throw new StorageError(
    'POSTGRES_URL',
    'the url is not one of PostgreSQL: postgres://user:password@host:port/database, with every other character than letters and digits in ' +
      'user and password percent-encoded (%2F for /, %40 for @, %23 for #, %3F for ?)',
  )
}

/** Where a database is, without what lets one in. */
export function placeOf(url: string): string {
  const found = parsed(url)
  if (!found) return 'the database of storage.postgres'
  return `postgres://${found.username && `${found.username}@`}${decoded(found.host)}${found.pathname}`
}

/** The same for PostgreSQL's own tools: where the sockets are, and whether the connection is encrypted, included. */
export function urlWithoutPassword(url: string): string {
  const found = parsed(url)
  if (!found) return placeOf(url)
  found.password = ''
  found.searchParams.delete('password')
  return found.href
}

const decoded = (text: string): string => tried(() => decodeURIComponent(text)) ?? text

export const READ_ONLY = 'POSTGRES_READ_ONLY'

/** What codes of the socket and of PostgreSQL mean to whoever runs the gateway. */
const MEANINGS: readonly (readonly [RegExp, code: string, meaning: (place: string) => string])[] = [
  [
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOENT|EACCES|ECONNRESET|EPIPE|57P0[1-3]|08\w{3})$/,
    'POSTGRES_UNREACHABLE',
    (place) => `${place} cannot be reached. Is PostgreSQL running there, and do host and port of the url fit?`,
  ],
  [
    /^28\w{3}$/,
    'POSTGRES_DENIED',
    (place) =>
      `${place} does not let this user in. Look at user and password of the url, which a gateway reads when it starts, and at pg_hba.conf of the server.`,
  ],
  [
    /^3D000$/,
    'POSTGRES_NO_DATABASE',
    (place) => `${place}: there is no such database. Make it with CREATE DATABASE, or name another one in the url.`,
  ],
  [
    /^42501$/,
    'POSTGRES_RIGHTS',
    (place) =>
      `${place}: this user lacks rights. It must own the schema of the gateway with all that is in it, or be allowed to make it: GRANT CREATE ON DATABASE … TO …`,
  ],
  [
    /^(42P01|42703|42883|3F000)$/,
    'POSTGRES_TABLES_GONE',
    (place) =>
      `${place} lacks tables of this gateway: the database, its schema or a part of it was dropped or replaced. Stop the gateway, restore a backup and start it again; where there is no such schema a start begins with nothing`,
  ],
  [
    /^25006$/,
    READ_ONLY,
    (place) =>
      `${place} only reads: it is a standby, or set to by default_transaction_read_only. Name the primary in the url, or turn that off.`,
  ],
  [
    /^53300$/,
    'POSTGRES_BUSY',
    (place) =>
      `${place} has no connection left. The gateway needs two; raise max_connections, or the CONNECTION LIMIT of role and database, or close others.`,
  ],
  [
    /^(42P05|26000)$/,
    'POSTGRES_POOLER',
    (place) =>
      `${place} is a pooler that does not keep prepared statements: set storage.postgres.namedStatements to false, or have it keep them`,
  ],
  [
    /^42939$/,
    'POSTGRES_SCHEMA',
    (place) => `${place}: names that begin with pg_ are PostgreSQL's own. Give the schema another one.`,
  ],
  [
    /^53\w{3}$/,
    'POSTGRES_FULL',
    (place) => `${place} has no room or memory left: make room there; a gateway that runs goes on by itself`,
  ],
]

/** In the driver's words, which has no code for it. */
const LACKS_PASSWORD = /client password must be a string/i

/** Of the driver, of the certificates, of the TLS library, and of a server that lets nobody in without encryption. */
const IS_TLS = /SSL|TLS|certificate|self-signed|no encryption/i
/** Names of users, databases, hosts and sockets, which may say anything; and that whoever was refused had come encrypted. */
const NAMES = /"[^"]*"|(?<=(getaddrinfo|connect) \w+ ).*|, SSL (on|encryption)$/g
const TLS =
  'its TLS does not fit. Look at sslmode and the certificates in the url: sslmode=disable asks for none, no-verify for encryption alone, ' +
  'verify-full for a certificate that this host trusts, or that sslrootcert=FILE signed'

const UNKNOWN: (typeof MEANINGS)[number] = [/./, 'POSTGRES', (place) => `${place} has failed`]

/** @throws never; says what went wrong without the url's password */
export function failureOf(error: unknown, place: string): StorageError {
  if (error instanceof StorageError) return error
  const { code = '', message, errors, syscall } = error as NodeJS.ErrnoException & { errors?: Error[] }
  // of a host with several addresses
  if (errors?.[0]) return failureOf(errors[0], place)
  if (code === RAISED.refused || isOfCaller(code)) return new StorageError('STORAGE_REFUSED', message)
  if (code === RAISED.fenced) return fenced(place)
  if (LACKS_PASSWORD.test(message))
    return new StorageError('POSTGRES_DENIED', `${place} asks for a password. Put it into the url, or into PGPASSWORD.`)
  // only files of certificates are opened
  if (IS_TLS.test(`${code} ${message.replace(NAMES, '')}`) || syscall === 'open')
    return new StorageError('POSTGRES_TLS', `${place}: ${TLS} (${code && `${code}: `}${message})`)
  const found = MEANINGS.find(([codes]) => codes.test(code))
  // the driver says so without a code
  const isCut = !code && /terminated|timeout|closed|not queryable|connection/i.test(message)
  const [, ours, meaning] = found ?? (isCut ? MEANINGS[0]! : UNKNOWN)
  return new StorageError(ours, `${meaning(place)} (${code && `${code}: `}${message})`)
}

/** What was asked for is at fault, and not the database: values it has no room for, names that are taken. */
export const isOfCaller = (code = ''): boolean => /^(22|23|54)/.test(code)

export const fenced = (place: string): StorageError =>
  new StorageError(
    'STORAGE_FENCED',
    `Another process has taken over ${place}. This one writes nothing any more; end it, or start it again once the other has ended.`,
  )

/** Restored from a backup, or a standby that took over without the last writes. */
export const forgotten = (place: string): StorageError =>
  new StorageError(
    'STORAGE_FORGOTTEN',
    `${place} has less than it had confirmed. What this process knows is ahead of it: start the gateway again to go on from what is there.`,
  )
