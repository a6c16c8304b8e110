import type { SessionEventOf } from '../../../schemas/events.js'
import type { PermissionRequest, ResolvePermissionRequest } from '../../../schemas/permissions.js'
import type { SessionInfo } from '../../../schemas/sessions.js'
import { GatewayError, hasCode } from '../../errors.js'
import type { Clock } from '../../lib/clock.js'
import type { ChannelMessage } from '../channels/message.js'
import { answerOf } from './answer-form.js'
import type { AnswerKeys } from './answer-keys.js'
import { type AnswerGrant, readGrant, signGrant } from './token.js'

/** Characters of an input that a page shows. */
const MAX_SHOWN = 200_000

/** What may be done by a link. */
export interface AnswerLinkLimits {
  /** `deny`: a link can only deny. Absent: allow, too. */
  only?: 'deny'
  /** Requests of other tools get no link. Absent: those of every tool. */
  tools?: readonly string[]
}

/** The sessions, as far as links go. */
export interface AnswerableSessions {
  /** The request while it waits, live or asleep; undefined when it is settled. @throws SG_ERR_SESSION_NOT_FOUND */
  waiting(
    sessionId: string,
    requestId: string,
  ): Promise<{ request: PermissionRequest; session: SessionInfo } | undefined>
  /** @throws SG_ERR_PERMISSION_NOT_FOUND when it is settled */
  resolve(sessionId: string, requestId: string, answer: ResolvePermissionRequest): Promise<void>
  /** The profile of the session. @throws SG_ERR_SESSION_NOT_FOUND */
  profileOf(sessionId: string, requestId: string): Promise<string | undefined>
  /** How it was settled, when the log says so. @param seq of the event that asked */
  resolution(sessionId: string, requestId: string, seq: number): Promise<Resolved | undefined>
}

export type Resolved = SessionEventOf<'permission_resolved'>

export interface AnswerLinksOptions {
  keys: AnswerKeys
  clock: Clock
  /** Where the page is, as an absolute URL. */
  pageUrl: string
  ttlMs: number
  limits: AnswerLinkLimits
  sessions: AnswerableSessions
  /** Who a link was sent to, in words; undefined when its channel is gone, or is told of that profile no more. */
  recipient(channel: string, profile?: string): string | undefined
}

/** What the page shows of a request that waits. */
export interface OpenRequest {
  state: 'open'
  request: PermissionRequest
  session: SessionInfo
  /** Who the link was sent to. */
  recipient: string
  expiresAt: number
  /** As JSON for a person, and whether that is all of it. */
  input: string
  isWhole: boolean
  /** A link does not allow what its page does not show. */
  canAllow: boolean
}

export type AnswerView = OpenRequest | { state: 'settled'; resolved: Resolved | undefined }

/** Links by which whoever holds one answers one request, once. */
export class AnswerLinks {
  readonly #options: AnswerLinksOptions

  constructor(options: AnswerLinksOptions) {
    this.#options = options
  }

  /** The link for a request that a channel is told of; undefined when it is to have none. @throws what the store of keys throws */
  async urlFor(message: ChannelMessage, channel: string): Promise<string | undefined> {
    if (message.type !== 'permission_requested' || !message.request) return undefined
    const { keys, clock, pageUrl, ttlMs, limits } = this.#options
    const { request, sessionId, seq, ts } = message
    if (limits.tools && !limits.tools.includes(request.toolName)) return undefined
    const expiresAt = Math.min(request.expiresAt ?? Number.POSITIVE_INFINITY, ts + ttlMs)
    if (expiresAt <= clock.now()) return undefined
    const grant = { sessionId, requestId: request.id, channel, seq, expiresAt }
    return `${pageUrl}?token=${signGrant(grant, await keys.current())}`
  }

