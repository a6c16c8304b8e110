import { GatewayError, optionError, toError } from '../errors.js'
import { eachCall } from '../lib/each-call.js'
import type { QueueAdapter } from './adapter.js'

interface Answer {
  what: string
  fits: (answer: unknown) => boolean
}

const isRecord = (answer: unknown): boolean => {
  const { info, request } = (answer ?? {}) as { info?: { id?: unknown; status?: unknown }; request?: unknown }
  return typeof info?.id === 'string' && typeof info.status === 'string' && typeof request === 'object'
}
const RECORD: Answer = { what: 'a job or null', fits: (answer) => answer == null || isRecord(answer) }
const NUMBER: Answer = { what: 'a number', fits: Number.isFinite }

const ANSWERS = new Map<string, Answer>(
  Object.entries({
    claimNext: RECORD,
    get: RECORD,
    update: RECORD,
    list: { what: 'a list of jobs', fits: (answer) => Array.isArray(answer) && answer.every(isRecord) },
    addDailyTokens: NUMBER,
    dailyTokens: NUMBER,
  } satisfies Partial<Record<keyof QueueAdapter, Answer>>),
)

/**
 * The adapter of a host, whose answers are looked at where they come in: one that is none fails what asked for it, with what is wrong.
 * Taken as it is, a total that is no number holds every job until midnight, and says nothing.
 */
export const answering = (adapter: QueueAdapter): QueueAdapter =>
  eachCall(adapter, (name, call) => {
    const expected = ANSWERS.get(name)
    return expected ? checked(name, expected, call) : call()
  })

/** Why the queue does not start, in the words of the host's adapter: a refusal has them as its cause, where nobody at a start looks. */
export function unstarted(error: unknown): never {
  if (error instanceof GatewayError && error.cause)
    throw optionError('queue.adapter', toError(error.cause).message, error.cause)
  throw error
}

async function checked(name: string, { what, fits }: Answer, call: () => unknown): Promise<unknown> {
  const answer = await call()
  if (!fits(answer)) throw new Error(`${name}() of the queue's adapter gave something else than ${what}.`)
  return answer
}
