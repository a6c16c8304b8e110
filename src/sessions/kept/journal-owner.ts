import type { KeptKey } from '../../idempotency/store.js'
import type { Clock } from '../../lib/clock.js'
import type { SessionJournal } from './journal.js'
import type { Overdue } from './overdue.js'
import type { Recorded } from './record.js'

/** Whose session is written down. */
export interface JournalOwner extends Recorded {
  readonly id: string
  /** Whose run it is. */
  readonly jobId: string | undefined
  /** Kept with the first write. */
  readonly key: KeptKey | undefined
  /** Whether an engine serves it. */
  readonly live: boolean
  /** Who are told that more of the log may be shown. */
  readonly clients: { onShown(): void }
  /** So much waits to be written, and cannot be, that no more may come. */
  onBacklog(bytes: number): void
}

export interface JournalWriterParts {
  journal: SessionJournal
  /** Whether what is told of events is kept in the same write. */
  oneWrite: boolean
  /** Told of each write that failed, and of the first that succeeds again, or when none is to be made any more. */
  onFault(sessionId: string, error: unknown): void
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  /** As `GatewayStorage.atTurnsEnd`. */
  atTurnsEnd(work: () => void): void
  /** Bytes that wait to be written, of all sessions. */
  backlog: { bytes: number }
  readonly overdue: Overdue
}
