import type { SessionEventBody } from '../../schemas/events.js'

interface EventRow {
  /** Whose it is to tell: the engine's, or the gateway's alone. */
  readonly by: 'engine' | 'gateway'
  /** Live only: it is sent, and kept nowhere. */
  readonly isLive?: true
  /** The session stands where it stood; nothing of its state is to be written with the event. */
  readonly leavesState?: true
  /** From an engine it shows that the turn goes on; the others say nothing about it. */
  readonly goesOn?: true
  /** Words and numbers of the gateway alone, held by nobody else: it may wait to be JSON until somebody reads it. */
  readonly isPlain?: true
  /** Somebody waits for it, and nothing follows until they answer: it does not wait for what else its turn brings. */
  readonly isUrgent?: true
  /** A moment of a session's life, that whoever is not there may be told of. */
  readonly isMoment?: true
}

/** One row per type of event; its shape and its sentence are in `schemas/events.ts`. */
const ROWS = {
  system_init: { by: 'engine' },
  status_changed: { by: 'gateway', isPlain: true },
  capabilities: { by: 'engine', leavesState: true },
  model_changed: { by: 'engine' },
  permission_mode_changed: { by: 'engine' },
  user_message: { by: 'engine', goesOn: true },
  assistant_message: { by: 'engine', goesOn: true, leavesState: true },
  stream_delta: { by: 'engine', goesOn: true, leavesState: true, isLive: true },
  turn_completed: { by: 'engine', goesOn: true, isMoment: true },
  permission_requested: { by: 'gateway', isMoment: true, isUrgent: true },
  permission_resolved: { by: 'gateway', isMoment: true },
  execution_dispatched: { by: 'engine', goesOn: true },
  execution_result: { by: 'engine' },
  execution_failed: { by: 'engine' },
  file_delivered: { by: 'engine', leavesState: true },
  context_usage: { by: 'engine', leavesState: true },
  plan_updated: { by: 'engine', leavesState: true },
  rate_limit: { by: 'engine', leavesState: true },
  engine_event: { by: 'engine', leavesState: true },
  session_error: { by: 'engine', isMoment: true },
  session_closed: { by: 'gateway', isPlain: true, isMoment: true },
} as const satisfies Record<SessionEventBody['type'], EventRow>

type Rows = typeof ROWS
type ToldBy<T extends EventRow['by']> = { [E in keyof Rows]: Rows[E]['by'] extends T ? E : never }[keyof Rows]

/** Moments of a session's life: no other event comes to operators above `debug`, to whoever is notified, or into the usage. */
export type MomentEvent = Extract<
  SessionEventBody,
  { type: { [E in keyof Rows]: Rows[E] extends { isMoment: true } ? E : never }[keyof Rows] }
>

export const EVENT_TYPES: Readonly<Record<SessionEventBody['type'], EventRow>> = ROWS

/** Events that are the engine's to tell; the gateway owns the others. */
export type RunnerEvent = Extract<SessionEventBody, { type: ToldBy<'engine'> }>

/** Those that are the engine's to tell, to be asked of whatever an engine says. */
export const ENGINE_EVENT_TYPES: ReadonlyMap<unknown, EventRow> = new Map(
  Object.entries(EVENT_TYPES).filter(([, { by }]) => by === 'engine'),
)
