import type { KeptSnapshot } from '../kept/journal.js'
import type { RunnerLink } from './runner-link.js'

/**
 * Where a session is in its life. Whether a turn is in progress, and what it waits for, is another matter: `SessionInfo.status` is made
 * of both.
 *
 *   building ─▶ starting ─▶ live ─▶ leaving ─▶ asleep ─▶ waking ─▶ live
 *                                     └── not kept ──────▶┘└── did not start ─▶ asleep
 *   every one of them ─▶ ended
 *
 * - *building*: its engine is being built. *starting*: the engine was built and does not take input yet.
 * - *live*: an engine serves it. *leaving*: that engine is going, and is not heard any more. In the middle of a turn (`parks`) nothing may
 *   be done to the session meanwhile.
 * - *asleep*: no engine, and everything is kept that it goes on from. With `parkedSince` it waits for a result or an answer, and is shown
 *   as `parked`; without, the next command wakes it, and it is shown as `idle`.
 * - *waking*: an engine was built again. In the middle of a turn it takes what is said to the session as soon as it is there.
 * - *ended*: no event will follow, but for the log's readers. `inTurn` says whether that cut off a turn, if this process has seen it.
 *
 * `snapshot` is what the next engine goes on from: of a parked session it is in the journal alone.
 */
export type Life =
  | { readonly is: 'building' }
  | { readonly is: 'starting'; readonly link: RunnerLink }
  | { readonly is: 'live'; readonly link: RunnerLink }
  | { readonly is: 'leaving'; readonly snapshot: KeptSnapshot | undefined; readonly parks: boolean }
  | { readonly is: 'asleep'; readonly parkedSince?: number; readonly snapshot?: KeptSnapshot | undefined }
  | { readonly is: 'waking'; readonly link: RunnerLink; readonly inTurn: boolean }
  | { readonly is: 'ended'; readonly as: 'failed' | 'closed'; readonly inTurn?: boolean }

/** What it can come to be from each. */
export const NEXT: Readonly<Record<Life['is'], readonly Life['is'][]>> = {
  building: ['starting', 'ended'],
  starting: ['live', 'asleep', 'ended'],
  live: ['leaving', 'asleep', 'ended'],
  leaving: ['asleep', 'waking', 'ended'],
  asleep: ['waking', 'ended'],
  waking: ['live', 'leaving', 'asleep', 'ended'],
  ended: [],
}
