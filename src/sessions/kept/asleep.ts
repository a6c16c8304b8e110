import type { SessionInfo } from '../../../schemas/sessions.js'
import { type Asleep, isTerminal, type JournaledSession, type JournaledState, type MidTurn } from './journal.js'

/** Whether an engine can go on where the last one was. */
export const isMidTurn = ({
  state: { info, midTurn, inTurn, permissions, executions },
  news,
}: Pick<JournaledSession, 'state' | 'news'>): boolean =>
  midTurn !== undefined &&
  !isTerminal(info) &&
  Boolean(inTurn || permissions || executions || news || hasUntold(midTurn))

/** Whether something came in that no engine has heard of: outside of a turn nothing else may be left of what was waited for. */
const hasUntold = ({ results, decisions }: MidTurn): boolean => [...results, ...decisions].some(({ told }) => !told)

/** Without what an interrupt has denied that came in while its session was parked: its next engine tells that. */
export const stillOpen = <T extends { id: string }>(requests: T[], midTurn: MidTurn | undefined): T[] =>
  midTurn?.interrupted ? requests.filter(({ id }) => !midTurn.waits.includes(id)) : requests

/** What a session in the middle of a turn still waits for: what came in is told by its next engine, and so is what an interrupt denies. */
export function waitedFor({ state: { midTurn, executions = [], permissions = [] }, news = [] }: JournaledSession) {
  const { waits = [], results = [], decisions = [], interrupted } = midTurn ?? {}
  const cameIn = [...news, ...results, ...decisions].flatMap((one) =>
    'executionId' in one ? one.executionId : 'requestId' in one ? one.requestId : [],
  )
  const isWaiting = (id: string) => waits.includes(id) && !cameIn.includes(id)
  const isDenied = interrupted || news.some(({ type }) => type === 'interrupt')
  return {
    executions: executions.filter(({ executionId }) => isWaiting(executionId)),
    permissions: isDenied ? [] : permissions.filter(({ id }) => isWaiting(id)),
  }
}

/** Whether the process ended in the middle of something. */
export const isCutOff = ({ state, news }: Pick<JournaledSession, 'state' | 'news'>): boolean =>
  state.info.status !== 'idle' ||
  [state.inTurn, state.queued, state.permissions, state.executions, news].some((unfinished) => unfinished !== undefined)

/**
 * How a session that no engine serves sleeps, when nobody has to work with it: it waits for results, or for nothing. The run of a job is
 * followed by the queue, and what a person is asked stands in the inbox.
 */
export function asleepOf(state: JournaledState): Asleep | undefined {
  const { info, order, midTurn } = state
  if (order === undefined || info.jobId !== undefined || isTerminal(info)) return undefined
  const { sdkSessionId } = info
  if (!midTurn) return isCutOff({ state }) ? undefined : { status: 'idle', sdkSessionId }
  const isOnlyWaiting =
    info.status === 'parked' &&
    ![state.queued, state.permissions, midTurn.due, midTurn.interrupted, midTurn.isHeld].some(Boolean) &&
    midTurn.results.length + midTurn.decisions.length === 0
  const waits = state.executions?.filter(({ executionId }) => midTurn.waits.includes(executionId)) ?? []
  if (!isOnlyWaiting || waits.length === 0) return undefined
  return { status: 'parked', wakesAt: firstDeadline(waits), sdkSessionId }
}

/** Epoch milliseconds of the first deadline of what a session waits for; undefined: it has none. */
export const wakesAt = ({ parked }: SessionInfo): number | undefined => firstDeadline(parked?.executions ?? [])

function firstDeadline(executions: readonly { expiresAt?: number }[]): number | undefined {
  const deadlines = executions.flatMap(({ expiresAt }) => expiresAt ?? [])
  return deadlines.length > 0 ? Math.min(...deadlines) : undefined
}
