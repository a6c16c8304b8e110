import type { Command } from 'commander'

/** Fields of requests that are named otherwise than the flag that fills them. */
const FILLED_BY: readonly [field: RegExp, option: string][] = [
  [/(?:^|\.)permissionMode$/, 'mode'],
  [/^maxDurationMs$/, 'maxDuration'],
  [/^webhook\.url$/, 'webhook'],
  [/^provider\.id$/, 'provider'],
  [/^error$/, 'failed'],
  [/^updatedInput\.answers\b/, 'answer'],
]

/** @returns the flag that filled a field, as `session.permissionMode`; undefined where that is what was written, or none of them did */
export function flagOf(path: string, command: Command): string | undefined {
  const name = FILLED_BY.find(([field]) => field.test(path))?.[1] ?? path.split('.').at(-1)!
  const option = command.options.find((one) => one.attributeName() === name)
  const isGiven = command.getOptionValueSource(name) === 'cli'
  return isGiven && option?.long !== `--${path}` ? option?.long || undefined : undefined
}
