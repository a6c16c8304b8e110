import { dirname, join } from 'node:path'
import { startError } from '../../../errors.js'
import { readPlainFile } from '../../../lib/plain-file.js'
import { privateFile } from './private-files.js'
import type { AgentPlace } from './trust.js'

const SETTINGS = 'QWEN_CODE_SYSTEM_SETTINGS_PATH'
const DEFAULTS = 'QWEN_CODE_SYSTEM_DEFAULTS_PATH'
const FOLDERS = 'QWEN_CODE_TRUSTED_FOLDERS_PATH'
const OPERATORS = '/etc/qwen-code/settings.json'

/** It asks its settings whether to distrust folders at all, and a list which: the operator's own settings go on to hold for the rest. */
export async function distrustInQwen({ env, cwd, configDir }: AgentPlace): Promise<Record<string, string>> {
  // Where it decides about the working directory, its user's word is stronger than what we say.
  if (configDir && folderTrustOf(await readSettings(join(configDir, 'settings.json'))) === false)
    throw startError(
      'The settings of qwen switch its folderTrust off, and so it would run what the working directory says: leave that out of them, or set trustWorkspace on the profile.',
    )
  const path = env[SETTINGS] || OPERATORS
  const settings = await readSettings(path)
  const security = { ...(settings.security as object), folderTrust: { enabled: true } }
  return {
    [SETTINGS]: await privateFile('settings.json', JSON.stringify({ ...settings, security })),
    // They are looked for beside the settings.
    [DEFAULTS]: env[DEFAULTS] || join(dirname(path), 'system-defaults.json'),
    [FOLDERS]: await privateFile('folders.json', JSON.stringify({ [cwd]: 'DO_NOT_TRUST' })),
  }
}

const folderTrustOf = ({ security }: Record<string, unknown>): unknown =>
  (security as { folderTrust?: { enabled?: unknown } } | undefined)?.folderTrust?.enabled

const readSettings = (path: string): Promise<Record<string, unknown>> =>
  readPlainFile(path)
    .then((text) => JSON.parse(text ?? '{}'))
    .catch(() => ({}))
