import type { PermissionRequest } from '../../../schemas/permissions.js'
import type { SessionInfo } from '../../../schemas/sessions.js'
import type { SessionRunnerConfig } from '../../engines/runner.js'
import type { DeferredExecutions } from '../asks/deferred-executions.js'
import type { AskedPlaces } from '../asks/waiting.js'
import type { QueuedMessage } from '../life/turns.js'
import type { EventLog } from '../log/event-log.js'
import type { SessionFacts } from '../session-facts.js'
import type { JournaledState, MidTurn } from './journal.js'

/** The parts of a session that say where it stands. */
interface Standing {
  readonly log: EventLog
  readonly order: number | undefined
  readonly facts: SessionFacts
  readonly executions: DeferredExecutions
  readonly pendingPermissions: readonly PermissionRequest[]
  readonly asked: AskedPlaces | undefined
  readonly chosen: JournaledState['chosen']
  readonly messageIds: readonly string[] | undefined
  readonly isStale: boolean
  readonly createdBy: string | undefined
  readonly askedBy: string | undefined
  readonly midTurn: MidTurn | undefined
  info(lastSeq: number): SessionInfo
}

/** Where a session stands, to be written down; what is empty is left out. */
export function journaledState(
  session: Standing,
  { inTurn, queued }: { inTurn: boolean; queued: readonly QueuedMessage[] | undefined },
): JournaledState {
  const { log, facts, executions, chosen, messageIds, pendingPermissions, midTurn, askedBy } = session
  const { settled } = executions
  return {
    info: { ...session.info(log.headSeq), attachedClients: 0 },
    ...(session.order !== undefined && { order: session.order }),
    ...(facts.hostTitle !== undefined && { hostTitle: facts.hostTitle }),
    ...(facts.firstPrompt !== undefined && { firstPrompt: facts.firstPrompt }),
    ...(facts.engineTitle !== undefined && { engineTitle: facts.engineTitle }),
    ...(inTurn && { inTurn }),
    ...(askedBy !== undefined && askedBy !== session.createdBy && { askedBy }),
    // a copy: it is written down later
    ...(queued && { queued: [...queued] }),
    ...(pendingPermissions.length > 0 && { permissions: pendingPermissions }),
    ...(session.asked && { asked: session.asked }),
    ...(executions.size > 0 && { executions: executions.list() }),
    ...(settled.length > 0 && { settled }),
    ...(chosen && { chosen }),
    ...(messageIds && { messageIds }),
    ...(facts.before && { before: facts.before }),
    ...(session.isStale && { isStale: true }),
    ...(midTurn && { midTurn }),
  }
}

/** What only the host sets is never written down; the title is the one that the session has by now. */
export function keptConfig(request: SessionRunnerConfig, hostTitle: string | undefined): SessionRunnerConfig {
  const { env: _env, defaultApprovalTimeoutMs: _timeout, agentOptions: _options, title: _title, ...kept } = request
  return hostTitle === undefined ? kept : { ...kept, title: hostTitle }
}

/** The request, with what was chosen since. */
export function withChoice({ request, chosen }: { request: SessionRunnerConfig; chosen: JournaledState['chosen'] }) {
  if (!chosen) return request
  const { model: asked, ...rest } = request
  const model = chosen.model === undefined ? asked : (chosen.model ?? undefined)
  const permissionMode = chosen.permissionMode ?? request.permissionMode
  return { ...rest, ...(model !== undefined && { model }), ...(permissionMode !== undefined && { permissionMode }) }
}
