import type { SessionClosedReason } from '../../../schemas/events.js'
import type { ProfileInfo } from '../../../schemas/profiles.js'
import type { SessionInfo } from '../../../schemas/sessions.js'
import { toError } from '../../errors.js'
import type { Executions } from '../../executions/executions.js'
import type { Logger } from '../../lib/logger.js'
import type { Patience } from '../../lib/patience.js'
import type { Sleep } from '../life/sleep.js'
import type { Session } from '../session.js'
import type { SessionEntry, SessionTable } from '../session-table.js'
import type { LeftSession, SessionInit } from '../session-world.js'
import type { Sharing } from '../sharing.js'
import type { Telling } from '../telling.js'
import { asleepOf, isCutOff, isMidTurn } from './asleep.js'
import { isTerminal, type JournaledSession, type JournaledWhole, orderOf } from './journal.js'
import type { Keeping } from './keeping.js'
import { isForEngine } from './news.js'

export interface ArchiveParts {
  keeping: Keeping
  logger: Logger
  executions: Executions
  sleep: Sleep
  table: SessionTable
  telling: Telling
  /** Absent: one process has all sessions. */
  sharing?: Sharing | undefined
  profileInfo(name: string): ProfileInfo | undefined
  /** Builds a session as it was left. */
  build(init: SessionInit, left: LeftSession): Session
  /** Closes a session and removes it. @throws SG_ERR_STORE_UNAVAILABLE */
  remove(id: string, reason: SessionClosedReason): Promise<unknown>
  /** A session ended before this process began. */
  onTerminal(id: string, endedAt: number): void
}

const RESTARTED = 'The gateway was restarted while this was in progress.'

/** The sessions that are in the journal and not in memory. */
export class Archive {
  readonly #parts: ArchiveParts

  constructor(parts: ArchiveParts) {
    this.#parts = parts
  }

  /** Takes up what an earlier process left, in the order in which it was created. @throws what the journal throws */
  async adoptAll(): Promise<void> {
    const left = await this.#parts.keeping.list()
    await Promise.all(left.sort((a, b) => orderOf(a) - orderOf(b)).map((session) => this.#adopt(session)))
  }

  /** Takes up one that is this process's by now; never rejects. */
  async takeUp(left: JournaledWhole): Promise<void> {
    if (!this.#parts.table.get(left.id)) await this.#adopt(left)
  }

  /** Lists one that has ended and that somebody asks for. */
  enterEnded(left: JournaledSession): void {
    const { table, onTerminal } = this.#parts
    const { id, profile, reservedSeq, lastSeq, state } = left
    table.onLook(table.adopt(id, orderOf(left), profile, { ...state.info, lastSeq }, reservedSeq))
    onTerminal(id, state.info.lastActivityAt)
  }

  /** Never rejects. */
  async #adopt(left: JournaledSession): Promise<void> {
    const { executions, logger, sleep, keeping, remove } = this.#parts
    const { id, state, lastSeq, news = [] } = left
    const removal = news.find((one) => one.type === 'removal')
    if (removal) {
      this.#enter(left, { ...(isMidTurn(left) ? parkedInfo(left) : state.info), lastSeq })
      await remove(id, removal.reason).catch((error) => keeping.report(error, { sessionId: id, phase: 'adopt' }))
      return
    }
    if (isMidTurn(left)) {
      this.#enter(left, { ...parkedInfo(left), lastSeq })
      try {
        sleep.adopt(left)
      } catch (error) {
        keeping.report(error, { sessionId: id, phase: 'adopt' })
      }
      return
    }
    this.#enter(left, { ...state.info, lastSeq })
    // what nobody settled is settled below, as cut off
    const waitedFor = state.executions?.map(({ executionId }) => executionId) ?? []
    for (const executionId of [...(state.settled ?? []), ...waitedFor]) executions.remember(id, executionId)
    if (isTerminal(state.info) || !isCutOff(left)) return
    try {
      const session = await this.load(id)
      await session?.durable()
    } catch (error) {
      logger.error({ sessionId: id, err: toError(error) }, 'a session could not be taken up as it was left')
    }
  }

  /** Lists a session that stays in the journal until it is needed. */
  #enter(left: JournaledSession, info: SessionInfo): void {
    const { table, telling, onTerminal } = this.#parts
    const { id, profile, reservedSeq } = left
    telling.onAdopted(left)
    const order = left.sleeps ? orderOf(left) : table.orderAgain(orderOf(left))
    const entry = table.adopt(id, order, profile, info, reservedSeq)
    entry.away = this.#awayOf(left)
    entry.stays = entry.away === undefined && !left.sleeps
    entry.isDue = left.news !== undefined
    if (!entry.stays) table.unloadLater(id)
    else if (isTerminal(info)) onTerminal(id, info.lastActivityAt)
    else this.#letRest(left, entry)
  }

  /** Has one found by the journal from now on that nobody has to work with: its process died while an engine served it. */
  #letRest({ id, state, news }: JournaledSession, entry: SessionEntry): void {
    const { keeping, table } = this.#parts
    const known = { ...state, order: entry.order }
    const asleep = news || !keeping.atRest ? undefined : asleepOf(known)
    if (!asleep) return
    keeping.journal.write({ id, state: known, asleep }).then(
      () => {
        entry.stays = false
        table.unloadLater(id)
      },
      (error) => keeping.report(error, { sessionId: id, phase: 'adopt' }),
    )
  }

