import type { SqliteReport } from '../storage/sqlite/maintenance.js'
import { shortPath } from './config-problem.js'

/** What was found in a database, for a person. */
export function reportLines({
  path,
  ok,
  problems,
  schemaVersion,
  bytes,
  tables,
  orphans,
  unswept,
}: SqliteReport): string[] {
  const version = schemaVersion === undefined ? '' : `, schema ${schemaVersion}`
  const leftovers = Object.entries({ ...orphans, 'events still to be swept': unswept }).filter(([, count]) => count > 0)
  return [
    ok
      ? `ok: ${shortPath(path)} is sound${version}`
      : `damaged: ${shortPath(path)}; stop the gateway, move the file aside with its -wal and -shm files, and put a backup in its place`,
    ...problems.map((problem) => `  ${problem}`),
    `  size               ${sizeOf(bytes.database)} (${sizeOf(bytes.free)} unused), write-ahead log ${sizeOf(bytes.wal)}`,
    ...Object.entries(tables).map(([name, { rows, bytes }]) => `  ${name.padEnd(19)}${rows} rows, ${sizeOf(bytes)}`),
    `  orphans            ${leftovers.map(([what, count]) => `${count} ${what}`).join(', ') || 'none'}`,
  ]
}

function sizeOf(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`
}
