import type { Runner, RunnerEvent } from '../../engines/runner.js'
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

/** As it is once a choice came to nothing: what that names is as it was before, which no snapshot may have. */
export function chosenWithout(chosen: Chosen | undefined, choice: Choice, before: Chosen | undefined) {
  const ahead = putBack(choice, chosen?.ahead, before?.ahead)
  const { ahead: _ahead, ...kept } = putBack<Chosen>(choice, chosen, before) ?? {}
  const without: Chosen = { ...kept, ...(ahead && { ahead }) }
  return Object.keys(without).length > 0 ? without : undefined
}

/** One with what stands in the other under the names of a choice. */
function putBack<T extends Choice>(choice: Choice, into: T | undefined, from: T | undefined): T | undefined {
  const isNamed = ([name]: [string, unknown]) => Object.hasOwn(choice, name)
  const others = Object.entries(into ?? {}).filter((member) => !isNamed(member))
  const made = [...others, ...Object.entries(from ?? {}).filter(isNamed)]
  return made.length > 0 ? (Object.fromEntries(made) as T) : undefined
}

/** What an engine tells to have from now on, as it would be chosen. */
export function choiceIn(event: RunnerEvent): Choice | undefined {
  if (event.type === 'permission_mode_changed') return { permissionMode: event.mode }
  return event.type === 'model_changed' ? { model: event.model ?? null } : undefined
}

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
