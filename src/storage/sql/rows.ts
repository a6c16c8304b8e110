import type { JobStatus } from '../../../schemas/jobs.js'
import type { KeptKey } from '../../idempotency/store.js'
import type { JobPlace } from '../../jobs/adapter.js'
import { isTerminal, type StoredJob } from '../../jobs/job.js'
import type { KeptNotification } from '../../notifications/store.js'
import { type Asleep, isTerminal as isEnd, type JournaledState } from '../../sessions/kept/journal.js'
import type { UsageCount } from '../../usage/store.js'
import type { KeptDelivery } from '../../webhooks/outbox.js'

/** Characters of a page, of which the first row is always there. */
export const MAX_PAGE_CHARS = 1024 * 1024
/** Expired keys that go whenever one is kept: more than come in, so that they cannot pile up. */
export const KEYS_SWEPT_AT_ONCE = 10
/** Of what is written to see whether there is room: more than fits beside what is full, and more than a usual write. */
export const PROBE_BYTES = 64 * 1024

/** The column of a name. */
export const columnOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
/** Of what sums of usage are kept. */
export const USAGE_KEY = ['day', 'profile', 'agent', 'person'] as const

export interface SessionRow {
  key: number
  id: string
  profile: string
  generation: string
  reservedSeq: number
  lastSeq: number
  state: string
  /** Null: it does not sleep. */
  asleep: string | null
}

/** By which sessions at rest are found: those that have ended, and those that sleep. */
export interface RestColumns {
  /** Its status; null: it has not ended. */
  ended: string | null
  endedAt: number | null
  /** Its status; null: it does not sleep. */
  asleep: string | null
  wakesAt: number | null
  sdkSession: string | null
  engine: string
  /** Null: where it was first written. */
  place: number | null
}

export function restColumns(state: JournaledState, asleep: Asleep | undefined): RestColumns | undefined {
  const { info, order } = state
  const hasEnded = isEnd(info)
  if (!hasEnded && !asleep) return undefined
  return {
    ended: hasEnded ? info.status : null,
    endedAt: hasEnded ? info.lastActivityAt : null,
    asleep: (!hasEnded && asleep?.status) || null,
    wakesAt: asleep?.wakesAt ?? null,
    sdkSession: asleep?.sdkSessionId ?? null,
    ...{ engine: info.engine, place: order ?? null },
  }
}

/** By which sessions are found that several nodes have. */
export interface ListedColumns {
  status: string
  engine: string
  /** Null: where it was first written. */
  place: number | null
  home: string | null
}

export function listedColumns({ info, order, home }: JournaledState): ListedColumns {
  return { status: info.status, engine: info.engine, place: order ?? null, home: home ?? null }
}

export interface NewsRow {
  session: number
  key: string
  /** JSON. */
  news: string
}

/** What rides along in the write of something else. */
export interface Riding {
  keys?: readonly KeptKeyRow[] | undefined
  deliveries?: readonly DeliveryValues[] | undefined
  notifications?: readonly KeptNotification[] | undefined
  usage?: readonly UsageCount[] | undefined
}

export interface SessionWrite extends Riding {
  id: string
  origin?: { profile: string; generation: string; text: string } | undefined
  state?: string | undefined
  snapshot?: string | undefined
  reservedSeq: number
  /** Of a state of one at rest. */
  rest?: RestColumns | undefined
  /** With a state. */
  listed?: ListedColumns | undefined
  /** With a state: ids of all executions that the session has had. */
  executions?: readonly string[] | undefined
  /** Of the events, in step with `texts`. */
  seqs: number[]
  texts: string[]
  /** Keys of news. */
  taken?: readonly string[] | undefined
}

export interface ParkedRow {
  n: number
  id: string
  record: string
}

export interface JobRow {
  n: number
  id: string
  /** As `JobRecord.rev`. */
  rev: number
  /** JSON, both of them. */
  info: string
  request: string
}

export interface JobPageFilter {
  status?: readonly JobStatus[]
  profiles?: readonly string[]
  /** Only jobs with a smaller number. */
  before?: number
  /** Only jobs that were submitted before this one. */
  after?: JobPlace
  limit: number
}

/** When it is next, whether it may be claimed by now (null: not queued), and when it ended. */
export function jobTimes({ status, nextRunAt, finishedAt }: StoredJob): [number | null, number | null, number | null] {
  const ready = nextRunAt === undefined ? 1 : 0
  return [nextRunAt ?? null, status === 'queued' ? ready : null, isTerminal(status) ? (finishedAt ?? 0) : null]
}

export interface KnownKeyRow {
  fingerprint: string
  /** Null: its request is under way. */
  answer: string | null
}

/** A key as it is kept with what its request makes. */
export interface KeptKeyRow {
  key: string
  fingerprint: string
  /** JSON. */
  made: string
  since: number
}

export const keptRow = ({ key, fingerprint, made }: KeptKey, now: number): KeptKeyRow => ({
  ...{ key, fingerprint },
  made: JSON.stringify(made),
  since: now,
})

export interface DeliveryRow {
  n: number
  id: string
  lane: string
  delivery: string
}

/** A delivery as it is kept with what it tells of. */
export type DeliveryValues = Pick<DeliveryRow, 'lane' | 'id' | 'delivery'>

export const deliveryValues = ({ lane, id, delivery }: KeptDelivery): DeliveryValues => ({
  ...{ lane, id },
  delivery: JSON.stringify(delivery),
})
