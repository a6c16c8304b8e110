import type { ChannelFormat, NotificationType } from '../../../schemas/notifications.js'
import { optionError, toError } from '../../errors.js'
import type { Logger } from '../../lib/logger.js'
import type { Delivery, DeliveryOrigin } from '../../webhooks/delivery.js'
import type { EgressGuard } from '../../webhooks/egress.js'
import { deliveryHeaders } from '../../webhooks/signing.js'
import { type OperatorWebhook, operatorTarget, type WebhookTarget } from '../../webhooks/target.js'
import type { AnswerLinks } from '../answers/answer-links.js'
import type { ChannelMessage, RenderContext, RenderedMessage } from './message.js'
import { renderNtfy } from './ntfy.js'
import { renderSlack } from './slack.js'
import type { KeptSubscription } from './store.js'
import type { PushSubscriptions } from './subscriptions.js'
import { renderWebPush, type VapidIdentity } from './web-push.js'

interface ChannelCommon {
  /** By which reminders, links and deliveries name it; unique. Default: its format. */
  name?: string
  /** Default: all four. */
  events?: NotificationType[]
  /** Default: every profile. */
  profiles?: string[]
}

/** Where notifications go besides `notifications.webhook`. */
export type ChannelOptions = ChannelCommon &
  (
    | ({ format: 'webhook' } & OperatorWebhook)
    | { format: 'slack'; url: string }
    | { format: 'ntfy'; url: string; headers?: Record<string, string> }
    | { format: 'web_push'; subject?: string }
  )

export interface ChannelsOptions {
  logger: Logger
  /** Attempts per delivery, and milliseconds before the second; doubled for every further one. */
  attempts: number
  retryDelayMs: number
  /** For what the operator named, and for endpoints that callers named. */
  guard: EgressGuard
  pushGuard: EgressGuard
  subscriptions: PushSubscriptions
  /** By whom push services know the gateway; read when there is something to be sent. */
  vapid(): VapidIdentity
  /** Absent: no links. */
  links: AnswerLinks | undefined
}

/** A delivery and the lane that it goes in. */
export interface Laned {
  lane: string
  delivery: Delivery
}

/** Deliveries that may wait for one operator's channel, and for one browser. */
export const MAX_WAITING = 10_000
const MAX_WAITING_PUSH = 500
/** A push service that knows no such browser (any more). */
const PUSH_GONE = [404, 410]
/** Formats that replace what they showed of a request, and so are told how it was settled. */
const REPLACES: ReadonlySet<ChannelFormat> = new Set(['ntfy', 'web_push'])

/** The lane under which the attempts to deliver one notification are kept. */
export const attemptsLane = (sessionId: string, seq: number): string => `notification ${sessionId}:${seq}`

/** The channels of the configuration: what each is told, and how it is written. */
export class Channels {
  readonly #channels: ReadonlyMap<string, ChannelOptions>
  readonly #targets = new Map<string, WebhookTarget>()
  readonly #options: ChannelsOptions

  /** @throws SG_ERR_OPTION */
  constructor(channels: readonly ChannelOptions[], options: ChannelsOptions) {
    this.#options = options
    this.#channels = named(channels)
    for (const [name, channel] of this.#channels)
      if (channel.format !== 'web_push')
        this.#targets.set(name, this.#operatorTarget(name, channel, channels.indexOf(channel)))
  }

  has(name: string): boolean {
    return this.#channels.has(name)
  }

  names(): string[] {
    return [...this.#channels.keys()]
  }

  /** Whether any of them is told how a request was settled. */
  get tellsSettlements(): boolean {
    return [...this.#channels.values()].some(({ format }) => REPLACES.has(format))
  }

  /** The operator's own endpoints. */
  targets(): WebhookTarget[] {
    return [...this.#targets.values()]
  }

  /**
   * Who a link was sent to: the channel, and whose browser; undefined when that is not told any more.
   * @param profile of which it would have to be told; absent: of any
   */
  recipient(channel: string, profile?: string): string | undefined {
    const [name = '', subscription] = splitChannel(channel)
    const declared = this.#channels.get(name)
    if (!declared || (profile !== undefined && !isOf(declared, profile))) return undefined
    if (subscription === undefined) return name
    const known = this.#options.subscriptions.get(subscription, profile)
    return known && (known.principal ? `${known.principal} (${name})` : name)
  }

  /**
   * The deliveries that a message calls for. Profiles that a channel is not told of it is never told of.
   * @param only the one channel that is to be told, whatever events it hears of
   * @param reminded channels that were reminded of the request which this one settles
   */
  deliveriesOf(message: ChannelMessage, id: string, only?: string, reminded?: ReadonlySet<string>): Laned[] {
    return [...this.#channels].flatMap(([name, channel]) => {
      if (!isOf(channel, message.session.profile)) return []
      const isShown = reminded?.has(name) && REPLACES.has(channel.format)
      if (only === undefined ? !isShown && !wants(channel, message) : name !== only) return []
      if (channel.format === 'web_push') return this.#pushed(name, message, id)
      const target = this.#targets.get(name)!
      return this.#laned(name, message, id, { target, origin: { kind: 'channel', channel: name } })
    })
  }

  /** The target of a delivery that an earlier process left. */
  targetOf({ channel, subscription }: DeliveryOrigin & { kind: 'channel' }): WebhookTarget | undefined {
    if (subscription === undefined) return this.#targets.get(channel)
    const known = this.has(channel) ? this.#options.subscriptions.get(subscription) : undefined
    return known && this.#pushTarget(channel, known)
  }

  /** What somebody does not want to hear of, no reminder tells either. */
  #pushed(name: string, message: ChannelMessage, id: string): Laned[] {
    const told = this.#options.subscriptions
      .ofProfile(message.session.profile)
      .filter((one) => isOf(one, message.session.profile) && wants(one, message))
    return told.map((subscription) =>
      this.#laned(`${name}/${subscription.id}`, message, id, {
        target: this.#pushTarget(name, subscription),
        origin: { kind: 'channel', channel: name, subscription: subscription.id },
      }),
    )
  }

