import type { CarriedPiece } from '../../engines/cli/carry/carried-files.js'
import type { ListedQuery } from '../../sessions/kept/journal.js'
import type { NodeAnnouncement } from '../cluster.js'
import type { Operations } from '../sql/operations.js'
import type { SessionRow } from '../sql/rows.js'

export interface ListedRow extends SessionRow {
  place: number
  owner: number | null
  home: string | null
}

/** Where something is, with the node that has it while that one lives. */
export interface PlaceRow extends NodeAnnouncement {
  id: string
  profile: string
  home: string | null
  ended: string | null
  /** Null: nobody has it, or who had it is gone or about to be. */
  n: number | null
  draining: boolean
}

/** What can be asked beside what every database can, as several nodes share it. */
export interface PostgresOperations extends Operations {
  'journal.listed'(query: ListedQuery): { rows: ListedRow[]; isLast: boolean }
  'cluster.placeOfSession'(id: string): PlaceRow | undefined
  'cluster.placeOfExecution'(executionId: string): PlaceRow | undefined
  'cluster.placeOfJob'(id: string): PlaceRow | undefined
  /** @returns where it is then, and whether the node that had it has left, so that it is to be taken over */
  'cluster.claim'(id: string): { place: PlaceRow | undefined; hasLeft: boolean }
  'cluster.release'(ids: readonly string[]): void
  'carried.pieces'(sessionId: string): CarriedPiece[]
  /** @returns packed */
  'carried.read'(sessionId: string, path: string, offset: number): Buffer | undefined
  /** @param bytes packed */
  'carried.write'(sessionId: string, piece: CarriedPiece, bytes: Buffer): void
}

/** Asks it of the open database. Rejects with a StorageError when nothing of it was done. */
export type CallPostgres = <Name extends keyof PostgresOperations>(
  name: Name,
  ...args: Parameters<PostgresOperations[Name]>
) => Promise<ReturnType<PostgresOperations[Name]>>
