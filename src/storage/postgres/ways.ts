import { StorageError } from '../storage.js'
import { failureOf } from './failures.js'
import { Link, type LinkOptions } from './link.js'
import { StatementError } from './pipeline.js'
import { statement } from './plan.js'

/** The connection that lasts, and the way that everything else goes. */
export interface DirectOptions extends LinkOptions {
  other: LinkOptions
}

/** So that the server finds out within half a minute that a host is gone, and its lock with it. */
export const KEEP_ALIVE = 'SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3'
/** In seconds: as a time it is said as each connection is set to. */
const WHERE = `SELECT pg_backend_pid() AS pid, extract(epoch FROM pg_postmaster_start_time())::numeric || ' ' || oid AS database
  FROM pg_database WHERE datname = current_database()`

interface Where {
  pid: number
  database: string
}

/**
 * Whether a connection is one that lasts, and the other way leads to the same database, where what is prepared stays. What a pooler lends
 * to others meanwhile is nobody's, and so is the lock by which they see who has a schema.
 * @throws StorageError that says what to do about it
 */
export async function checkWays(direct: Link, options: DirectOptions): Promise<void> {
  const { url, place, other } = options
  if (url === other.url && !direct.isRelayed) return
  // some poolers, as Amazon's RDS Proxy, lend a connection for good to whom sets something
  await direct.client.query(KEEP_ALIVE)
  const before = await whereOf(direct)
  const found: Where[] = []
  for (const way of waysBeside(direct, options)) found.push(await whereBeside(way))
  // asked once more: where many share, it is somewhere else by now
  const after = await whereOf(direct)
  // for a moment also while one of them still leads to what a failover has replaced
  if (found.some(({ database }) => database !== before.database))
    throw new StorageError(
      'POSTGRES_APART',
      url === other.url
        ? `${place} leads to several databases: name what leads to the primary alone`
        : `${place} (listenUrl) is another database than ${other.place} (url): name the same one in both`,
    )
  if (before.pid !== after.pid || found.some(({ pid }) => pid === before.pid))
    throw new StorageError(
      'POSTGRES_WAYS',
      `${place} is a pooler that shares connections between transactions: name the database itself in storage.postgres.listenUrl`,
    )
}

/** What a pooler has idle it lends to whoever comes next by the same way, though only one comes so far. */
const waysBeside = (direct: Link, options: DirectOptions): LinkOptions[] => {
  const { url, other } = options
  if (url === other.url) return [options]
  // twice: what the first has prepared the second finds, where nobody keeps apart what is whose
  return [...(direct.isRelayed ? [options] : []), other, ...(other.namedStatements ? [other] : [])]
}

async function whereBeside(options: LinkOptions): Promise<Where> {
  const link = await Link.open(options)
  try {
    const [rows] = await link.run([statement(WHERE)])
    return rows![0] as unknown as Where
  } catch (error) {
    throw failureOf(error instanceof StatementError ? error.error : error, options.place)
  } finally {
    await link.end()
  }
}

const whereOf = async ({ client }: Link): Promise<Where> => (await client.query(WHERE)).rows[0] as Where
