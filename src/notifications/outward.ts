import type { SessionEventOf } from '../../schemas/events.js'
import type { SessionNotification } from '../../schemas/notifications.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { hasCode, optionError } from '../errors.js'
import { oneLine } from '../lib/one-line.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { DeliveryOrigin, LeftDelivery, PlannedDelivery } from '../webhooks/delivery.js'
import type { EgressGuard } from '../webhooks/egress.js'
import type { DeliveryOutbox } from '../webhooks/outbox.js'
import { type OperatorWebhook, operatorTarget, type WebhookTarget } from '../webhooks/target.js'
import { AnswerKeys } from './answers/answer-keys.js'
import { type AnswerableSessions, type AnswerLinkLimits, AnswerLinks } from './answers/answer-links.js'
import { type ChannelOptions, Channels, deliveryOf, type Laned, MAX_WAITING, signedBy } from './channels/channels.js'
import type { RequestSettled, ToldNotification } from './channels/message.js'
import { WebPush } from './channels/push.js'
import { PushSubscriptions, type PushSubscriptionsOptions } from './channels/subscriptions.js'
import type { ToldRequest } from './planned.js'
import { type ReminderOptions, Reminders } from './reminders.js'

/** What is to be told to whom outside. */
export interface OutwardOptions {
  webhook?: (OperatorWebhook & { events?: SessionNotification['type'][] }) | undefined
  channels?: ChannelOptions[] | undefined
  reminders?: ReminderOptions[] | undefined
  publicUrl?: string | undefined
  answerLinks?: boolean | AnswerLinkLimits | undefined
  answerLinkTtlMs?: number | undefined
  attempts?: number | undefined
  retryDelayMs?: number | undefined
}

export interface OutwardParts extends Omit<PushSubscriptionsOptions, 'signal'> {
  deliverer: WebhookDeliverer
  outbox: DeliveryOutbox
  /** Whether the next process finds what this one leaves in the outbox. */
  outlasts: boolean
  /** For the operator's endpoints, and for those that callers name. */
  guard: EgressGuard
  pushGuard: EgressGuard
  /** What stands before the routes, as in `/v1`. */
  basePath: string
  sessions: AnswerableSessions
}

/** The webhook's name, where channels have one. */
const WEBHOOK = 'webhook'
const ANSWER_LINK_TTL_MS = 24 * 60 * 60 * 1000

/** Everything by which notifications leave the gateway: the webhook, the channels, links to answer by, and reminders. */
export class Outward {
  /** Absent: no links. */
  readonly links: AnswerLinks | undefined
  /** Absent: no channel is for browsers. */
  readonly push: WebPush | undefined
  readonly #parts: OutwardParts
  readonly #events: readonly string[] | undefined
  readonly #webhook: WebhookTarget | undefined
  readonly #channels: Channels
  readonly #reminders: Reminders
  readonly #asked = new Asked()

