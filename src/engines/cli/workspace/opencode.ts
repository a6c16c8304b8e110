import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { startError } from '../../../errors.js'
import { readPlainFile } from '../../../lib/plain-file.js'
import type { AgentPlace } from './trust.js'

const CONFIGS = ['opencode.json', 'opencode.jsonc', '.opencode/opencode.json', '.opencode/opencode.jsonc']
const FOLDERS = ['.opencode/plugin', '.opencode/plugins']

/**
 * It is told to leave the project's configuration and all plugins out, and its turns load the project's plugins in spite of it: where
 * there are any it is not started.
 */
export async function distrustInOpencode({ env, cwd }: AgentPlace): Promise<Record<string, string>> {
  for (let folder = cwd; folder !== env.HOME; folder = dirname(folder)) {
    const found = await pluginsIn(folder)
    if (found)
      throw startError(
        `opencode would run the plugins of ${found} unasked, and cannot be kept from it: set trustWorkspace on the profile if they may run.`,
      )
    if (folder === dirname(folder)) break
  }
  return {}
}

/** What in a folder names or holds plugins. */
async function pluginsIn(folder: string): Promise<string | undefined> {
  for (const path of FOLDERS.map((name) => join(folder, name)))
    if ((await readdir(path).catch(() => [])).some((name) => /\.[tj]s$/.test(name))) return path
  for (const path of CONFIGS.map((name) => join(folder, name)))
    if (mayName((await readPlainFile(path).catch(() => UNREADABLE)) ?? '')) return path
  return undefined
}

/** Of what is not read here nobody knows what the agent would read in it. */
const UNREADABLE = '"plugin"'

/** A string that is a value: what the agent puts into it from elsewhere, escaped, stays in it. */
const VALUE = /(?<=[:[,]\s*)"(?:[^"\\\n]|\\.)*"(?=\s*[,\]}])/g

/** Whether a configuration may name plugins, wherever its comments stand and whatever the agent puts into its keys. */
const mayName = (config: string): boolean =>
  /"plugins?"|\\u00/.test(config) || /\{(env|file):/.test(config.replace(VALUE, ''))
