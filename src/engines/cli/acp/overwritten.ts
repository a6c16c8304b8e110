import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { configDirOf } from '../environment.js'
import type { AgentSetup } from '../launch.js'

const MINUTE_MS = 60_000

/** Waits, where the agent would overwrite the session that it is to load, until it does not: at most a minute. */
export async function waitForMinute({ row, env }: AgentSetup, sessionId: string): Promise<void> {
  const directory = configDirOf(row, env)
  const file = row.acp?.sessionFile
  if (!file || !directory) return
  const now = Date.now()
  // As the agent writes it: UTC, to the minute.
  const minute = new Date(now).toISOString().slice(0, 16).replace(':', '-')
  const endangered = file.name(minute, sessionId)
  const found = await readdir(join(directory, file.folder), { recursive: true }).catch(() => [])
  if (!found.some((path) => basename(path) === endangered)) return
  await new Promise((done) => setTimeout(done, MINUTE_MS - (now % MINUTE_MS)))
}
