import { readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { configDirOf } from '../environment.js'
import type { AgentSetup } from '../launch.js'

const MINUTE_MS = 60_000

/** What is done for an agent that keeps its files in a way that loses the session when it is loaded. */
export interface Loading {
  /** Once the session is loaded. */
  tidy(): Promise<void>
}

/**
 * Waits, where the agent would overwrite the session that it is to load, until it does not: at most a minute. Beside the file of a
 * session that it loads the agent begins another one; at its next start it would take the two for broken, and delete both.
 * @param gone aborts when the session is not to be loaded any more; rejects then
 */
export async function prepareLoad(
  setup: Pick<AgentSetup, 'row' | 'env'>,
  sessionId: string,
  gone: AbortSignal,
): Promise<Loading> {
  const { loadBegins, transcripts } = setup.row.acp ?? {}
  const directory = configDirOf(setup.row, setup.env)
  if (loadBegins === undefined || !transcripts || !directory) return { tidy: async () => {} }
  const folder = join(directory, transcripts.folder)
  const files = async () => {
    const found = await readdir(folder, { recursive: true }).catch(() => [])
    return found.filter((path) => path.endsWith(transcripts.suffix(sessionId)))
  }
  const before = new Set(await files())
  const now = Date.now()
  // As the agent writes it: UTC, to the minute.
  const minute = new Date(now).toISOString().slice(0, 16).replace(':', '-')
  if ([...before].some((path) => basename(path).startsWith(`${loadBegins}${minute}`)))
    await sleep(MINUTE_MS - (now % MINUTE_MS), undefined, { signal: gone })
  return {
    async tidy() {
      const begun = (await files()).filter((path) => !before.has(path))
      // One that had no file may have got its only one.
      if (before.size > 0) await Promise.all(begun.map((path) => rm(join(folder, path), { force: true })))
    },
  }
}