  #awayOf({ state: { home } }: JournaledSession): string | undefined {
    const { sharing } = this.#parts
    return sharing?.homes && home !== sharing.node ? home : undefined
  }

  /** Reads a session into memory. @param known what the journal has of it @throws SG_ERR_STORE_UNAVAILABLE */
  readonly load = async (id: string, known?: JournaledWhole, patience?: Patience): Promise<Session | undefined> => {
    const { keeping, table, telling, sleep, profileInfo, build } = this.#parts
    if (table.resident(id)) return table.resident(id)
    const whole = known ?? (await keeping.get(id, patience))
    const place = table.get(id)
    const resident = table.resident(id)
    // somebody else was faster, or has removed it
    if (resident || !whole || !place) return resident
    const { lastSeq = whole.reservedSeq } = place
    const { hostTitle, info } = whole.state
    const { title: _asked, ...asked } = whole.config
    const config = hostTitle === undefined ? asked : { ...asked, title: hostTitle }
    const shown = profileInfo(whole.profile) ?? { name: whole.profile, engine: info.engine }
    const profile = { info: shown, generation: whole.generation }
    if (!isMidTurn(whole)) delete whole.state.midTurn
    const session = build({ id, request: config, config, jobId: info.jobId, profile }, { whole, lastSeq })
    table.hold(session)
    telling.onRestored(session)
    const { news = [] } = whole
    if (isMidTurn(whole)) session.takeUp(news.filter((one) => !isForEngine(one)))
    else if (!isTerminal(info) && isCutOff(whole)) {
      session.takeUp(news)
      session.turnDesk.cutOff(RESTARTED)
      if (session.busy && place.away === undefined && !news.some(({ type }) => type === 'removal'))
        void sleep.goOn(session)
    }
    return session
  }
}

function parkedInfo({ state: { info, midTurn, executions = [], permissions = [] } }: JournaledSession): SessionInfo {
  const isKnown = (id: string) => midTurn!.waits.includes(id)
  const waits = executions.filter(({ executionId }) => isKnown(executionId))
  const asks = permissions.filter(({ id }) => isKnown(id))
  const parked = { since: midTurn!.since, executions: waits, ...(asks.length > 0 && { permissions: asks }) }
  return { ...info, status: 'parked', pendingPermissions: asks.length, parked }
}
