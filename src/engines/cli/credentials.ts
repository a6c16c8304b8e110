import { setMaxListeners } from 'node:events'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProfileInfo } from '../../../schemas/profiles.js'
import { untilAborted } from '../../lib/aborted.js'
import { MAX_DELAY_MS } from '../../lib/clock.js'
import { valueAt } from '../../lib/json-value.js'
import type { Logger } from '../../lib/logger.js'
import { readPlainFile } from '../../lib/plain-file.js'
import { tried } from '../../lib/tried.js'
import type { AgentRow } from './agent-table.js'
import { claudeExecutable } from './claude/executable.js'
import { configDirOf, type Environment, findExecutable } from './environment.js'
import { markerEnv } from './markers.js'
import { AgentProcess } from './process.js'
import { SpawnSlots } from './spawn-slots.js'
import { privateFolder } from './workspace/private-files.js'

/** An agent is started for each answer, as large as for a session. */
const slots = new SpawnSlots()

export type CredentialVerdict = NonNullable<ProfileInfo['credentials']>

/**
 * Tells whether a profile is logged in.
 * @param env the environment of the profile's sessions
 * @returns undefined when it cannot tell
 */
export type CredentialProbe = (
  profile: ProfileInfo,
  env: Environment,
) => boolean | undefined | Promise<boolean | undefined>

/** A profile as its sessions run, whose credentials are checked or whose agent is asked for the sessions that it keeps. */
export interface ProfileAsRun {
  profile: ProfileInfo
  row: AgentRow
  env: Record<string, string>
}

export interface CredentialCheck {
  subjects: readonly ProfileAsRun[]
  logger: Logger
  /** Default: the agent's own command for it, or the credentials that are there. */
  probe?: CredentialProbe | undefined
  /** Of one probe. */
  timeoutMs: number
  /** The Claude Agent SDK, whose binary is asked when the row has none of its own. */
  claudeSdk: string
  /** Aborts when nobody wants to know any more: no agent is asked then. */
  signal: AbortSignal
  onVerdict?(profile: ProfileInfo, verdict: CredentialVerdict): void
}

/**
 * Probes all profiles, as many at once as agents may start, and warns once about each that is logged out. Never rejects; a probe that cannot
 * run is silent.
 */
export async function checkCredentials(check: CredentialCheck): Promise<void> {
  // each that waits listens to it
  setMaxListeners(0, check.signal)
  await Promise.all(
    check.subjects.map(async (subject) => {
      // what a host's own probe takes is the host's to know
      const free = check.probe ? undefined : await slots.take(check.signal).catch(() => undefined)
      await checkOne(check, subject).finally(free)
    }),
  )
}

async function checkOne(check: CredentialCheck, subject: ProfileAsRun): Promise<void> {
  const { logger, timeoutMs, signal } = check
  const { profile, row } = subject
  if (signal.aborted) return
  const late = AbortSignal.any([signal, AbortSignal.timeout(Math.min(timeoutMs, MAX_DELAY_MS))])
  const probed = async () => {
    if (!(await hasConfigDir(subject))) return undefined
    return check.probe ? check.probe(profile, subject.env) : probe(subject, check.claudeSdk, late)
  }
  // of a host's probe, which may well give something else that is no verdict
  const isLoggedIn: unknown = await untilAborted(probed(), late).catch(() => undefined)
  if (signal.aborted) return
  const verdict = isLoggedIn === true ? 'logged_in' : isLoggedIn === false ? 'logged_out' : 'unknown'
  check.onVerdict?.(profile, verdict)
  if (verdict === 'logged_out')
    // nobody waits for what a host's logger throws
    tried(() =>
      logger.warn(
        { profile: profile.name, agent: row.name },
        'the profile is logged out: its sessions will fail until it is logged in',
      ),
    )
}

/** Asking makes some agents create the directory. */
async function hasConfigDir({ row, env }: ProfileAsRun): Promise<boolean> {
  const directory = configDirOf(row, env)
  if (directory === undefined) return true
  const found = await stat(directory).catch(() => undefined)
  return found?.isDirectory() ?? false
}

async function probe({ row, env }: ProfileAsRun, claudeSdk: string, signal: AbortSignal): Promise<boolean | undefined> {
  const asked = row.credentials.probe
  if (asked === undefined) return undefined
  // Its command knows nothing of the key that a session logs in with.
  if (row.acp?.apiKeyLogin && row.credentials.apiKeyEnv.some((name) => env[name])) return true
  if (asked === 'presence') return (await apiKeySourceOf(row, env)) !== 'none'
  const named = asked.command ?? row.command
  const command = named === undefined ? claudeExecutable(claudeSdk) : findExecutable(named, env)
  if (command === undefined) return undefined
  const place = { cwd: await privateFolder(), env: { ...env, ...(await markerEnv('')) } }
  // nobody would end it
  signal.throwIfAborted()
  const child = new AgentProcess({ command, args: asked.args, ...place })
  child.child.stdin.end()
  child.child.stdout.resume()
  signal.addEventListener('abort', () => void child.stop(0), { once: true })
  const { code } = await child.exited
  await child.stop(0)
  return code === 0 ? true : code === 1 ? false : undefined
}

/**
 * Where the credential of a session comes from, for an agent that does not say.
 * @returns the name of the variable that holds its key, `oauth` for a subscription's login, `login` for another one, `none`
 */
export async function apiKeySourceOf(row: AgentRow, env: Environment): Promise<string> {
  const { apiKeyEnv, login } = row.credentials
  const variable = apiKeyEnv.find((name) => env[name])
  if (variable) return variable
  const directory = configDirOf(row, env)
  if (!login || !directory) return 'none'
  const found: unknown = await readPlainFile(join(directory, login.path))
    .then((text) => (text === undefined ? undefined : JSON.parse(text)))
    .catch(() => undefined)
  if (found === undefined) return 'none'
  return login.oauth && valueAt(found, login.oauth) ? 'oauth' : 'login'
}
