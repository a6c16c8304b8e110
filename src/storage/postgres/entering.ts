import { hostname } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { VERSION } from '../../lib/package-root.js'
import type { NodeAnnouncement } from '../cluster.js'
import { StorageError } from '../storage.js'
import { type Holder, isGone, nameOf, STARTED_AT } from './holders.js'
import type { Link, LinkOptions } from './link.js'
import { LOOK_AGAIN_MS, type Neighbour, neighboursAsked } from './membership.js'
import { statement } from './plan.js'
import { DELETE_SINGLE, INSERT, JOIN_IN_TURN, NAMESAKES } from './tables/members.js'
import { integerArray, textArray } from './values.js'

interface Namesake extends Holder {
  n: number
  url: string
  /** The end of its lease: another one once it has been renewed. */
  until: string
}

export interface Entered {
  n: number
  /** Before its lease began, by the clock of `performance`. */
  since: number
  neighbours: Neighbour[]
}

/**
 * Adds the row of a node, with its lease. Another node of its name has to be gone: one whose process is not there any more is; one that
 * nothing is known of has the rest of its lease, in which it renews it if it is alive.
 * @throws StorageError `STORAGE_HELD` when it does
 */
export async function enter(
  link: Link,
  options: LinkOptions,
  { name, url, protocol, version, slots, config, profiles }: NodeAnnouncement,
  leaseMs: number,
): Promise<Entered> {
  const values = [
    ...[hostname(), process.pid, STARTED_AT, version || VERSION],
    ...[name, url, protocol, slots, config, leaseMs],
  ]
  const seen = new Map<number, string>()
  for (;;) {
    const since = performance.now()
    const namesakes = await living(link, name)
    const there = namesakes.filter((one) => !isGone(one))
    const alive = there.find(({ n, until }) => seen.has(n) && seen.get(n) !== until)
    if (alive) throw taken(options.place, alive)
    for (const { n, until } of there) seen.set(n, until)
    if (there.length === 0) {
      const gone = integerArray(namesakes.map(({ n }) => n))
      const [, , mine, found] = await link.run([
        ...[statement(JOIN_IN_TURN, options.schema), statement(DELETE_SINGLE)],
        ...[statement(INSERT, ...values, gone, textArray(profiles)), neighboursAsked(leaseMs)],
      ])
      if (mine!.length > 0) return { n: mine![0]!.n as number, since, neighbours: found as unknown as Neighbour[] }
    }
    await sleep(LOOK_AGAIN_MS)
  }
}

async function living(link: Link, name: string): Promise<Namesake[]> {
  const [rows] = await link.run([statement(NAMESAKES, name)])
  return rows as unknown as Namesake[]
}

const taken = (place: string, { url, ...holder }: Namesake): StorageError =>
  new StorageError(
    'STORAGE_HELD',
    `${place} has a living node of this name already: ${nameOf(holder)}, at ${url}. Give this one a name of its own (cluster.node), or stop the other first.`,
  )
