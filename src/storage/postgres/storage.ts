import { Type } from '@sinclair/typebox'
import { strict } from '../../../schemas/common.js'
import { argumentOf } from '../../lib/argument.js'
import type { ClusterStorage } from '../cluster.js'
import { forOneGateway } from '../held.js'
import { type DatabaseStorage, databaseStorage, type OpenDatabase } from '../sql/storage.js'
import type { StorageError } from '../storage.js'
import { PostgresDatabase } from './database.js'
import { PostgresCluster } from './directory.js'
import { placeOf } from './failures.js'
import type { LinkOptions } from './link.js'
import { listedSessions } from './listed.js'
import { Membership } from './membership.js'
import { Sweeper } from './sweeper.js'
import type { DirectOptions } from './ways.js'

export interface PostgresStorageOptions {
  /** `postgres://user:password@host:port/database`, with `?sslmode=…` where the connection is to be encrypted. */
  url: string
  /** Of this gateway alone; made when it is missing and the user may do that. Default `session_gateway`. */
  schema?: string
  /**
   * The same database without a pooler, for the one connection that lasts. Needed where `url` leads to a pooler that shares connections
   * between transactions. Default: `url`.
   */
  listenUrl?: string
  /** Whether statements are prepared by name, as poolers of that kind may not allow. Default true. */
  namedStatements?: boolean
  /** Epoch milliseconds; default `Date.now`. */
  now?: () => number
}

const optionsOf = argumentOf<PostgresStorageOptions>(
  'createPostgresStorage({ url })',
  Type.Object(
    {
      url: Type.String({ minLength: 1 }),
      schema: Type.Optional(Type.String()),
      listenUrl: Type.Optional(Type.String()),
      namedStatements: Type.Optional(Type.Boolean()),
      now: Type.Optional(Type.Function([], Type.Any())),
    },
    strict,
  ),
)

/** Everything that a gateway keeps, in one schema of a PostgreSQL database. */
export type PostgresStorage = DatabaseStorage & { readonly cluster: ClusterStorage }

const SCHEMA = 'session_gateway'

/**
 * Keeps everything in one schema of a PostgreSQL database, over two connections. From `open` until `close` the schema is this process's:
 * a second one is refused and told who has it, and one that was taken for dead writes nothing any more (`STORAGE_FENCED`). A schema of
 * something else or of a newer version is refused and left as it is.
 *
 * Every method of the parts rejects with a `StorageError` when nothing of what it was to do was done: while the database is away, at
 * once; the same call may succeed later. A write that was under way when the connection broke waits until the database says whether it was
 * done.
 * @throws SG_ERR_OPTION for options that are none
 */
export function createPostgresStorage(given: PostgresStorageOptions): PostgresStorage {
  const options = optionsOf(given)
  const place = placeOf(options.url)
  let tell: (error: StorageError) => void = () => {}
  const onUnreachable = (error: StorageError) => tell(error)
  const cluster = new PostgresCluster(place, onUnreachable)
  const storage = databaseStorage(
    place,
    async () =>
      swept(
        await (cluster.isAnnounced
          ? cluster.open(linkOptions(options), directOptions(options))
          : openDatabase(options, onUnreachable)),
        cluster,
      ),
    options.now,
    true,
  )
  const journal = { ...storage.journal, listed: listedSessions(cluster.call) }
  return forOneGateway({
    ...{ ...storage, cluster, journal },
    onAway(listener) {
      tell = listener
    },
  })
}

const linkOptions = ({ url, schema = SCHEMA, namedStatements = true }: PostgresStorageOptions): LinkOptions => ({
  ...{ url, place: placeOf(url), schema, namedStatements },
})

/** The connection that nothing may come between. */
export const directOptions = (options: PostgresStorageOptions): DirectOptions => ({
  ...linkOptions({ ...options, url: options.listenUrl ?? options.url }),
  namedStatements: false,
  other: linkOptions(options),
})

async function openDatabase(
  options: PostgresStorageOptions,
  onUnreachable: (error: StorageError) => void,
): Promise<OpenDatabase> {
  const membership = await Membership.join(directOptions(options))
  try {
    const self = { n: membership.n, isOneOfMany: false }
    const database = await PostgresDatabase.open(linkOptions(options), self, {
      onUnreachable,
      onMoved: () => membership.follow(),
    })
    return {
      call: database.call,
      atTurnsEnd: database.atTurnsEnd,
      async close() {
        await database.close()
        await membership.leave()
      },
    }
  } catch (error) {
    await membership.leave()
    throw error
  }
}

/** A database from which the events of removed sessions go, whoever has removed them. */
function swept(database: OpenDatabase, cluster: PostgresCluster): OpenDatabase {
  const sweeper = new Sweeper(database.call)
  sweeper.start()
  // one that is gone may have removed some right before
  const unfollow = cluster.on('nodes', sweeper.start)
  return {
    ...database,
    call(name, ...args) {
      const answer = database.call(name, ...args)
      if (name === 'journal.remove') answer.then(sweeper.start, () => {})
      return answer
    },
    close() {
      unfollow()
      sweeper.stop()
      return database.close()
    },
  }
}
