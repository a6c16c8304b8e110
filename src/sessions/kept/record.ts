import type { SessionInfo } from '../../../schemas/sessions.js'
import type { SessionFiles, SessionRunnerConfig } from '../../engines/runner.js'
import type { ResolvedProfile } from '../../profiles/catalog.js'
import type { DeferredExecutions } from '../asks/deferred-executions.js'
import type { PermissionDesk } from '../asks/permission-desk.js'
import type { Life } from '../life/life.js'
import type { EventLog } from '../log/event-log.js'
import { keptConfig, type SessionFacts } from '../session-facts.js'
import type { JournaledOrigin, JournaledState, JournaledWhole, MidTurn, QueuedMessage } from './journal.js'
import { snapshotFiles } from './snapshot-files.js'

/** What a session is, as far as a journal keeps it: the process that has it next finds all of this as it was. */
export interface Recorded {
  readonly profile: ResolvedProfile
  readonly request: SessionRunnerConfig
  readonly createdBy: string | undefined
  readonly home: string | undefined
  readonly log: EventLog
  readonly facts: SessionFacts
  readonly permissions: PermissionDesk
  readonly executions: DeferredExecutions
  readonly writer: { readonly isStale: boolean } | undefined
  order: number | undefined
  askedBy: string | undefined
  chosen: JournaledState['chosen']
  messageIds: string[] | undefined
  midTurn: MidTurn | undefined
  files: SessionFiles | undefined
  delivered: JournaledState['delivered']
  inTurn: boolean
  queued: readonly QueuedMessage[] | undefined
  info(lastSeq: number): SessionInfo
}

export function originOf({ request, profile, log, createdBy }: Recorded): JournaledOrigin {
  return {
    profile: profile.info.name,
    generation: profile.generation,
    config: keptConfig(request, request.title),
    ...(createdBy !== undefined && { createdBy }),
    epoch: log.epoch,
  }
}

/** Where a session stands, to be written down; what is empty is left out. */
export function stateOf(session: Recorded): JournaledState {
  const { facts, executions, permissions, inTurn, queued, chosen, messageIds, midTurn, askedBy, delivered } = session
  const { settled } = executions
  const { places } = permissions
  const state = {
    info: { ...session.info(session.log.headSeq), attachedClients: 0 },
    ...(session.order !== undefined && { order: session.order }),
    ...(session.home !== undefined && { home: session.home }),
    ...facts.kept,
    ...(inTurn && { inTurn }),
    ...(askedBy !== undefined && askedBy !== session.createdBy && { askedBy }),
    ...(queued && { queued }),
    ...(permissions.size > 0 && { permissions: permissions.list() }),
    ...(places && { asked: places }),
    ...(executions.size > 0 && { executions: executions.list() }),
    ...(settled.length > 0 && { settled }),
    ...(chosen && { chosen }),
    ...(delivered && { delivered }),
    ...(messageIds && { messageIds }),
    ...(session.writer?.isStale && { isStale: true }),
    ...(midTurn && { midTurn: copyOf(midTurn) }),
  } satisfies JournaledState
  // a fact that is not written down does not compile
  state as Required<typeof state> satisfies Record<keyof JournaledState, unknown>
  return state
}

/** What was told of it by now: that changes while a journal writes it down. */
const copyOf = ({ results, decisions, ...rest }: MidTurn): MidTurn => ({
  ...rest,
  results: results.map((one) => ({ ...one })),
  decisions: decisions.map((one) => ({ ...one })),
})

/** Gives a session back what was written down of it. @returns where in its life it goes on */
export function takeUp(session: Recorded, { state, snapshot }: JournaledWhole): Life {
  const { info, hostTitle: _title, firstPrompt, engineTitle, toldHistory, before, turnUsage, ...rest } = state
  const {
    inTurn = false,
    queued,
    permissions = [],
    asked,
    executions = [],
    settled = [],
    chosen,
    isStale,
    delivered,
    messageIds,
    midTurn,
    ...others
  } = rest
  // whoever builds the session knows these; a fact that nobody takes up does not compile
  const { order: _order, home: _home, askedBy: _askedBy, ...forgotten } = others
  forgotten satisfies Record<string, never>
  const ended = info.status === 'failed' || info.status === 'closed' ? info.status : undefined
  // what was asked for after the snapshot is asked for again, under another id; nobody waits where all has ended
  const isKnown = (id: string) => !ended && (!midTurn || midTurn.waits.includes(id))
  const at = midTurn?.since ?? info.lastActivityAt
  session.facts.restore(info, { firstPrompt, engineTitle, toldHistory, before, turnUsage }, midTurn?.used)
  session.permissions.restore(
    permissions.filter(({ id }) => isKnown(id)),
    asked,
    ended ? [] : permissions.filter(({ id }) => !isKnown(id)),
  )
  if (!ended) for (const one of executions) session.executions.restore(one, at, isKnown(one.executionId))
  session.executions.remember(settled)
  session.inTurn = inTurn
  session.queued = queued?.length ? queued : undefined
  session.chosen = chosen
  session.messageIds = messageIds && [...messageIds]
  session.files = snapshotFiles(snapshot, at)
  session.delivered = delivered
  session.midTurn = midTurn
  if (ended) return { is: 'ended', as: ended }
  if (midTurn) return { is: 'asleep', parkedSince: midTurn.since }
  return { is: 'asleep', snapshot: isStale ? undefined : snapshot }
}
