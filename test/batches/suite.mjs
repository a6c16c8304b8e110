/**
 * What `npm test` runs: the files of the folders below together, a process for each group, and every other file in a process of its
 * own. Prints that list when it is run.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'

export const ROOT = new URL('../../', import.meta.url)

/** Of `test/`. */
const GROUPS = {
  'browsers-1': ['console'],
  'browsers-2': ['console'],
  edge: ['', 'plugins', 'profiles', 'daemon'],
  rules: [
    'lib',
    'sessions',
    'executions',
    'notifications',
    'notifications/answers',
    'notifications/channels',
    'webhooks',
    'jobs',
    'usage',
  ],
  engines: ['engines', 'engines/cli', 'engines/provider', 'idempotency'],
  stores: ['storage'],
  clients: ['client', 'console', 'documents'],
  nodes: ['cluster'],
}
/** Has processes, or as many rounds as chance asks for. */
const APART = /crash|restarts|races|property|conformance|egress/
/** In two groups alone, each of which has one browser. */
const WITH_BROWSER = /fixtures\/(console|console-browser|cross-origin-page)\.js'/
/** What needs the binaries of agents or a registry. */
const ELSEWHERE = ['agents', 'package']

const read = (file) => readFileSync(new URL(file, ROOT), 'utf8')
const isOf = (group, file) => !APART.test(file) && WITH_BROWSER.test(read(file)) === group.startsWith('browsers')

const files = readdirSync(new URL('test/', ROOT), { recursive: true })
  .filter((name) => name.endsWith('.test.ts') && !ELSEWHERE.includes(name.split('/')[0]))
  .map((name) => `test/${name}`)
  .sort()

/** The files of a group, by their paths from the root. */
export function filesOf(group) {
  const folders = GROUPS[group].map((folder) => posix.join('test', folder))
  const found = folders.flatMap((folder) => files.filter((file) => posix.dirname(file) === folder && isOf(group, file)))
  const half = /-(\d)$/.exec(group)?.[1]
  return half === undefined ? found : found.filter((_file, n) => n % 2 === half - 1)
}

/** The runner takes them by their names: the folder of the groups comes first, so that the last one to end is a small file. */
export function suite() {
  const groups = Object.keys(GROUPS)
  const together = new Set(groups.flatMap(filesOf))
  return [...groups.map((group) => `test/batches/${group}.mjs`), ...files.filter((file) => !together.has(file))]
}

if (import.meta.url === `file://${process.argv[1]}`) console.log(suite().join('\n'))
