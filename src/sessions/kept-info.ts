import type { SessionInfo } from '../../schemas/sessions.js'
import { within } from '../lib/within.js'
import type { Session } from './session.js'
import { infoOf, type SessionEntry } from './session-entry.js'

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
