import { SessionEventBody, type SessionEventOf, TurnSubtype } from '../../schemas/events.js'
import type { RunnerEvent } from '../engines/runner.js'
import { type Checker, compileSchema } from '../lib/validation.js'
import { addUsage, countOf, nothingUsed, type SessionFacts, textOf } from './session-facts.js'

const CHECKERS: ReadonlyMap<string, Checker<unknown>> = new Map(
  SessionEventBody.anyOf.map((shape) => [shape.properties.type.const, compileSchema(shape)]),
)
const SUBTYPES: readonly unknown[] = TurnSubtype.anyOf.map((subtype) => subtype.const)

/** What is wrong with the shape of an event, whose type is one that an engine tells; undefined: nothing. */
export function wrongIn(event: RunnerEvent): string | undefined {
  const [first] = CHECKERS.get(event.type)!.errors(event)
  return first && `${first.path}: ${first.message}`
}

/**
 * What the log gets of an event of the wrong shape: whoever reads it relies on shapes.
 * @param wrong as `wrongIn` says it
 * @param facts with what the event says in them
 * @returns undefined for what the log does not keep
 */
export function reshaped(event: RunnerEvent, wrong: string, facts: SessionFacts): RunnerEvent | undefined {
  if (event.type === 'stream_delta') return undefined
  return event.type === 'turn_completed' ? endOf(event, wrong, facts) : { type: 'engine_event', payload: event }
}

/** Nobody else tells that the turn is over. */
function endOf(
  end: SessionEventOf<'turn_completed'>,
  wrong: string,
  { numTurns, cost }: SessionFacts,
): SessionEventOf<'turn_completed'> {
  const { result } = end
  const isNamed = SUBTYPES.includes(end.subtype)
  const isJudged = typeof end.isError === 'boolean'
  const subtype = isNamed ? end.subtype : isJudged && !end.isError ? 'success' : 'error_during_execution'
  const errors = Array.isArray(end.errors) ? end.errors.filter((error) => typeof error === 'string') : []
  if (!isNamed && !isJudged) errors.push(`The engine did not say how the turn ended (${wrong})`)
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
