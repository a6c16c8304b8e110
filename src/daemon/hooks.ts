import { existsSync, statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { GatewayConfig } from '../../schemas/config.js'
import { toError } from '../errors.js'
import { type Clock, systemClock } from '../lib/clock.js'
import { unknownName } from '../lib/unknown-name.js'
import { within } from '../lib/within.js'
import type { WorkerServerOptions } from '../options.js'
import type { ConfigProblem } from './config-problem.js'

type Section<Name extends 'notifications' | 'queue' | 'executions'> = NonNullable<WorkerServerOptions[Name]>

/** What a hooks module may export: functions for what JSON cannot say. */
export interface Hooks extends Pick<WorkerServerOptions, 'authenticate' | 'buildRunnerConfig' | 'createEngineRunner'> {
  onNotification?: NonNullable<Section<'notifications'>['onNotification']>
  onEvent?: NonNullable<Section<'queue'>['onEvent']>
  onDispatch?: NonNullable<Section<'executions'>['onDispatch']>
}
type HookName = keyof Hooks

/** As long as a hook may take that builds something. */
const IMPORT_MS = 120_000

export const HOOK_NAMES = [
  'authenticate',
  'buildRunnerConfig',
  'createEngineRunner',
  'onNotification',
  'onEvent',
  'onDispatch',
] as const satisfies HookName[]

const isHookName = (name: string): name is HookName => (HOOK_NAMES as readonly string[]).includes(name)

/**
 * Imports a hooks module. An export that is no hook is a problem, not a detail: a misspelt `buildRunnerConfig` would silently leave out
 * the operator's policy.
 * @param file absolute path of an ES module
 */
export async function loadHooks(
  file: string,
  clock: Clock = systemClock,
): Promise<{ hooks: Hooks; problems: ConfigProblem[] }> {
  if (!existsSync(file)) return { hooks: {}, problems: [{ path: 'hooks', message: `${file}: there is no such file` }] }
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    return { hooks: {}, problems: [{ path: 'hooks', message: `${file} is a directory; name the module in it` }] }
  const exported: unknown = await imported(file, clock)
  if (exported instanceof Error)
    return { hooks: {}, problems: [{ path: 'hooks', message: `${file} could not be imported: ${exported.message}` }] }

  const problems: ConfigProblem[] = []
  const hooks: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(exported as object)) {
    if (!isHookName(name))
      problems.push({ path: 'hooks', message: `${file} exports ${name}: ${unknownName('hook', name, HOOK_NAMES)}` })
    else if (typeof value !== 'function')
      problems.push({ path: 'hooks', message: `${file} exports ${name}, which is not a function` })
    else hooks[name] = value
  }
  if (problems.length === 0 && Object.keys(hooks).length === 0)
    problems.push({ path: 'hooks', message: `${file} exports none of ${HOOK_NAMES.join(', ')}` })
  return { hooks, problems }
}

/** What a module exports, or why it does not: it may wait for something, at its top level. */
async function imported(file: string, clock: Clock): Promise<unknown> {
  let onIdle = () => {}
  // nothing is left that could settle it, and the process would end without a word
  const idle = new Promise<Error>((resolve) => {
    onIdle = () => resolve(new Error('it waits, by an await at its top level, for what never comes'))
  })
  process.once('beforeExit', onIdle)
  const exported = import(pathToFileURL(file).href).catch(toError)
  const onLate = () => new Error('it was not ready within two minutes; what does it await at its top level?')
  try {
    return await within(IMPORT_MS, Promise.race([exported, idle]), { clock, onLate })
  } finally {
    process.off('beforeExit', onIdle)
  }
}

/** Hooks that would never be called, because the section which they belong to is missing. */
export function unusableHooks(hooks: Hooks, config: Pick<GatewayConfig, 'queue' | 'executions'>): ConfigProblem[] {
  const missing = (name: HookName, section: string) => ({
    path: 'hooks',
    message: `it exports ${name}, which is called only when the configuration has a section "${section}"`,
  })
  return [
    ...(hooks.onEvent && !config.queue ? [missing('onEvent', 'queue')] : []),
    ...(hooks.onDispatch && !config.executions ? [missing('onDispatch', 'executions')] : []),
  ]
}
