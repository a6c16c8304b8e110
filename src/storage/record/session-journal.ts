import { KeyedLock } from '../../lib/keyed-lock.js'
import { newId } from '../../lib/new-id.js'
import { present } from '../../lib/present.js'
import { carriedDecision } from '../../sessions/asks/permissions.js'
import type {
  JournaledSession,
  JournaledState,
  JournaledWhole,
  JournalWrite,
  SessionJournal,
} from '../../sessions/kept/journal.js'
import { type News, newsOf, withCommand } from '../../sessions/kept/news.js'
import type { ParkedSessionRecord, SessionStore } from '../../sessions/kept/store.js'
import { derivedTitle } from '../../sessions/session-facts.js'
import { listedRecords, newestSeqOf, storedRecord } from './parked-record.js'

/** A session whose wake a crash cut off has told events that nobody knows any more: so much later its numbering goes on. */
const LOST_SEQS = 1_000_000

/** A journal that has only what is asleep, each session as one `ParkedSessionRecord` of a store. */
export function recordJournal(store: SessionStore): SessionJournal {
  const lock = new KeyedLock()
  /** What was just saved and is about to be asked for, and what it was before, as text. */
  const fresh = new Map<string, { record: ParkedSessionRecord; before: string }>()

  const find = async (id: string): Promise<ParkedSessionRecord | undefined> => {
    const known = fresh.get(id)
    fresh.delete(id)
    return known?.record ?? (await storedRecord(store, id))
  }
  const save = async (record: ParkedSessionRecord): Promise<void> => {
    fresh.delete(record.id)
    await store.save(record)
  }

  return {
    onlyAsleep: true,
    write: (write) =>
      lock.run(write.id, async () => {
        if (!write.state && write.taken) {
          const before = fresh.get(write.id)?.before
          if (before !== undefined) await store.save(JSON.parse(before))
          // not before that: what the store refuses is asked of it again
          fresh.delete(write.id)
          return
        }
        const before = write.origin ? undefined : await find(write.id)
        if (write.origin || before) await save(recordOf(write, before))
      }),
    deposit: (id, news) =>
      lock.run(id, async () => {
        const record = await find(id)
        if (!record) return false
        const before = JSON.stringify(record)
        for (const one of news) takeIn(record, one)
        await save(record)
        fresh.set(id, { record, before })
        return true
      }),
    async list(onUnreadable) {
      const records = await listedRecords(store, onUnreadable)
      for (const record of records) if (numberedApart(record)) await save(record)
      return records.map(listed)
    },
    get: (id) =>
      lock.run(id, async () => {
        const record = await find(id)
        return record && wholeOf(record)
      }),
    read: async () => [],
    remove: (id) =>
      lock.run(id, () => {
        fresh.delete(id)
        return store.delete(id)
      }),
    close: async () => store.close?.(),
  }
}

/** Has none of the numbers used again whose events a crash may have taken. @returns whether there can be any */
function numberedApart(record: ParkedSessionRecord): boolean {
  if (!record.hasNews && !record.isHeld) return false
  record.info.lastSeq += LOST_SEQS
  record.log.epoch = newId()
  delete record.isHeld
  return true
}

/** Moves what a store has of parked sessions into a journal that has every session; what cannot be read stays. */
export async function moveParked(store: SessionStore, journal: SessionJournal, onFailed: (error: unknown) => void) {
  for (const record of await listedRecords(store, onFailed))
    try {
      numberedApart(record)
      const { id, profile, generation, config, epoch, createdBy, state, snapshot, reservedSeq, news } = wholeOf(record)
      const { oldestSeq } = record.log
      const events = record.log.events === '' ? [] : record.log.events.split('\n')
      const known = await journal.get(id)
      if (!known)
        await journal.write({
          ...{ id, origin: { profile, generation, config, epoch, oldestSeq, ...present({ createdBy }) } },
          ...{ state, reservedSeq },
          ...(snapshot && { snapshot }),
          events: events.map((json) => ({ seq: JSON.parse(json).seq, json })),
        })
      else if (isWaiting(known)) await journal.write({ id, state: merged(known, state), ...(snapshot && { snapshot }) })
      if (news) await journal.deposit(id, news)
      await store.delete(id)
    } catch (error) {
      onFailed(error)
    }
}

/** Whether what its record waits for is not over by what the journal says. */
const isWaiting = ({ state: { info, inTurn, permissions, executions } }: JournaledWhole): boolean =>
  info.status !== 'failed' && info.status !== 'closed' && Boolean(inTurn || permissions || executions)

/** The journal has told some of what came in for the record. */
function merged({ state, lastSeq }: JournaledWhole, parked: JournaledState): JournaledState {
  const { settled = [], permissions = [] } = state
  const { midTurn, executions = [], info } = parked
  for (const one of midTurn?.results ?? []) if (settled.includes(one.executionId)) one.told = true
  for (const one of midTurn?.decisions ?? []) if (!permissions.some(({ id }) => id === one.requestId)) one.told = true
  return {
    ...{ ...state, executions, permissions: parked.permissions ?? [], info: { ...info, lastSeq } },
    settled: [...new Set([...settled, ...(parked.settled ?? [])])],
    ...(midTurn && { midTurn }),
  }
}

