import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import ts from 'typescript'
import { createSqliteStorage, type SqliteInternals, type SqliteStorage } from '../../src/storage/sqlite/storage.js'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

/** Code for a thread or a process as JavaScript: through the loader that runs the tests, each start would take a second. */
export function compiled(entry: string): URL {
  mkdirSync(join(root, '.tap'), { recursive: true })
  const out = mkdtempSync(join(root, '.tap', 'thread-'))
  process.on('exit', () => rmSync(out, { recursive: true, force: true }))
  const seen = new Set<string>()
  const compile = (file: string): void => {
    if (seen.has(file)) return
    seen.add(file)
    const { outputText } = ts.transpileModule(readFileSync(join(root, file), 'utf8'), {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true },
    })
    const target = join(out, file.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, outputText)
    for (const { fileName } of ts.preProcessFile(outputText).importedFiles)
      if (fileName.startsWith('.')) compile(posix.join(posix.dirname(file), fileName).replace(/\.js$/, '.ts'))
  }
  compile(entry)
  writeFileSync(join(out, 'package.json'), '{"type":"module"}')
  return pathToFileURL(join(out, entry.replace(/\.ts$/, '.js')))
}

let worker: URL | undefined
export const workerFile = (): URL => {
  worker ??= compiled('src/storage/sqlite/worker.ts')
  return worker
}

export interface SqliteWorld {
  path: string
  /** The one that is open now. */
  storage: SqliteStorage
  /** As a new process would see it. */
  reopen(): Promise<SqliteStorage>
}

/** A storage that is not open; it is closed at the end of the test. */
export function sqliteAt(
  t: Test,
  path: string,
  now = Date.now,
  pragmas: SqliteInternals['pragmas'] = [],
): SqliteStorage {
  const storage = createSqliteStorage({ path, now }, { worker: workerFile(), pragmas })
  t.teardown(() => storage.close())
  return storage
}

/** An open storage on a new database. */
export async function sqliteWorld(
  t: Test,
  { now = Date.now, pragmas }: { now?: () => number; pragmas?: readonly string[] } = {},
): Promise<SqliteWorld> {
  const path = join(t.testdir(), 'state', 'gateway.db')
  const storage = sqliteAt(t, path, now, pragmas)
  await storage.open()
  const world: SqliteWorld = {
    path,
    storage,
    async reopen() {
      await world.storage.close()
      world.storage = sqliteAt(t, path, now, pragmas)
      await world.storage.open()
      return world.storage
    },
  }
  return world
}
