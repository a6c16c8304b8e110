import { type ConfigProblem, memberPath } from './config-problem.js'
import { isLoopbackHost } from './listen-rules.js'
import type { EffectiveConfig } from './load-config.js'

/** What of `notifications` can be served, and still is not what whoever wrote it will have meant; each with what to do. */
export function notificationWarnings(config: EffectiveConfig): ConfigProblem[] {
  return [
    ...publicUrlWarnings(config),
    ...linkWarnings(config),
    ...nameWarnings(config),
    ...profileWarnings(config),
    ...eventsWarnings(config),
  ]
}

function publicUrlWarnings({ notifications, basePath }: EffectiveConfig): ConfigProblem[] {
  const given = notifications?.publicUrl
  // one that is no URL is refused
  if (given === undefined || !URL.canParse(given)) return []
  const { protocol, hostname, pathname } = new URL(given)
  const path = 'notifications.publicUrl'
  const isExposed = protocol === 'http:' && !isLoopbackHost(hostname)
  const repeatsBasePath = basePath !== '' && `${pathname.replace(/\/+$/, '')}/`.endsWith(`${basePath}/`)
  return [
    ...(isExposed
      ? [{ path, message: 'links over http can be read, and used, by whoever carries them; serve it over https' }]
      : []),
    ...(repeatsBasePath
      ? [{ path, message: `links would have ${basePath} twice; leave it out here, it is put behind by itself` }]
      : []),
  ]
}

function linkWarnings({ notifications }: EffectiveConfig): ConfigProblem[] {
  const { answerLinks = false, publicUrl, channels = [], webhook } = notifications ?? {}
  if (answerLinks === false || publicUrl === undefined || webhook || channels.length > 0) return []
  return [
    { path: 'notifications.answerLinks', message: 'there is no channel that a link could go to; add one to channels' },
  ]
}

function nameWarnings({ notifications }: EffectiveConfig): ConfigProblem[] {
  const { channels = [], webhook } = notifications ?? {}
  const index = channels.findIndex(({ name, format }) => (name ?? format) === 'webhook')
  if (!webhook || index < 0) return []
  const path = memberPath(memberPath('notifications.channels', index), 'name')
  return [{ path, message: 'notifications.webhook goes by the name webhook, too; give this channel a name of its own' }]
}

/** A profile may also be made while the gateway runs, where it keeps any. */
function profileWarnings({ notifications, profiles, profileStore }: EffectiveConfig): ConfigProblem[] {
  if (!profiles || profileStore) return []
  const known = new Set(profiles.map(({ name }) => name))
  return (notifications?.channels ?? []).flatMap((channel, at) =>
    (channel.profiles ?? []).flatMap((name, index) => {
      if (known.has(name)) return []
      const path = memberPath(`${memberPath('notifications.channels', at)}.profiles`, index)
      const message = `there is no profile ${JSON.stringify(name)}, of which the channel would be told; declared are ${[...known].join(', ') || 'none'}`
      return [{ path, message }]
    }),
  )
}

/** An empty list is none, and not all. One that reminders go to may be told of nothing else. */
function eventsWarnings({ notifications }: EffectiveConfig): ConfigProblem[] {
  const { channels = [], webhook, reminders = [] } = notifications ?? {}
  const told = [
    ...(webhook ? [{ path: 'notifications.webhook', name: 'webhook', events: webhook.events }] : []),
    ...channels.map(({ name, format, events }, at) => ({
      ...{ path: memberPath('notifications.channels', at), name: name ?? format, events },
    })),
  ]
  const message = 'nothing is told where this is empty; leave it out for all four kinds, or take the whole entry out'
  return told
    .filter(({ name, events }) => events?.length === 0 && !reminders.some(({ channel }) => channel === name))
    .map(({ path }) => ({ path: memberPath(path, 'events'), message }))
}
