import { SessionEventBody, type SessionEventOf, TurnSubtype } from '../../schemas/events.js'
import { ENGINE_EVENT_TYPES, EVENT_TYPES } from '../engines/event-types.js'
import type { RunnerEvent } from '../engines/runner.js'
import { valueAt } from '../lib/json-value.js'
import { type Checker, compileSchema } from '../lib/validation.js'
import { addUsage, countOf, nothingUsed, type SessionFacts, textOf } from './session-facts.js'

const CHECKERS: ReadonlyMap<string, Checker<unknown>> = new Map(
  SessionEventBody.anyOf.map((shape) => [shape.properties.type.const, compileSchema(shape)]),
)
const SUBTYPES: readonly unknown[] = TurnSubtype.anyOf.map((subtype) => subtype.const)

/** Without one of these an event says nothing; whoever reads it does without others. */
const SAYING: ReadonlySet<string> = new Set([
  ...['message', 'message.content', 'executionId', 'toolName', 'path'],
  ...['delta', 'delta.type', 'delta.text', 'delta.json'],
])

/** Where an agent that is newer than this gateway may say a word that it does not know. */
const WORDS: ReadonlySet<string> = new Set(['permissionMode', 'mode'])

/** What an engine may say, what has no type here included; undefined: it is the gateway's to tell, or no event. */
export function saidBy(engineSays: RunnerEvent): RunnerEvent | undefined {
  const type: unknown = engineSays?.type
  if (ENGINE_EVENT_TYPES.has(type)) return engineSays
  const hasNoType = typeof type === 'string' && !Object.hasOwn(EVENT_TYPES, type)
  return hasNoType ? { type: 'engine_event', payload: engineSays } : undefined
}

/** Of an event that has another shape than its type. */
export interface Misshape {
  /** The first field that is wrong, and how. */
  readonly problem: string
  /** Whether it still says something: it only lacks members that it can do without, or has `null` for them, or has a new word. */
  readonly isReadable: boolean
}

/** What is wrong with the shape of an event, whose type is one that an engine tells; undefined: nothing. */
export function wrongIn(event: RunnerEvent): Misshape | undefined {
  const errors = CHECKERS.get(event.type)!.errors(event)
  const [first] = errors
  if (!first) return undefined
  const isReadable = errors.every(({ path }) => {
    const value = valueAt(event, path)
    return value == null ? !SAYING.has(path) : WORDS.has(path) && typeof value === 'string'
  })
  return { problem: `${first.path}: ${first.message}`, isReadable }
}

/**
 * What the log gets of an event of the wrong shape: whoever reads it relies on shapes.
 * @param facts with what the event says in them
 * @returns undefined for what the log does not keep
 */
export function reshaped(event: RunnerEvent, wrong: Misshape, facts: SessionFacts): RunnerEvent | undefined {
  if (event.type === 'turn_completed') return endOf(event, wrong, facts)
  if (wrong.isReadable) return event
  return event.type === 'stream_delta' ? undefined : { type: 'engine_event', payload: event }
}

/** Nobody else tells that the turn is over. */
function endOf(
  end: SessionEventOf<'turn_completed'>,
  { problem }: Misshape,
  { numTurns, cost }: SessionFacts,
): SessionEventOf<'turn_completed'> {
  const { result } = end
  const isNamed = SUBTYPES.includes(end.subtype)
  const isJudged = typeof end.isError === 'boolean'
  const isFine = isJudged ? !end.isError : end.subtype === undefined && end.isError === undefined
  const subtype = isNamed ? end.subtype : isFine ? 'success' : 'error_during_execution'
  const errors = Array.isArray(end.errors) ? end.errors.filter((error) => typeof error === 'string') : []
  if (!isNamed && !isJudged && !isFine) errors.push(`The engine did not say how the turn ended (${problem})`)
  const usage = nothingUsed()
  addUsage(usage, end.usage)
  return {
    type: 'turn_completed',
    subtype,
    isError: isJudged ? end.isError : subtype !== 'success' && subtype !== 'interrupted',
    durationMs: countOf(end.durationMs) ?? 0,
    ...{ numTurns, totalCostUsd: cost },
    ...(textOf(result) !== undefined && { result }),
    ...(errors.length > 0 && { errors }),
    usage,
  }
}
