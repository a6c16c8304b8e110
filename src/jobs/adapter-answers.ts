import { GatewayError, optionError, toError } from '../errors.js'
import { eachCall } from '../lib/each-call.js'
import type { QueueAdapter } from './adapter.js'
import { isOfSessions } from './recovery.js'

interface Answer {
  what: string
  /** The answer as the queue takes it; undefined: it is none. */
  taken: (answer: unknown) => unknown
}

/** Drivers of databases give a `bigint`, and a sum, as text, so that no digit is lost; a total has none to lose. */
function numberOf(answer: unknown): number | undefined {
  const isText = typeof answer === 'bigint' || (typeof answer === 'string' && /^-?\d+$/.test(answer))
  const number = isText ? Number(answer) : answer
  if (isText && !Number.isSafeInteger(number)) return undefined
  return Number.isFinite(number) ? (number as number) : undefined
}

/** An answer with a number at `name`; undefined when there is none. */
function withNumber(answer: unknown, name: string): unknown {
  const number = numberOf((answer as Record<string, unknown> | null | undefined)?.[name])
  return number === undefined ? undefined : { ...(answer as object), [name]: number }
}

function recordOf(answer: unknown): unknown {
  const { info, request, position } = (answer ?? {}) as {
    info?: { id?: unknown; status?: unknown }
    request?: unknown
    position?: unknown
  }
  if (typeof info?.id !== 'string' || typeof info.status !== 'string' || typeof request !== 'object') return undefined
  // of what is a number already nothing is copied
  return typeof (position ?? 0) === 'number' ? answer : withNumber(answer, 'position')
}

/** Of a list, each by itself. */
function eachOf(answer: unknown, one: (item: unknown) => unknown): unknown[] | undefined {
  if (!Array.isArray(answer)) return undefined
  const taken = answer.map(one)
  return taken.includes(undefined) ? undefined : taken
}

/** The answer to what is settled and charged, if it is one. */
function settledOf(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { record = null, dailyTokens } = answer as { record?: unknown; dailyTokens?: unknown }
  return { record, dailyTokens: numberOf(dailyTokens) }
}

const RECORD: Answer = {
  what: 'a job or null',
  taken: (answer) => (answer == null ? null : recordOf(answer)),
}
const NUMBER: Answer = { what: 'a number', taken: numberOf }

const ANSWERS = new Map<string, Answer>(
  Object.entries({
    claimNext: RECORD,
    get: RECORD,
    update: RECORD,
    list: { what: 'a list of jobs', taken: (answer) => eachOf(answer, recordOf) },
    dailyTokens: NUMBER,
    settle: { what: 'a job and the total of a day', taken: settledOf },
    counts: { what: 'a list of counts', taken: (answer) => eachOf(answer, (item) => withNumber(item, 'count')) },
    delayed: {
      what: 'a list of jobs and when they fall due',
      taken: (answer) => eachOf(answer, (item) => withNumber(item, 'nextRunAt')),
    },
    next: {
      what: 'a list of ids',
      taken: (answer) => eachOf(answer, (item) => (typeof item === 'string' ? item : undefined)),
    },
  } satisfies Partial<Record<keyof QueueAdapter, Answer>>),
)

/**
 * The adapter of a host, whose answers are looked at where they come in: one that is none fails what asked for it, with what is wrong.
 * Taken as it is, a total that is no number holds every job until midnight, and says nothing.
 */
export const answering = (adapter: QueueAdapter): QueueAdapter =>
  eachCall(adapter, (name, call) => {
    if (name === 'addDailyTokens') return added(call)
    const expected = ANSWERS.get(name)
    return expected ? checked(name, expected, call) : call()
  })

/**
 * Why the queue does not start, in the words of the host's store that failed: a refusal has them as its cause, where nobody at a start
 * looks.
 * @param sessions the option by which sessions are kept, which are read, too
 */
export function unstarted(error: unknown, sessions: string): never {
  if (error instanceof GatewayError && error.cause)
    throw optionError(isOfSessions(error) ? sessions : 'queue.adapter', toError(error.cause).message, error.cause)
  throw error
}

/** What does not reject has added, and would add again. @returns undefined for what is no total: it is asked for by itself */
async function added(call: () => unknown): Promise<number | undefined> {
  return numberOf(await call())
}

async function checked(name: string, { what, taken }: Answer, call: () => unknown): Promise<unknown> {
  const answer = taken(await call())
  if (answer === undefined) throw new Error(`${name}() of the queue's adapter gave something else than ${what}.`)
  return answer
}
