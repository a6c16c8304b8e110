import type { SessionFiles } from '../../engines/runner.js'
import { GatewayError, toError } from '../../errors.js'

/**
 * The files of an engine, which a host may have written.
 * @param mayLackTimes where a file without one has another that will do
 * @throws SG_ERR_ENGINE_FAILED from either method, for what the engine's throws, or gives that is not what it is asked for
 */
export const engineFiles = (files: SessionFiles, { mayLackTimes = false } = {}): SessionFiles => ({
  list: () =>
    asked(
      () => files.list(),
      (given) => isList(given) && (mayLackTimes || given.every(({ modifiedAt }) => isNumber(modifiedAt))),
      'files.list() gave no list of { path, bytes, modifiedAt }.',
    ),
  read: (path) => asked(() => files.read(path) ?? undefined, isContent, 'files.read() gave no Uint8Array.'),
})

const isNumber = (given: unknown): boolean => Number.isFinite(Number(given))

const isList = (given: unknown): given is ReturnType<SessionFiles['list']> =>
  Array.isArray(given) && given.every(({ path, bytes }) => typeof path === 'string' && isNumber(bytes))

const isContent = (given: unknown): boolean => given === undefined || given instanceof Uint8Array

function asked<T>(ask: () => T, isFit: (given: T) => boolean, misfit: string): T {
  try {
    const given = ask()
    if (isFit(given)) return given
    // nobody else would hear of it
    if (given instanceof Promise) given.catch(() => {})
    throw new TypeError(misfit)
  } catch (thrown) {
    throw new GatewayError('SG_ERR_ENGINE_FAILED', { cause: toError(thrown) })
  }
}