/** @param before the record that this changes */
function recordOf(write: JournalWrite, before?: ParkedSessionRecord): ParkedSessionRecord {
  const { id, origin, state, log, reservedSeq = 0 } = write
  const snapshot = write.snapshot ?? before?.snapshot
  const midTurn = state?.midTurn
  if (!state || !midTurn || !snapshot || !log) throw new Error(`Session ${id} does not sleep.`)
  const { info, order, hostTitle, firstPrompt, engineTitle, askedBy, turnUsage, before: earlier, ...rest } = state
  const { executions = [], permissions = [], settled = [], asked, queued, messageIds, chosen, ...others } = rest
  // what parks is on the only node, and has its files in the snapshot; a fact that nobody keeps does not compile
  const {
    toldHistory,
    inTurn,
    midTurn: _midTurn,
    isStale: _isStale,
    home: _home,
    delivered: _files,
    ...forgotten
  } = others
  forgotten satisfies Record<string, never>
  const { profile, generation, config, createdBy } = origin ?? before!
  const { title: _title, ...untitled } = config
  const isNew = (key: string) => !midTurn.results.some(({ executionId }) => executionId === key)
  return {
    id,
    info: { ...info, lastSeq: reservedSeq },
    ...{ profile, generation, config: hostTitle === undefined ? untitled : { ...untitled, title: hostTitle } },
    ...present({ order, firstPrompt, engineTitle, toldHistory, before: earlier, chosen, asked }),
    ...present({ createdBy, askedBy, turnUsage, used: midTurn.used }),
    ...(queued && { queued: [...queued] }),
    ...(messageIds && { messageIds: [...messageIds] }),
    snapshot,
    executions: [...executions],
    results: [...midTurn.results, ...(before?.results ?? []).filter(({ executionId }) => isNew(executionId))],
    permissions: [...permissions],
    decisions: [...midTurn.decisions],
    hasNews: midTurn.due ?? false,
    ...(!inTurn && { isBetweenTurns: true }),
    ...(midTurn.isHeld && { isHeld: true }),
    ...(midTurn.interrupted && { interrupted: true }),
    settled: [...settled],
    log,
    parkedAt: midTurn.since,
  }
}

function listed(record: ParkedSessionRecord): JournaledSession {
  const { id, info, profile, generation, executions, permissions, settled, queued, messageIds, chosen, log } = record
  const { order, firstPrompt, engineTitle, before, config, results, decisions, interrupted, hasNews, parkedAt } = record
  const { askedBy, turnUsage, used, toldHistory } = record
  const lastSeq = newestSeqOf(log.events) ?? info.lastSeq
  const waits = [...executions.map(({ executionId }) => executionId), ...permissions.map((request) => request.id)]
  return {
    ...{ id, profile, generation, reservedSeq: info.lastSeq, lastSeq },
    ...(record.removal && { news: [newsOf({ type: 'removal', reason: record.removal })] }),
    state: {
      ...{ info: { ...info, lastSeq }, executions, permissions, settled },
      ...(!record.isBetweenTurns && { inTurn: true }),
      ...present({ order, hostTitle: config.title, firstPrompt, engineTitle, asked: record.asked }),
      ...present({ queued, messageIds, chosen, before, askedBy, turnUsage, toldHistory }),
      midTurn: {
        ...{ since: parkedAt, waits, results, decisions, ...present({ used }) },
        ...(interrupted && { interrupted }),
        ...(hasNews && { due: true }),
      },
    },
  }
}

function wholeOf(record: ParkedSessionRecord): JournaledWhole {
  const { config, snapshot, log, createdBy } = record
  return { ...listed(record), config, snapshot, log, epoch: log.epoch, ...present({ createdBy }) }
}

function takeIn(record: ParkedSessionRecord, news: News): void {
  switch (news.type) {
    case 'result': {
      const { executionId, result } = news
      record.results.push({ executionId, result })
      record.settled.push(executionId)
      record.executions = record.executions.filter((pending) => pending.executionId !== executionId)
      break
    }
    case 'answer': {
      const { requestId, answer, by, commandId } = news
      const request = record.permissions.find(({ id }) => id === requestId) ?? news.request
      if (!request) return
      record.permissions = record.permissions.filter((pending) => pending !== request)
      record.decisions.push(carriedDecision(request, answer, by))
      if (commandId !== undefined) record.messageIds = withCommand(record.messageIds, commandId)
      break
    }
    case 'interrupt':
      record.interrupted = true
      break
    case 'title': {
      const { title: _before, ...config } = record.config
      record.config = news.title === null ? config : { ...config, title: news.title }
      record.info = { ...record.info, title: news.title ?? derivedTitle({ ...record, cwd: config.cwd }) }
      return
    }
    case 'removal':
      record.removal = news.reason
      return
    default:
      return
  }
  record.hasNews = true
  const { info, executions } = record
  const permissions = record.interrupted ? [] : record.permissions
  if (info.parked)
    info.parked = { since: info.parked.since, executions, ...(permissions.length > 0 && { permissions }) }
  info.pendingPermissions = permissions.length
}
