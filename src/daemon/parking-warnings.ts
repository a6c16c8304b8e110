import type { ConfigProblem } from './config-problem.js'
import type { EffectiveConfig } from './load-config.js'

/** A database keeps parked sessions itself, in the same write as their logs. */
export function parkingWarnings({ storage, parking }: EffectiveConfig): ConfigProblem[] {
  if (storage === 'memory' || !parking?.store) return []
  const message =
    'parked sessions are kept in storage; what is in this directory is moved there, and nothing is written to it; leave it out after that'
  return [{ path: 'parking.store', message }]
}
