import type { Engine, SessionInfo, SessionStatus } from '../../schemas/sessions.js'
import { GatewayError } from '../errors.js'
import type { Timer } from '../lib/clock.js'
import { within } from '../lib/within.js'
import { type Principal, visible } from '../principal.js'
import { isTerminal } from './kept/journal.js'
import type { Session } from './session.js'

/**
 * A session's place in the lists. A stored one that nobody looks at is only its SessionInfo, as text. A class, and no literal: V8 may
 * put a literal that lives for a moment among what is old, where it keeps its session for long and is expensive to be rid of.
 */
export class SessionEntry {
  session: Session | undefined
  storedInfo: string | undefined
  /** Says something while the session is not in memory. */
  storedStatus: SessionStatus = 'starting'
  /** Where the numbering goes on of a session that is not in memory and whose log is in the journal. */
  lastSeq: number | undefined
  /** Whether the session counts as one that lives: not parked, not terminal. */
  lives = false
  /** When somebody last asked for the session itself, as `Clock.steady` counts. */
  lookedAt = Number.NEGATIVE_INFINITY
  /** Removes a terminal session when its retention is over. */
  retention: Timer | undefined
  /** Until the session is looked at again, to be let go of. */
  releasing: Timer | undefined
  /** The journal does not give it among those at rest. */
  stays = false
  /** Something came in for it while it slept, which its next engine is to do. */
  isDue = false
  /** Name of the node on which alone its engine can start, when that is another one. */
  away: string | undefined

  constructor(
    readonly id: string,
    /** Its place in the lists: rises with each session, whatever the clock does, and outlives the process. */
    readonly order: number,
    readonly profile: string,
    readonly engine: Engine,
  ) {}
}

/** @throws SG_ERR_SESSION_NOT_FOUND, the same for one that is not there and one that is not the caller's */
export function visibleEntry(entry: SessionEntry | undefined, principal: Principal): SessionEntry {
  if (!entry || !visible(principal, entry.profile)) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
  return entry
}

export const infoOf = ({ session, storedInfo }: SessionEntry): SessionInfo => session?.info() ?? JSON.parse(storedInfo!)

/** How long somebody who looks at a session waits for what they are shown to be kept. */
const LOOK_PATIENCE_MS = 1_000

/**
 * A session as it is at this moment, told once that is kept: who reads in it that a turn is over finds its end in the log, and after a crash.
 * A storage that takes nothing keeps nobody from looking; then it is told as it is, or undefined once it is gone: its creation was refused.
 */
export async function keptInfoOf(entry: SessionEntry, info = infoOf(entry)): Promise<SessionInfo | undefined> {
  const { session } = entry
  if (!session?.writer?.isUnderWay || (await isKept(session))) return info
  return entry.session || entry.storedInfo !== undefined ? infoOf(entry) : undefined
}

function isKept(session: Session): Promise<boolean> {
  const kept = session.durable().then(
    () => true,
    () => false,
  )
  return within(LOOK_PATIENCE_MS, kept, { clock: session.world.clock, onLate: () => false })
}

export const statusOf = ({ session, storedStatus }: SessionEntry): SessionStatus =>
  session?.visibleStatus ?? storedStatus

export const isOver = (status: SessionStatus): boolean => isTerminal({ status })
