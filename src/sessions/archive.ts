import type { ProfileInfo } from '../../schemas/profiles.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { GatewayError, toError } from '../errors.js'
import type { Executions } from '../executions/executions.js'
import type { Logger } from '../lib/logger.js'
import type { EventJournal, JournaledSession } from './journal.js'
import { fromJournal, initOf, type RestoredSession } from './restored-session.js'
import type { Session } from './session.js'
import type { SessionInit } from './session-world.js'

export interface ArchiveHost {
  /** The session, when it is in memory. */
  resident(id: string): Session | undefined
  /** Where the numbering of a session goes on that is not in memory. */
  lastSeqOf(id: string): number | undefined
  /** Enters a session that stays in the journal until it is needed. */
  enter(session: JournaledSession, info: SessionInfo): void
  /** Makes a Session and holds it in memory. */
  hold(init: SessionInit, restored: RestoredSession): Session
  profileInfo(name: string): ProfileInfo | undefined
  /** Gives a session an engine again for the messages that wait in it. */
  goOn(session: Session): void
}

export interface ArchiveParts {
  journal: EventJournal
  logger: Logger
  executions: Executions
  host: ArchiveHost
}

const RESTARTED = 'The gateway was restarted while this was in progress.'

/** The sessions that an earlier process left in the journal. */
export class Archive {
  readonly #parts: ArchiveParts

  constructor(parts: ArchiveParts) {
    this.#parts = parts
  }

  /** Every session in the journal, in the order in which they were created. @throws what the journal throws */
  list(): Promise<JournaledSession[]> {
    const { journal, logger } = this.#parts
    return journal.list((error) =>
      logger.error({ err: error }, 'a session in the journal cannot be read; it is left there'),
    )
  }

  /** Takes up a session that is not parked, and tells in its log what the end of the process cut off. Never rejects. */
  async adopt(journaled: JournaledSession): Promise<void> {
    const { executions, host, logger } = this.#parts
    const { id, state, lastSeq } = journaled
    host.enter(journaled, { ...state.info, lastSeq })
    // what nobody settled is settled below, as cut off
    const waitedFor = state.executions?.map(({ executionId }) => executionId) ?? []
    for (const executionId of [...(state.settled ?? []), ...waitedFor]) executions.remember(id, executionId)
    if (isTerminal(state.info) || !isCutOff(journaled)) return
    try {
      const session = await this.load(id)
      await session?.durable()
    } catch (error) {
      logger.error({ sessionId: id, err: toError(error) }, 'a session could not be taken up as it was left')
    }
  }

  /** Reads a session into memory. @throws SG_ERR_STORE_UNAVAILABLE */
  async load(id: string): Promise<Session | undefined> {
    const { journal, host } = this.#parts
    const whole = await journal.get(id).catch((error) => {
      throw new GatewayError('SG_ERR_STORE_UNAVAILABLE', { cause: error, retryAfterS: 5 })
    })
    const lastSeq = host.lastSeqOf(id)
    const resident = host.resident(id)
    // somebody else was faster, or has removed it
    if (resident || !whole || lastSeq === undefined) return resident
    const { hostTitle, info } = whole.state
    const { title: _asked, ...asked } = whole.config
    const config = hostTitle === undefined ? asked : { ...asked, title: hostTitle }
    const init = initOf({ ...whole, config, info }, host.profileInfo(whole.profile))
    const session = host.hold(init, fromJournal(whole, lastSeq))
    if (!isTerminal(info) && isCutOff(whole)) {
      session.takeUp(whole.state.ahead ?? [])
      session.cutOff(RESTARTED)
      if (session.busy) host.goOn(session)
    }
    return session
  }
}

export const isTerminal = ({ status }: SessionInfo): boolean => status === 'failed' || status === 'closed'

/** Whether the process ended in the middle of something. */
const isCutOff = ({ state }: JournaledSession): boolean =>
  state.info.status !== 'idle' ||
  [state.inTurn, state.queued, state.permissions, state.executions, state.ahead].some(
    (unfinished) => unfinished !== undefined,
  )
