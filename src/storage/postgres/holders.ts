import { hostname } from 'node:os'
import { processStartedAt } from '../../lib/process-list.js'
import type { Client } from './driver.js'
import { inSchema } from './schema.js'

/** Of this process, told once: reckoned anew after the clock was set, it would be that of another one. */
export const STARTED_AT = processStartedAt()
/** Others may have reckoned it a little later. */
const SAME_START_MS = 5_000

/** From that version on several can have it. */
const SHARED_SINCE = 3
const HOLDERS = `SELECT host, pid, started_at AS "startedAt", version, name, coalesce(until > clock_timestamp(), false) AS "isAlive"
  FROM @members LEFT JOIN @leases USING (n) WHERE term >= 0 ORDER BY n DESC`
/** Before several could have it. */
const HOLDERS_THEN = `SELECT host, pid, started_at AS "startedAt", version, NULL AS name, false AS "isAlive" FROM @members ORDER BY n DESC`

/** Who uses a schema. */
export interface Holder {
  /** Of one of several; absent: it is the only one. */
  name?: string
  pid: number
  host: string
  /** Epoch milliseconds. */
  startedAt: number
  version: string
}

export interface FoundHolder extends Omit<Holder, 'name'> {
  name: string | null
  /** Of one of several: its lease runs. */
  isAlive: boolean
}

/** Who has a schema, or had it and did not leave. @param version what it has come to */
export async function holdersIn(client: Client, schema: string, version = SHARED_SINCE): Promise<FoundHolder[]> {
  const { rows } = await client.query(inSchema(version < SHARED_SINCE ? HOLDERS_THEN : HOLDERS, schema))
  return (rows as FoundHolder[]).map((row) => ({ ...row, pid: Number(row.pid) }))
}

export const holderOf = ({ name, pid, host, startedAt, version }: FoundHolder): Holder => ({
  ...(name !== null && { name }),
  ...{ pid, host, startedAt, version },
})

/** A process of this host that is not there any more. Of another host nobody here can tell. */
export function isGone({ host, pid, startedAt }: Pick<Holder, 'host' | 'pid' | 'startedAt'>): boolean {
  if (host !== hostname()) return false
  // in a container every first process has the same number
  if (pid === process.pid) return Math.abs(startedAt - STARTED_AT) > SAME_START_MS
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** As the messages name it. */
export const nameOf = ({ name, pid, host, startedAt }: Holder): string =>
  `${name === undefined ? '' : `node ${name}, `}process ${pid} on host ${host}, started at ${new Date(startedAt).toISOString()}`
