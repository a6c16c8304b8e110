import type { Runner } from '../../engines/runner.js'
import { toError } from '../../errors.js'
import type { Logger } from '../../lib/logger.js'
import type { Choice } from './news.js'

/** All that was chosen for a session since its request. */
export interface Chosen extends Choice {
  /** What of it the last snapshot does not have, because it was chosen in the middle of a turn. */
  ahead?: Choice
}

interface ChoosingSession {
  readonly id: string
  readonly world: { readonly logger: Logger }
  chosen: Chosen | undefined
}

/** With what was chosen now, which no snapshot has yet. */
export const chosenWith = (chosen: Chosen | undefined, choice: Choice): Chosen => ({
  ...chosen,
  ...choice,
  ahead: { ...chosen?.ahead, ...choice },
})

/** As it is with a snapshot that has all of it. */
export function inSnapshot(chosen: Chosen | undefined): Chosen | undefined {
  if (!chosen?.ahead) return chosen
  const { ahead: _ahead, ...kept } = chosen
  return kept
}

/**
 * Tells an engine that goes on from a snapshot what was chosen after that.
 * @throws what it refuses a mode with: in another one it might do what nobody allowed. A model may have left the profile's list since.
 */
export async function takeUpChoice({ id, world, chosen }: ChoosingSession, runner: Runner): Promise<void> {
  const { permissionMode, model } = chosen?.ahead ?? {}
  if (permissionMode !== undefined) await runner.setPermissionMode?.(permissionMode)
  if (model === undefined) return
  try {
    await runner.setModel?.(model ?? undefined)
  } catch (error) {
    world.logger.warn({ sessionId: id, model, err: toError(error) }, 'the engine goes on with the model it had before')
  }
}
