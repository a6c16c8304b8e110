import type { SessionClosedReason } from '../../../schemas/events.js'
import type {
  AnsweredBy,
  PermissionMode,
  PermissionRequest,
  ResolvePermissionRequest,
} from '../../../schemas/permissions.js'
import type { ExecutionResult } from '../../engines/runner.js'
import { newId } from '../../lib/new-id.js'

/** What was chosen for a session since its request; a model of `null` is the default one. */
export interface Choice {
  model?: string | null
  permissionMode?: PermissionMode
}

/** Something that a session is asked to do; what came by a command has its id. */
export type Asked =
  | { type: 'message'; text: string; commandId?: string; first?: true; by?: string }
  | {
      type: 'answer'
      requestId: string
      answer: ResolvePermissionRequest
      by?: AnsweredBy
      commandId?: string
      /** What is answered, for a journal that does not have it: it was asked after the session was last written. */
      request?: PermissionRequest
    }
  | { type: 'result'; executionId: string; result: ExecutionResult }
  | { type: 'interrupt' }
  | { type: 'choice'; choice: Choice; commandId?: string }
  | { type: 'title'; title: string | null }
  | { type: 'close'; commandId?: string }
  | { type: 'removal'; reason: SessionClosedReason }

/**
 * What a session was asked to do and has not done yet. It is kept before it is done, once per key: what cannot be kept is refused and
 * never done; what was kept is done, whichever process has the session by then, and taken in by the write that tells of it.
 */
export type News = Asked & { key: string }

/** A result, an answer and the removal can come twice; everything else is as often as it was asked for. */
export function newsOf(asked: Asked): News {
  switch (asked.type) {
    case 'result':
      return { ...asked, key: `result ${asked.executionId}` }
    case 'answer':
      return { ...asked, key: `answer ${asked.requestId}` }
    case 'removal':
      return { ...asked, key: 'removal' }
    default:
      return { ...asked, key: `${asked.type} ${newId()}` }
  }
}

const REMEMBERED_COMMANDS = 100

/** The ids of the last accepted commands, with that of one more. */
export const withCommand = (ids: readonly string[] = [], id: string): string[] =>
  ids.includes(id) ? [...ids] : [...ids, id].slice(-REMEMBERED_COMMANDS)

/** That a session is to go, which whoever removed it was told; undefined: it stays. */
export const removalIn = (news: readonly News[] = []) => news.find((one) => one.type === 'removal')

/** Whether news is for the engine that goes on with a turn, and waits for one. */
export const isForEngine = ({ type }: Asked): boolean => type === 'result' || type === 'answer' || type === 'interrupt'