  /** @throws SG_ERR_OPTION */
  constructor(options: OutwardOptions, parts: OutwardParts) {
    const { channels = [], webhook, attempts = 3, retryDelayMs = 500, reminders = [] } = options
    const { store, clock, logger, retryAfter, guard, pushGuard } = parts
    this.#parts = parts
    const subscriptions = new PushSubscriptions({ ...parts, guard: pushGuard })
    const pushed = channels.findIndex(({ format }) => format === 'web_push')
    const subject = pushed < 0 ? '' : subjectOf(channels[pushed]!, pushed, options)
    const push = new WebPush(store, subscriptions)
    this.push = pushed < 0 ? undefined : push
    this.links = this.#linksOf(options)
    this.#channels = new Channels(channels, {
      ...{ logger, attempts, retryDelayMs, guard, pushGuard, subscriptions, links: this.links },
      vapid: () => push.identity(subject),
    })
    const how = { option: 'notifications.webhook', attempts, retryDelayMs, guard }
    this.#webhook = webhook && this.#asChannel(operatorTarget(webhook, how))
    this.#events = webhook?.events
    for (const [index, { channel }] of reminders.entries())
      if (!this.#knows(channel)) throw optionError(`notifications.reminders.${index}.channel`, this.#unknown(channel))
    this.#reminders = new Reminders({
      ...{ reminders, clock, logger, retryAfter, outbox: parts.outbox, outlasts: parts.outlasts },
      isWaiting: (sessionId, requestId) => this.#isWaiting(sessionId, requestId),
      tell: (message, id, channel) => {
        for (const planned of this.#planned(message, id, channel)) {
          planned.keep()
          planned.send()
        }
      },
    })
  }

  /** What is to be delivered of a notification, now and later; to be kept with the event that it tells of. */
  readonly deliveriesOf = (notification: SessionNotification): PlannedDelivery[] => {
    const { sessionId, seq } = notification
    const told = [...this.#planned(notification, `${sessionId}:${seq}`), ...this.#reminders.plan(notification)]
    return notification.type === 'session_closed' ? [...this.#unanswered(notification), ...told] : told
  }

  onAsked(sessionId: string, request: ToldRequest): void {
    if (this.#channels.tellsSettlements || this.#reminders.any) this.#asked.add(sessionId, request)
  }

  /** Requests that somebody was told of before wait in a session that is here again. */
  onRestored(sessionId: string, requests: readonly ToldRequest[]): void {
    for (const request of requests) this.onAsked(sessionId, request)
  }

  /** Of a session that is removed nothing but its end is written down: what was still asked then is settled with it. */
  #unanswered({ sessionId, seq, ts, session }: SessionNotification): PlannedDelivery[] {
    const place = { sessionId, seq, ts, session, preview: 'Denied: the session has ended.' }
    const settlements = this.#asked.of(sessionId).flatMap(({ requestId, since }) => {
      const message: RequestSettled = { type: 'permission_resolved', ...place, requestId }
      const id = `${sessionId}:${seq}:${requestId}`
      const planned = this.#channels.tellsSettlements ? this.#settled(message, id, since) : []
      // answered meanwhile, it has been told
      const send = (delivery: PlannedDelivery) => () =>
        this.#asked.has(sessionId, requestId) ? delivery.send() : delivery.withdraw()
      return planned.map((delivery) => ({ ...delivery, send: send(delivery) }))
    })
    const over = onSent(() => {
      for (const { requestId } of this.#asked.of(sessionId)) this.#reminders.onSettled(sessionId, requestId)
      this.#asked.forget(sessionId)
    })
    return [...settlements, over]
  }

  /** What is to be delivered when a request is settled: to those that replace what they showed of it. */
  readonly settlementOf = (
    event: SessionEventOf<'permission_resolved'>,
    place: { seq: number; ts: number },
    info: () => SessionInfo,
  ): PlannedDelivery[] => {
    const { requestId } = event
    const isTold = this.#channels.tellsSettlements
    if (!isTold && !this.#reminders.any) return []
    const session = info()
    const asked = this.#asked.take(session.id, requestId)
    const message: RequestSettled = {
      ...{ type: 'permission_resolved', sessionId: session.id, ...place, session, requestId },
      preview: settlementText(event),
    }
    const reminders = onSent(() => this.#reminders.onSettled(session.id, requestId))
    // what the policy answers by itself nobody was ever asked
    const isNews = isTold && (asked || event.resolvedBy !== 'policy')
    return [...(isNews ? this.#settled(message, `${session.id}:${place.seq}`, asked?.since) : []), reminders]
  }

  /** The target of a delivery that an earlier process left. */
  targetOf(origin: DeliveryOrigin): WebhookTarget | undefined {
    if (origin.kind === 'notification') return this.#webhook
    return origin.kind === 'channel' ? this.#channels.targetOf(origin) : undefined
  }

  /** The operator's own endpoints. */
  targets(): WebhookTarget[] {
    return [...(this.#webhook ? [this.#webhook] : []), ...this.#channels.targets()]
  }

  /** Whether this process has it already, and so need not take it over. */
  hasReminder({ id }: LeftDelivery): boolean {
    return this.#reminders.has(id)
  }

  takeOver(left: LeftDelivery): void {
    this.#reminders.takeOver(left)
  }

  /** Reads what earlier processes left; before deliveries are taken up. @throws what the store throws */
  async open(): Promise<void> {
    await this.push?.open()
  }

  /** The sessions are there: whether a request waits can be said. */
  start(): void {
    this.#reminders.start()
  }

  stop(): void {
    this.#reminders.stop()
    this.push?.subscriptions.stop()
  }

  #linksOf({
    publicUrl,
    answerLinks = false,
    answerLinkTtlMs = ANSWER_LINK_TTL_MS,
  }: OutwardOptions): AnswerLinks | undefined {
    const base = publicUrl === undefined ? undefined : baseOf(publicUrl)
    if (answerLinks === false) return undefined
    if (base === undefined)
      throw optionError(
        'notifications.answerLinks',
        'needs notifications.publicUrl, where people reach the gateway, as in "https://gateway.example.com".',
      )
    const { store, clock, basePath, sessions } = this.#parts
    return new AnswerLinks({
      ...{ clock, sessions, ttlMs: answerLinkTtlMs, keys: new AnswerKeys(store) },
      pageUrl: `${base}${basePath}/answer`,
      limits: answerLinks === true ? {} : answerLinks,
      recipient: (channel, profile) =>
        this.#channels.recipient(channel, profile) ?? (channel === WEBHOOK && this.#webhook ? WEBHOOK : undefined),
    })
  }

  #knows(channel: string): boolean {
    return this.#channels.has(channel) || (channel === WEBHOOK && this.#webhook !== undefined)
  }

  #unknown(channel: string): string {
    const known = [...this.#channels.names(), ...(this.#webhook ? [WEBHOOK] : [])]
    const declared = known.length > 0 ? `declared are ${known.join(', ')}` : 'none is declared'
    return `there is no channel ${JSON.stringify(channel)}; ${declared}.`
  }

  #asChannel(target: WebhookTarget): WebhookTarget {
    const write = this.#channels.writer(WEBHOOK, signedBy(target))
    return { ...target, channel: WEBHOOK, maxWaiting: MAX_WAITING, write }
  }

  #planned(message: ToldNotification, id: string, only?: string): PlannedDelivery[] {
    const laned = this.#channels.deliveriesOf(message, id, only)
    return this.#inLanes([...this.#toWebhook(message, id, only), ...laned])
  }

  /** A channel that hears of no requests has shown one when it was reminded of it. The webhook hears of settlements from nobody. */
  #settled(message: RequestSettled, id: string, since: number | undefined): PlannedDelivery[] {
    const reminded = this.#reminders.toldOf(message.sessionId, message.requestId, since)
    return this.#inLanes(this.#channels.deliveriesOf(message, id, undefined, reminded))
  }

  #inLanes(laned: Laned[]): PlannedDelivery[] {
    return laned.map(({ lane, delivery }) => this.#parts.deliverer.plan(lane, delivery))
  }

  /** The webhook has a lane for each session. */
  #toWebhook(message: ToldNotification, id: string, only: string | undefined): Laned[] {
    const { type, sessionId } = message
    const target = this.#webhook
    const isMeant =
      only === undefined ? (this.#events?.includes(type) ?? true) : only === WEBHOOK && !this.#channels.has(only)
    if (!target || !isMeant) return []
    return [{ lane: sessionId, delivery: deliveryOf(message, id, { target, origin: { kind: 'notification' } }) }]
  }

  async #isWaiting(sessionId: string, requestId: string): Promise<boolean> {
    try {
      return (await this.#parts.sessions.waiting(sessionId, requestId)) !== undefined
    } catch (error) {
      if (hasCode(error, 'SG_ERR_SESSION_NOT_FOUND')) return false
      throw error
    }
  }
}