  /** The name of a link that was given out, whatever has become of it; undefined for a forged one, and while that cannot be said. */
  async nameOf(token: string): Promise<string | undefined> {
    const known = await this.#grantOf(token).catch(() => undefined)
    return known && JSON.stringify([known.sessionId, known.requestId, known.channel])
  }

  /** What is behind a link; changes nothing. @throws SG_ERR_ANSWER_LINK · SG_ERR_ANSWER_LINK_EXPIRED · SG_ERR_STORE_UNAVAILABLE */
  async look(token: string): Promise<AnswerView> {
    const grant = await this.#grantOf(token)
    const waiting = await this.#waiting(grant)
    if (!waiting) return this.#settled(grant)
    this.#assertLive(grant)
    const { request, session } = waiting
    const { limits } = this.#options
    const recipient = this.#options.recipient(grant.channel, session.profile)
    if (recipient === undefined || (limits.tools && !limits.tools.includes(request.toolName)))
      throw new GatewayError('SG_ERR_ANSWER_LINK')
    const input = JSON.stringify(request.input, null, 2)
    const isWhole = input.length <= MAX_SHOWN
    return {
      ...{ state: 'open', request, session, recipient, expiresAt: grant.expiresAt, isWhole },
      input: input.slice(0, MAX_SHOWN),
      canAllow: limits.only !== 'deny' && isWhole,
    }
  }

  /**
   * Answers by the form of the page.
   * @returns whether it was this answer that settled the request
   * @throws SG_ERR_ANSWER_LINK · SG_ERR_ANSWER_LINK_EXPIRED · SG_ERR_VALIDATION · SG_ERR_UNSUPPORTED · SG_ERR_STORE_UNAVAILABLE
   */
  async answer(token: string, form: URLSearchParams): Promise<{ taken: ResolvePermissionRequest } | AnswerView> {
    const grant = await this.#grantOf(token)
    const view = await this.look(token)
    if (view.state === 'settled') return view
    const { request, session, canAllow } = view
    const answer = answerOf(request, form)
    if (answer.behavior === 'allow' && !canAllow)
      throw new GatewayError('SG_ERR_VALIDATION', { detail: 'This link can only deny.' })
    try {
      await this.#options.sessions.resolve(session.id, request.id, answer)
      return { taken: answer }
    } catch (error) {
      const isLate = error instanceof GatewayError && LATE.has(error.code)
      if (!isLate) throw error
      return this.#settled(grant)
    }
  }

  async #grantOf(token: string): Promise<AnswerGrant> {
    const { keys, recipient } = this.#options
    const grant = readGrant(token, await keys.current())
    if (!grant || recipient(grant.channel) === undefined) throw new GatewayError('SG_ERR_ANSWER_LINK')
    return grant
  }

  #assertLive({ expiresAt }: AnswerGrant): void {
    if (expiresAt <= this.#options.clock.now()) throw new GatewayError('SG_ERR_ANSWER_LINK_EXPIRED')
  }

  async #waiting({ sessionId, requestId }: AnswerGrant) {
    try {
      return await this.#options.sessions.waiting(sessionId, requestId)
    } catch (error) {
      throw hasCode(error, 'SG_ERR_SESSION_NOT_FOUND')
        ? new GatewayError('SG_ERR_ANSWER_LINK_EXPIRED', { detail: 'The session is not there any more.' })
        : error
    }
  }

  async #settled({ sessionId, requestId, channel, seq }: AnswerGrant): Promise<AnswerView> {
    const { sessions, recipient } = this.#options
    const profile = await sessions.profileOf(sessionId, requestId)
    if (recipient(channel, profile) === undefined) throw new GatewayError('SG_ERR_ANSWER_LINK')
    return { state: 'settled', resolved: await sessions.resolution(sessionId, requestId, seq) }
  }
}

const LATE: ReadonlySet<string> = new Set([
  'SG_ERR_PERMISSION_NOT_FOUND',
  'SG_ERR_SESSION_NOT_FOUND',
  'SG_ERR_SESSION_ENDED',
])
