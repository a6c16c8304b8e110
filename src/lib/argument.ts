import type { TObject } from '@sinclair/typebox'
import { optionError } from '../errors.js'
import { unknownName } from './unknown-name.js'
import { compileSchema } from './validation.js'

/**
 * Holds what a host hands to a function of the entry to its form, at the call: what is wrong is seen there, not in what it leads to.
 * @param call how the function is called, for the message
 */
export function argumentOf<T>(call: string, shape: TObject): (given: T) => T {
  const checker = compileSchema(shape)
  return (given) => {
    const [first] = checker.errors(given)
    if (!first) return given
    throw optionError(
      call,
      first.path === '' ? `takes an object, not ${kindOf(given)}.` : `${first.path}: ${first.message}`,
    )
  }
}

export function kindOf(given: unknown): string {
  if (given === null || given === undefined) return String(given)
  if (Array.isArray(given)) return 'a list'
  return typeof given === 'object' ? 'an object' : `a ${typeof given}`
}

/** Refuses to listen for an event that there is none of: its listener would never hear of anything. @param call how the function is called */
export function assertEvent(call: string, event: string, known: object): void {
  if (!Object.hasOwn(known, event))
    throw optionError(call, `${unknownName('event', String(event), Object.keys(known))}.`.replace('?.', '?'))
}