/** What is done when a notification is sent, and of which nothing is kept. */
const onSent = (send: () => void): PlannedDelivery => ({ kept: undefined, keep() {}, withdraw() {}, send })

/** Requests that somebody was told of, of the sessions that are or were in memory. */
class Asked {
  readonly #bySession = new Map<string, Map<string, ToldRequest>>()

  add(sessionId: string, request: ToldRequest): void {
    const known = this.#bySession.get(sessionId)
    if (known) known.set(request.requestId, request)
    else this.#bySession.set(sessionId, new Map([[request.requestId, request]]))
  }

  /** It is not there any more. */
  take(sessionId: string, requestId: string): ToldRequest | undefined {
    const known = this.#bySession.get(sessionId)
    const request = known?.get(requestId)
    known?.delete(requestId)
    if (known?.size === 0) this.#bySession.delete(sessionId)
    return request
  }

  has(sessionId: string, requestId: string): boolean {
    return this.#bySession.get(sessionId)?.has(requestId) ?? false
  }

  of(sessionId: string): ToldRequest[] {
    return [...(this.#bySession.get(sessionId)?.values() ?? [])]
  }

  forget(sessionId: string): void {
    this.#bySession.delete(sessionId)
  }
}

function subjectOf(channel: ChannelOptions, index: number, { publicUrl }: OutwardOptions): string {
  const subject = ('subject' in channel ? channel.subject : undefined) ?? publicUrl
  if (subject !== undefined && /^(mailto:|https:\/\/)./.test(subject) && URL.canParse(subject)) return subject
  throw optionError(
    `notifications.channels.${index}.subject`,
    'missing; must be mailto: or https: of whoever answers for the gateway, as in "mailto:ops@example.com".',
  )
}

function baseOf(publicUrl: string): string {
  const url = URL.canParse(publicUrl) ? new URL(publicUrl) : undefined
  const isBase = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash
  if (!isBase)
    throw optionError('notifications.publicUrl', 'must be http or https, without credentials, query and fragment.')
  return url.href.replace(/\/+$/, '')
}

function settlementText({ behavior, resolvedBy, by }: SessionEventOf<'permission_resolved'>): string {
  const what = behavior === 'allow' ? 'Allowed' : 'Denied'
  if (resolvedBy === 'timeout') return 'Nobody answered in time: denied.'
  return oneLine(by?.principal === undefined ? `${what}.` : `${what} by ${by.principal}.`)
}
