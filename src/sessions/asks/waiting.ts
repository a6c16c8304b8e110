import type { PermissionRequest } from '../../../schemas/permissions.js'

/** When and where a request was made. */
export interface AskedPlace {
  /** Of its `permission_requested`. */
  seq: number
  /** Epoch milliseconds. */
  since: number
  /** Its place among the requests of all sessions: rises, whatever the clock does, and outlives the process. */
  order: number
}

/** Places of requests, by their ids; kept beside the requests. */
export type AskedPlaces = Readonly<Record<string, AskedPlace>>

export interface WaitingRequest {
  sessionId: string
  profile: string
  request: PermissionRequest
  place: AskedPlace
}

/** Who is told which requests wait for a person: live, sleeping and parked sessions alike. Must not throw. */
export interface WaitingObserver {
  /** The order of a request that is made now. */
  nextOrder(now: number): number
  /** A request was made: it is found as its session's status is, and nobody is told before that is durable. */
  onAsked(waiting: WaitingRequest): void
  /** A request waits, and that is durable. One that an earlier process left may be told before its order was given out. */
  onWaiting(waiting: WaitingRequest): void
  /** A request does not wait any more; it may never have been told of. */
  onResolved(sessionId: string, requestId: string): void
  /** Nothing of this session waits any more. */
  onNothingWaits(sessionId: string): void
}
