import type { Clock } from '../lib/clock.js'
import { within } from '../lib/within.js'
import type { Runner } from './runner.js'

/** How long a runner may take to close before it is left behind. */
const CLOSE_GRACE_MS = 10_000

const NONE = 'createEngineRunner returned no runner.'
const METHODS = ['start', 'send', 'interrupt', 'close'] as const

/** What keeps that which a host has built from being a runner, for its author; undefined: nothing. */
export function lackOf(built: unknown): string | undefined {
  if (typeof built !== 'object' || built === null) return NONE
  const runner = built as Partial<Runner>
  const missing: string[] = METHODS.filter((name) => typeof runner[name] !== 'function').map((name) => `${name}()`)
  if (!Array.isArray(runner.capabilities?.permissionModes)) missing.push('list in capabilities.permissionModes')
  return missing.length > 0 ? `${NONE} It has no ${missing.join(', no ')}.` : undefined
}

/** What is done about a runner that does not close as it should; default: nothing. */
interface BadEnd {
  onLate?(): void
  onFailed?(error: unknown): void
}

/** Closes a runner; resolves when it is gone, or was left behind. Never rejects. */
export function letGo(runner: Runner, clock: Pick<Clock, 'after'>, { onLate, onFailed }: BadEnd = {}): Promise<void> {
  const closing = async () => runner.close()
  return within(
    CLOSE_GRACE_MS,
    closing().catch((error) => onFailed?.(error)),
    { clock, onLate: () => onLate?.() },
  )
}
