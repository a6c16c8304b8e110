import { Type } from '@sinclair/typebox'
import { PermissionRequest } from '../../../schemas/permissions.js'
import { SessionInfo } from '../../../schemas/sessions.js'
import { optionError, toError } from '../../errors.js'
import { compileSchema } from '../../lib/validation.js'
import type { ParkedSessionRecord, SessionStore } from '../../sessions/kept/store.js'

/** What has to hold before a record is believed; the snapshot inside is the engine's own to check. */
export const ParkedRecord = Type.Object({
  id: Type.String({ minLength: 1 }),
  // shown as it is, in lists too: one that cannot be would take the others along
  info: SessionInfo,
  profile: Type.String(),
  generation: Type.String(),
  config: Type.Object({ cwd: Type.String() }),
  snapshot: Type.Object({ engine: Type.String() }),
  executions: Type.Array(Type.Object({ executionId: Type.String(), toolName: Type.String() })),
  results: Type.Array(Type.Object({ executionId: Type.String() })),
  permissions: Type.Array(PermissionRequest),
  decisions: Type.Array(Type.Object({ toolUseId: Type.String(), requestId: Type.String() })),
  hasNews: Type.Boolean(),
  settled: Type.Array(Type.String()),
  log: Type.Object({ epoch: Type.String(), oldestSeq: Type.Integer(), events: Type.String() }),
  parkedAt: Type.Number(),
})
const shape = compileSchema(ParkedRecord)

/**
 * What a store lists, without what is no record: that is told, left where it is, and keeps no other session from being adopted.
 * @throws SG_ERR_OPTION naming the store, which a host may have brought
 */
export async function listedRecords(
  store: SessionStore,
  onUnreadable: (error: Error) => void = () => {},
): Promise<ParkedSessionRecord[]> {
  const list = await listOf(store, onUnreadable)
  return list.filter((record) => {
    const problem = problemOf(record)
    if (problem) onUnreadable(new Error(`${problem} It was left in place.`))
    return !problem
  })
}

async function listOf(store: SessionStore, onUnreadable: (error: Error) => void): Promise<ParkedSessionRecord[]> {
  let list: unknown
  try {
    list = await store.list(onUnreadable)
  } catch (thrown) {
    throw optionError('parking.store', toError(thrown).message, thrown)
  }
  if (!Array.isArray(list)) throw optionError('parking.store', 'list() gave no list.')
  return list
}

/** @throws Error that says what is wrong with what the store has of this session */
export async function storedRecord(store: SessionStore, id: string): Promise<ParkedSessionRecord | undefined> {
  // a host's may well give null
  const record = (await store.get(id)) ?? undefined
  const problem = record && problemOf(record)
  if (problem) throw new Error(problem)
  return record
}

/** Seq of the newest event of a log that is text; undefined: it has none. @throws when what ends it is no event */
export function newestSeqOf(events: string): number | undefined {
  const newest = events.slice(events.lastIndexOf('\n') + 1)
  if (newest === '') return undefined
  const seq: unknown = JSON.parse(newest)?.seq
  if (!Number.isSafeInteger(seq)) throw new TypeError('It has no seq.')
  return seq as number
}

function problemOf(record: unknown): string | undefined {
  const [wrong] = shape.errors(record, 'record')
  const problem = wrong ? `${wrong.path}: ${wrong.message}` : logProblemOf(record as ParkedSessionRecord)
  return problem && `parking.store gave something else than a parked session (${problem}).`
}

/** The end of a log is where its numbering goes on; the rest is not looked at, which would take as long as a wake. */
function logProblemOf({ id, log }: ParkedSessionRecord): string | undefined {
  try {
    newestSeqOf(log.events)
    return undefined
  } catch (thrown) {
    return `record.log.events of session ${id} does not end with an event: ${toError(thrown).message}`
  }
}
