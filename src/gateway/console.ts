import type { OverNodes } from '../cluster/over-nodes.js'
import { SignIns } from '../console/sign-ins.js'
import type { ChannelStore } from '../notifications/channels/store.js'
import type { Outward } from '../notifications/outward.js'
import { refusing } from '../storage/availability.js'
import { createMemorySignInStore } from '../storage/memory/sign-in-store.js'
import type { Ground } from './ground.js'

/** Browsers that are signed in; undefined without a console, and where everybody is let in. */
export function buildSignIns(
  { options, clock, logger, retryAfter, storage }: Ground,
  { channels, nodes, outward }: { channels: ChannelStore; nodes: OverNodes | undefined; outward: Outward },
): SignIns | undefined {
  if (!options.console || !options.authenticate) return undefined
  return new SignIns({
    ...{ ...options.console, clock, logger, retryAfter },
    store: refusing(storage?.signIns ?? createMemorySignInStore()),
    ...{ shared: nodes !== undefined, tellOthers: nodes && (() => nodes.exchange.tell('signIns')) },
    keyOnce: (name, value) => channels.keyOnce(name, value),
    endWhatWasMadeIn: (id) => outward.push?.subscriptions.endSignIn(id) ?? Promise.resolve(),
    hasMade: (id) => outward.push?.subscriptions.isAnyOf(id) === true,
  })
}
