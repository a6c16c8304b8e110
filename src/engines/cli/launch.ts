import { stat } from 'node:fs/promises'
import { startError, toError } from '../../errors.js'
import type { Clock } from '../../lib/clock.js'
import type { Logger } from '../../lib/logger.js'
import { openDirectoryWithinRoots, type PathRoots } from '../../lib/paths-within-roots.js'
import { ended } from '../../lib/sentence.js'
import type { SessionRunnerConfig } from '../runner.js'
import type { AgentRow } from './agent-table.js'
import { configDirGone, configDirOf, placeOf } from './environment.js'
import { firstStart } from './first-starts.js'
import { leash } from './leash.js'
import { markerEnv } from './markers.js'
import { AgentProcess, type SpawnRequest } from './process.js'
import type { SpawnSlots } from './spawn-slots.js'

/** Longer than any agent takes when the machine is busy. */
export const START_TIMEOUT_MS = 120_000
/** An agent that has not started by then takes no core: it waits for something, and the others need not. */
export const SLOT_MS = 30_000

/** What both drivers know of the session whose agent they start. */
export interface AgentSetup {
  readonly sessionId: string
  readonly row: AgentRow
  readonly config: SessionRunnerConfig
  /** The agent's whole environment. */
  readonly env: Record<string, string>
  /** Whether files of the working directory that can run commands are honoured. */
  readonly trusted: boolean
  readonly slots: SpawnSlots
  /** Where sessions may work; undefined: anywhere. */
  readonly roots: PathRoots | undefined
  readonly logger?: Logger | undefined
  readonly clock: Clock
}

/** The moment in which an agent starts: it holds a slot, and the working directory by descriptor. */
export interface Launch {
  /** Aborted when nobody wants it any more, and when it takes too long. */
  readonly signal: AbortSignal
  /** At most once. @throws SG_ERR_ENGINE_START for what the system does not take, as too long a command line */
  spawn(command: string, args: readonly string[], env?: NodeJS.ProcessEnv): AgentProcess
  /** Gives back what the moment holds, however it ended. */
  end(): Promise<void>
}

/**
 * Waits for a slot, for as long as others take, and checks, at the last moment, that the directories are still there and still inside
 * the roots.
 * @param wanted gives up
 */
export async function beginLaunch(setup: AgentSetup, wanted: AbortSignal): Promise<Launch> {
  const { row, env, slots, clock } = setup
  // before the slot: who waits for the first one keeps no other agent from its start
  const cameAbout = row.acp?.firstStartAlone ? await firstStart(placeOf(row, env), wanted) : undefined
  const free = await slots.take(wanted).catch((reason) => {
    cameAbout?.(false)
    throw reason
  })
  const late = new AbortController()
  let isSpawned = false
  const letOthers = () => {
    free()
    cameAbout?.(isSpawned && !wanted.aborted)
  }
  const timers = [clock.after(SLOT_MS, letOthers), clock.after(START_TIMEOUT_MS, () => late.abort())]
  const release = () => {
    letOthers()
    for (const timer of timers) timer.cancel()
  }
  try {
    await assertConfigDir(setup)
    const markers = await markerEnv(setup.sessionId)
    await leash.hold()
    const held = await openDirectoryWithinRoots(setup.config.cwd, setup.roots)
    if (!held.ok)
      throw startError(
        `The working directory ${held.reason === 'outside' ? 'lies outside the allowed roots' : 'is gone'}.`,
      )
    let closed: Promise<void> | undefined
    return {
      signal: AbortSignal.any([wanted, late.signal]),
      spawn: (command, args, env = setup.env) => {
        const request = { command, args, env: { ...env, ...markers, PWD: setup.config.cwd }, cwd: held.path }
        const agent = processOf(request)
        isSpawned = true
        tellLife(agent, setup)
        return agent
      },
      end: () => {
        release()
        closed ??= held.close()
        return closed
      },
    }
  } catch (error) {
    release()
    throw error
  }
}

const TOO_LONG =
  'shorten what the request or buildRunnerConfig gives it, an argument or a variable of its environment has at most 128 KiB on Linux'

/** Most of what keeps a process from being started is told by its exit; the system refuses some of it at once. */
function processOf(request: SpawnRequest): AgentProcess {
  try {
    return new AgentProcess(request)
  } catch (error) {
    const { message, code } = toError(error) as NodeJS.ErrnoException
    throw startError(
      `The agent could not be started: ${ended(code === 'E2BIG' ? `${message}: ${TOO_LONG}` : message)}`,
      error,
    )
  }
}

/** @param agent that was given up, and has ended; @param hint a sentence */
export const lateStart = (agent: AgentProcess | undefined, hint?: string): Error =>
  startError(
    `The agent did not start within ${START_TIMEOUT_MS / 1000} s.${hint ? ` ${hint}` : ''}${agent?.saying ?? ''}`,
  )

/** An agent's start and end, for whoever operates the gateway. */
function tellLife({ pid, exited }: AgentProcess, { sessionId, row, logger }: AgentSetup): void {
  const fields = { sessionId, agent: row.name, ...(pid !== undefined && { pid }) }
  if (pid !== undefined) logger?.info(fields, 'agent started')
  void exited.then(({ code, signal, error }) => {
    if (error) logger?.warn({ ...fields, err: error }, 'agent could not be started')
    else logger?.info({ ...fields, ...(signal ? { signal } : { exitCode: code }) }, 'agent ended')
  })
}

async function assertConfigDir({ row, env }: AgentSetup): Promise<void> {
  if (!env[row.configDirEnv]) return
  const found = await stat(configDirOf(row, env)!).catch(() => undefined)
  if (!found?.isDirectory()) throw configDirGone(row)
}
