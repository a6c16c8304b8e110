import {
  type ClientContext,
  client,
  MessageTooLargeError,
  methods,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import { startError } from '../../../errors.js'
import { onceAborted } from '../../../lib/aborted.js'
import { within } from '../../../lib/within.js'
import { type AgentProcess, LAST_WORDS_MS } from '../process.js'
import { linesOf, OTHER_UPDATE } from './lines.js'
import type { Unreadable } from './readable.js'

/** What an agent asks and tells. */
export interface AcpListener {
  /** @param sessionId the agent's own, or that of a helper */
  onUpdate(update: SessionUpdate, sessionId: string): void
  /** @param takenBack aborts when the agent does not ask any more; not by its end, which is told as such */
  onPermission(request: RequestPermissionRequest, takenBack: AbortSignal): Promise<RequestPermissionResponse>
  /** It said something that is passed over. */
  onUnreadable?(unreadable: Unreadable): void
}

export interface AcpConnection {
  readonly agent: ClientContext
  /** Resolves when the agent speaks no more; the signal then is aborted already. */
  readonly closed: Promise<void>
  readonly signal: AbortSignal
  /** What it did for which it is heard no more, in a sentence; undefined when it ended by itself. */
  readonly breach: string | undefined
}

/**
 * Speaks the Agent Client Protocol with a process. No file system and no terminal is offered: agents then work on the real ones
 * themselves, in their working directory.
 */
export function connectAcp(agentProcess: AgentProcess, listener: AcpListener): AcpConnection {
  const connection = client({ name: 'session-gateway' })
    .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
      const takenBack = new AbortController()
      onceAborted(signal, () => {
        if (!connection.signal.aborted) takenBack.abort()
      })
      return listener.onPermission(params, takenBack.signal)
    })
    .onNotification(methods.client.session.update, ({ params }) => listener.onUpdate(params.update, params.sessionId))
    .onNotification(
      OTHER_UPDATE,
      (params) => params as SessionNotification,
      ({ params }) => listener.onUpdate(params.update, params.sessionId),
    )
    // Agents have notifications of their own, which must not be errors.
    .onNotification('*', () => {})
    .connect(linesOf(agentProcess, (unreadable) => listener.onUnreadable?.(unreadable)))
  const { agent, signal } = connection
  return {
    ...{ agent, signal, closed: connection.closed.catch(() => {}) },
    get breach() {
      const { reason } = signal
      if (!(reason instanceof MessageTooLargeError)) return undefined
      return `The agent wrote a line of more than ${reason.maxMessageBytes / 1024 ** 2} MiB, which is not read.`
    },
  }
}

/** An agent whose connection broke while it started has that long to be gone: it is ended then. */
const ENDING_MS = LAST_WORDS_MS + 1_000

/** How an agent ended, and what it said, tells more than how its connection broke; an agent that answered has not ended. */
export async function instead(ended: Promise<string>, error: unknown): Promise<never> {
  if (isAnswer(error) || isAnswer((error as Error).cause)) throw error
  const detail = await within(ENDING_MS, ended)
  throw detail === undefined ? error : startError(detail)
}

/** Errors of the protocol have numbers, those of a pipe have names. */
const isAnswer = (error: unknown): boolean => typeof (error as { code?: unknown } | undefined)?.code === 'number'

/** The code by which an agent says that it has no credentials. */
const AUTH_REQUIRED = -32000

/** JSON-RPC's own, for a method that is not there. */
const UNKNOWN_METHOD = -32601

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code
export const isAuthRequired = (error: unknown): boolean => codeOf(error) === AUTH_REQUIRED
export const isUnknownMethod = (error: unknown): boolean => codeOf(error) === UNKNOWN_METHOD

/** What went wrong, in a sentence; agents put the reason into the data as often as into the message. */
export function reasonOf(error: unknown): string {
  const { message, data } = error as { message?: unknown; data?: unknown }
  const details =
    typeof data === 'string'
      ? data
      : ((data as { details?: unknown; message?: unknown } | undefined)?.details ??
        (data as { message?: unknown } | undefined)?.message)
  const said = [message, details].filter((part): part is string => typeof part === 'string' && part !== '').join(': ')
  if (said !== '') return said
  return isAnswer(error) ? `the agent gave no reason for its error ${codeOf(error)}.` : String(error)
}
