import type { Runner } from './runner.js'

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

/** Closes one that no session has: whoever waits is told why it has none, not how that went. */
export async function letGo(runner: Runner): Promise<void> {
  try {
    await runner.close()
  } catch {}
}
