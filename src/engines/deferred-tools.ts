import { ASK_USER_QUESTION } from '../../schemas/permissions.js'
import { optionError } from '../errors.js'
import { isRecord } from '../lib/json-value.js'
import type { DeferredTool } from './runner.js'

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/

/** What agents and model providers read of the schema of an input before they look at anything else. */
const SCHEMA_FORMS: readonly [member: string, isTaken: (value: unknown) => boolean, form: string][] = [
  ['type', (value) => value === 'object', '"object": a tool is given its input by name'],
  [
    'properties',
    (value) => isRecord(value) && Object.values(value).every(isRecord),
    'an object that has a schema for each name',
  ],
  ['required', (value) => Array.isArray(value) && value.every((name) => typeof name === 'string'), 'a list of names'],
]

/** Names of tools that sessions of the bundled provider engine have anyway. */
const BUNDLED_NAMES = [
  ASK_USER_QUESTION,
  ...['fs_list', 'fs_read', 'fs_write', 'deliver_file', 'download', 'web_fetch', 'web_search'],
]

/**
 * Checks deferred tools: their names, which models are told and which must not hide another tool, and the schemas of their inputs as far
 * as one that is none would cost every session all of its tools.
 * @param option where they were declared
 * @throws SG_ERR_OPTION
 */
export function assertDeferredTools(
  tools: readonly Pick<DeferredTool, 'name' | 'inputSchema'>[],
  option: string,
): void {
  const taken = new Set(BUNDLED_NAMES)
  for (const [index, { name, inputSchema }] of tools.entries()) {
    if (!TOOL_NAME.test(name)) throw optionError(option, `${name} must match ${TOOL_NAME.source}`)
    if (taken.has(name)) throw optionError(option, `the name ${name} is taken`)
    taken.add(name)
    for (const [member, isTaken, form] of SCHEMA_FORMS) {
      const given = inputSchema?.[member]
      if (given !== undefined && !isTaken(given))
        throw optionError(`${option}.${index}.inputSchema.${member}`, `must be ${form}`)
    }
  }
}