  /** What is told of one session comes in order; sessions and channels do not wait for each other. */
  #laned(to: string, message: ChannelMessage, id: string, given: Pick<Delivery, 'target' | 'origin'>): Laned {
    return { lane: `channel ${to} ${message.sessionId}`, delivery: deliveryOf(message, id, given) }
  }

  #operatorTarget(
    name: string,
    channel: Exclude<ChannelOptions, { format: 'web_push' }>,
    index: number,
  ): WebhookTarget {
    const { attempts, retryDelayMs, guard } = this.#options
    const option = `notifications.channels.${index}`
    // its index may change, and then it is still the same one
    const target = operatorTarget(channel, { option, place: `channel ${name}`, attempts, retryDelayMs, guard })
    const render = { slack: renderSlack, ntfy: renderNtfy, webhook: signedBy(target) }[channel.format]
    return {
      ...target,
      ...{ channel: name, maxWaiting: MAX_WAITING },
      mayBeTold: this.#mayBeTold(name),
      write: this.writer(name, render),
    }
  }

  #pushTarget(name: string, { id, endpoint, keys, owner, principal = '', createdAt }: KeptSubscription): WebhookTarget {
    const { attempts, retryDelayMs, pushGuard, subscriptions, vapid, logger } = this.#options
    const render = (message: ChannelMessage, context: RenderContext) =>
      renderWebPush(message, context, { to: { endpoint, keys }, from: vapid() })
    return {
      // one that was gone and has subscribed again since is another one: over several nodes it has its id from its endpoint
      ...{ key: `push ${id} ${createdAt}`, url: endpoint, headers: undefined, signingKeys: [], attempts, retryDelayMs },
      ...{ guard: pushGuard, channel: name, goneStatuses: PUSH_GONE, maxWaiting: MAX_WAITING_PUSH },
      slot: `push ${owner ?? principal}`,
      onGone: () => {
        subscriptions.forget({ id, createdAt }).catch((error) => {
          logger.warn({ err: toError(error), subscription: id }, 'a subscription that is gone could not be removed')
        })
      },
      mayBeTold: this.#mayBeTold(`${name}/${id}`),
      write: this.writer(`${name}/${id}`, render),
    }
  }

  #mayBeTold(to: string): NonNullable<WebhookTarget['mayBeTold']> {
    return (payload) => this.recipient(to, (payload as ChannelMessage).session.profile) !== undefined
  }

  /** Writes messages for one recipient: with the link that is its own, signed at the time of the attempt and kept nowhere. */
  writer(
    to: string,
    render: (message: ChannelMessage, context: RenderContext) => RenderedMessage,
  ): NonNullable<WebhookTarget['write']> {
    const { links, logger } = this.#options
    return async ({ id, payload }) => {
      const message = payload as ChannelMessage
      const answerUrl = await links?.urlFor(message, to).catch((error) => {
        logger.warn(
          { err: toError(error), delivery: id },
          'a notification is sent without a link: there is no key to sign it',
        )
        return undefined
      })
      return (now) => render(message, { id, now, answerUrl })
    }
  }
}

/** A message as its own JSON, with the link in it, signed as Standard Webhooks has it. */
export const signedBy =
  ({ signingKeys }: WebhookTarget) =>
  (message: ChannelMessage, { id, now, answerUrl }: RenderContext): RenderedMessage => {
    const body = Buffer.from(JSON.stringify({ ...message, ...(answerUrl !== undefined && { answerUrl }) }))
    return { body, headers: deliveryHeaders(id, body, signingKeys, Math.floor(now / 1000)) }
  }

/** What is to be delivered of a message, wherever it goes. */
export function deliveryOf(message: ChannelMessage, id: string, given: Pick<Delivery, 'target' | 'origin'>): Delivery {
  const { type, sessionId, seq } = message
  return {
    ...{ id, type, payload: message, importance: type === 'session_closed' ? 'last' : 'normal' },
    logLane: attemptsLane(sessionId, seq),
    ...given,
  }
}

const isOf = ({ profiles }: { profiles?: readonly string[] | undefined }, profile: string): boolean =>
  profiles?.includes(profile) ?? true

type Filter = { format?: ChannelFormat; events?: readonly string[] }

function wants({ format, events }: Filter, message: ChannelMessage): boolean {
  if (message.type !== 'permission_resolved') return events?.includes(message.type) ?? true
  const replaces = format === undefined || REPLACES.has(format)
  return replaces && (events?.includes('permission_requested') ?? true)
}

const splitChannel = (channel: string): string[] => channel.split('/')

function named(channels: readonly ChannelOptions[]): Map<string, ChannelOptions> {
  const byName = new Map<string, ChannelOptions>()
  for (const [index, channel] of channels.entries()) {
    const name = channel.name ?? channel.format
    const at = `notifications.channels.${index}.name`
    if (!/^[A-Za-z0-9_.-]{1,64}$/.test(name))
      throw optionError(at, 'must be at most 64 letters from A to Z and a to z, digits, ".", "_" or "-".')
    if (byName.has(name))
      throw optionError(at, `there is a channel ${JSON.stringify(name)} already; give each its own.`)
    byName.set(name, channel)
  }
  return byName
}
