import { type DescriptorLimit, descriptorRemedy } from '../lib/descriptors.js'
import type { PostgresReport } from '../storage/postgres/maintenance.js'
import type { SalvageReport, SqliteReport } from '../storage/sqlite/maintenance.js'
import { shortPath } from './config-problem.js'

/** What was found in a database, for a person. */
export function reportLines(report: SqliteReport): string[] {
  const { problems, refusal, bytes, shrinks, tables, orphans, unswept } = report
  return [
    verdict(report),
    ...(refusal !== undefined && problems.length > 0 ? [`  ${refusal}`] : []),
    ...problems.map((problem) => `  ${problem}`),
    `  size               ${sizeOf(bytes.database)} (${sizeOf(bytes.free)} unused${shrinks === false ? ', NOT GIVEN BACK: a backup put in its place does' : ''}), write-ahead log ${sizeOf(bytes.wal)}`,
    ...Object.entries(tables).map(([name, { rows, bytes }]) => `  ${name.padEnd(19)}${rows} rows, ${sizeOf(bytes)}`),
    orphansLine({ ...orphans, 'events still to be swept': unswept }),
  ]
}

/** What was found of a database of PostgreSQL. */
export function postgresLines(report: PostgresReport): string[] {
  const { place, schema, server, problems, damage, durable, schemaVersion, holders, tables, orphans, unswept } = report
  const state =
    schemaVersion === 0
      ? 'is empty: the first start of a gateway makes its tables'
      : `is sound, schema ${schemaVersion}`
  const users = holders.map(
    ({ name, pid, host, version, startedAt }) =>
      `${name === undefined ? '' : `node ${name}, `}process ${pid} on host ${host}, version ${version}, since ${new Date(startedAt).toISOString()}`,
  )
  return [
    `${postgresVerdict(report)} the schema ${schema} of ${place}${report.ok ? ` ${state}` : ''}${damage.length > 0 ? '; mend these rows, delete them, or restore a backup' : ''}`,
    ...[...problems, ...damage].map((problem) => `  ${problem}`),
    `  server             ${server}${durable ? '' : '; FSYNC IS OFF: what was confirmed may be gone after a crash of its machine'}`,
    `  in use by          ${users.join('\n                     ') || 'nobody'}`,
    ...Object.entries(tables).map(
      ([name, { rows, bytes }]) => `  ${name.padEnd(19)}about ${rows} rows, ${sizeOf(bytes)}`,
    ),
    orphansLine({ ...orphans, 'removed sessions still to be swept': unswept }),
  ]
}

const postgresVerdict = ({ ok, problems }: PostgresReport): string => {
  if (ok) return 'ok:'
  return problems.length > 0 ? 'refused:' : 'damaged:'
}

function orphansLine(found: Record<string, number>): string {
  const some = Object.entries(found).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []))
  return `  orphans            ${some.join(', ') || 'none'}`
}

const MAX_NAMED = 10

/** What was saved from a database and what was not, for a person. */
export function salvageLines({ path, target, ok, tables }: SalvageReport): string[] {
  const [name, copy] = [shortPath(path), shortPath(target)]
  return [
    `${ok ? 'ok' : 'incomplete'}: ${copy} has ${ok ? 'everything that is in' : 'what can be read of'} ${name}, which was left as it was`,
    ...Object.entries(tables).map(
      ([table, salvaged]) => `  ${table.padEnd(19)}${salvaged.rows} rows${missingFrom(table, salvaged)}`,
    ),
    `  to go on with it: stop the gateway, move ${name} aside with its -wal and -shm files, put ${copy} in its place, start the gateway`,
  ]
}

function missingFrom(table: string, { missing, missingRows, unknown }: SalvageReport['tables'][string]): string {
  const named = missing
    .slice(0, MAX_NAMED)
    .map(({ of, rows }) => (table === 'events' ? `${rows} of session ${of}` : of))
  if (missing.length > MAX_NAMED) named.push('…')
  const known = missingRows > 0 ? `, ${missingRows} NOT COPIED: ${named.join(', ')}` : ''
  return known + (unknown ? `, ${known ? 'and possibly more' : 'SOME NOT COPIED: which ones cannot be told'}` : '')
}

function verdict({ path, problems, refusal, schemaVersion }: SqliteReport): string {
  const name = shortPath(path)
  if (problems.length > 0)
    return `damaged: ${name}; stop the gateway, move the file aside with its -wal and -shm files, and put a backup in its place, or what \`doctor --salvage FILE\` can read of it`
  if (refusal !== undefined) return `refused: ${refusal}`
  if (schemaVersion === 0) return `ok: ${name} is empty: the first start of a gateway makes its tables`
  return `ok: ${name} is sound, schema ${schemaVersion}`
}

function sizeOf(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`
}

/** How many descriptors a process may have here, for a person; nothing where that cannot be told. */
export function descriptorLines(limit: DescriptorLimit | undefined): string[] {
  if (!limit) return []
  const remedy = descriptorRemedy(limit)
  return [
    `  descriptors        ${limit.soft} (hard limit ${limit.hard}), as started from here; a service has its own`,
    ...(remedy ? [`  ${' '.repeat(19)}low: ${remedy}`] : []),
  ]
}
