import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tried } from '../../../lib/tried.js'
import type { AgentPlace } from './trust.js'

/** What it takes of a file that it does not trust, where its environment has none of the name: whose account it works for. */
const TAKEN = ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_CLOUD_PROJECT', 'GOOGLE_CLOUD_LOCATION']

/**
 * It reads the first `.env` from the working directory upwards also where it trusts nothing there: a session would be told, and paid, to
 * whoever wrote the repository. A variable that is there, and empty, it leaves alone. One of the user's home is the user's own.
 */
export async function distrustInGemini({ env, cwd, configDir }: AgentPlace): Promise<Record<string, string>> {
  // a home may be named by a link, as /home is on some systems
  const own = [env.HOME, configDir].map((folder) => folder && tried(() => realpathSync(folder)))
  for (let folder = cwd; !own.includes(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, '.env')))
      return Object.fromEntries(TAKEN.filter((name) => !env[name]).map((name) => [name, '']))
    if (folder === dirname(folder)) break
  }
  return {}
}
