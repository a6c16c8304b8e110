import type { SettingsHighlights } from '../../schemas/profiles.js'
import type { SettingsSource } from '../engines/cli/agent-table.js'
import { parseJson } from '../lib/json-depth.js'
import { isRecord } from '../lib/json-value.js'
import { tried } from '../lib/tried.js'

const MAX_NAMES = 200
const MAX_VALUE_LENGTH = 200
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/
const HOOK_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/

type Json = Record<string, unknown>

/**
 * The named fields of a settings file and nothing besides: unknown fields, and values where a name is expected, are never copied.
 * @returns undefined when the text cannot be read
 */
export function settingsHighlights(text: string, source: SettingsSource): SettingsHighlights | undefined {
  const settings = source.format === 'toml' ? topLevelStrings(text) : parseObject(text)
  if (!settings) return undefined
  const at = (path: string | undefined) => (path === undefined ? undefined : member(settings, path))
  const found: SettingsHighlights = {}
  const model = word(at(source.model))
  if (model !== undefined) found.model = model
  const mode = word(at(source.permissionMode))
  if (mode !== undefined) found.defaultPermissionMode = mode
  const rules = countRules(at, source.rules)
  if (rules) found.permissionRules = rules
  const envKeys = keys(at(source.env), ENV_NAME)
  if (envKeys) found.envKeys = envKeys
  const hooks = keys(at(source.hooks), HOOK_NAME)
  if (hooks) found.hooks = hooks
  return found
}

function parseObject(text: string): Json | undefined {
  const value = tried(() => parseJson(text.startsWith('\ufeff') ? text.slice(1) : text))
  return isRecord(value) ? value : undefined
}

/** Up to the first table or multi-line string: enough for a model's name, and no text inside a string is taken for a setting. */
function topLevelStrings(text: string): Json {
  const found: Json = {}
  for (const line of text.split('\n')) {
    if (/^\s*\[/.test(line) || line.includes('"""') || line.includes("'''")) break
    const [, key, double, single] = /^\s*([A-Za-z0-9_-]+)\s*=\s*(?:"([^"\\]*)"|'([^']*)')\s*(?:#.*)?$/.exec(line) ?? []
    if (key !== undefined) found[key] = double ?? single
  }
  return found
}

function member(from: Json, path: string): unknown {
  let value: unknown = from
  for (const key of path.split('.')) value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return value
}

const word = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= MAX_VALUE_LENGTH && /^[\x20-\x7e]+$/.test(value) ? value : undefined

const keys = (value: unknown, name: RegExp): string[] | undefined =>
  isRecord(value)
    ? Object.keys(value)
        .filter((key) => name.test(key))
        .slice(0, MAX_NAMES)
    : undefined

function countRules(
  at: (path: string | undefined) => unknown,
  rules: SettingsSource['rules'],
): SettingsHighlights['permissionRules'] {
  if (rules === undefined) return undefined
  if (typeof rules === 'object') {
    const lists = [at(rules.allow), at(rules.ask), at(rules.deny)]
    if (!lists.some(Array.isArray)) return undefined
    const [allow = 0, ask = 0, deny = 0] = lists.map((list) => (Array.isArray(list) ? list.length : 0))
    return { allow, ask, deny }
  }
  const decisions = at(rules)
  if (!isRecord(decisions)) return undefined
  const counts = { allow: 0, ask: 0, deny: 0 }
  // At most one level below the tools: patterns of commands.
  for (const decision of Object.values(decisions))
    for (const leaf of isRecord(decision) ? Object.values(decision) : [decision])
      if (leaf === 'allow' || leaf === 'ask' || leaf === 'deny') counts[leaf] += 1
  return counts
}
