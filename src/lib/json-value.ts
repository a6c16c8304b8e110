import { invalidField } from '../errors.js'

/**
 * What is kept and answered as JSON has to be some: a host can hand in a BigInt, or an object that holds itself.
 * @throws SG_ERR_VALIDATION naming the field
 */
export function assertJson(value: unknown, path: string): void {
  if (value === undefined) return
  try {
    JSON.stringify(value)
  } catch {
    throw invalidField(path, 'must be JSON: no BigInt, and nothing that holds itself.')
  }
}
