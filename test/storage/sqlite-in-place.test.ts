import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { InPlace } from '../../src/storage/sqlite/in-place.js'

const FILES = ['gateway.db', 'gateway.db-wal', 'gateway.db-shm', 'gateway.db.lock']

/** Files of a database whose directory was changed long ago. */
function settled(t: Test) {
  const dir = t.testdir(Object.fromEntries(FILES.map((name) => [name, 'x'])))
  const inPlace = new InPlace(join(dir, 'gateway.db'), () => Date.now() + 60_000)
  t.teardown(() => inPlace.close())
  t.equal(inPlace.problem(), undefined)
  return { dir, inPlace }
}

/** What is told of whatever is looked at from now on, and which files that are. */
function looked(t: Test, told = (stats: fs.Stats) => stats): string[] {
  const names: string[] = []
  const { statSync } = fs
  const replace = (by: unknown) => {
    Object.assign(fs, { statSync: by })
    syncBuiltinESMExports()
  }
  t.teardown(() => replace(statSync))
  replace((path: string, options: fs.StatSyncOptions) => {
    names.push(path)
    const stats = statSync(path, options) as fs.Stats | undefined
    return stats && told(stats)
  })
  return names
}

t.test('while its directory stays as it is, the log is not looked at: that costs the next sync a second flush', (t) => {
  const { dir, inPlace } = settled(t)
  const names = looked(t)
  for (let turn = 0; turn < 3; turn++) t.equal(inPlace.problem(), undefined)
  t.same(new Set(names), new Set([dir, join(dir, 'gateway.db')]))
  t.end()
})

t.test('a directory that was changed a moment ago may be changed again in the same tick of its clock', (t) => {
  const dir = t.testdir(Object.fromEntries(FILES.map((name) => [name, 'x'])))
  const inPlace = new InPlace(join(dir, 'gateway.db'), () => fs.statSync(dir).ctimeMs)
  t.teardown(() => inPlace.close())
  t.equal(inPlace.problem(), undefined)
  const names = looked(t)
  t.equal(inPlace.problem(), undefined)
  for (const name of FILES) t.ok(names.includes(join(dir, name)), name)
  t.end()
})

for (const name of FILES)
  t.test(`${name}: moved out of a directory that nobody had changed for long, it is missed at once`, (t) => {
    const { dir, inPlace } = settled(t)
    const path = join(dir, name)
    fs.renameSync(path, `${path}.aside`)
    const isLock = name.endsWith('.lock')
    t.match(inPlace.problem(), { code: isLock ? 'STORAGE_FENCED' : 'STORAGE_MOVED', message: RegExp(`^${path} was`) })
    fs.renameSync(`${path}.aside`, path)
    t.match(inPlace.problem(), isLock ? { code: 'STORAGE_FENCED' } : undefined, 'and is back')
    t.end()
  })

t.test('a file system that says when a file was removed as the time of writing alone, as exFAT, hides nothing', (t) => {
  looked(t, (stats) => Object.assign(stats, { ctimeMs: 0n, ctimeNs: 0n }))
  const { dir, inPlace } = settled(t)
  fs.rmSync(join(dir, 'gateway.db-wal'))
  t.match(inPlace.problem(), { code: 'STORAGE_MOVED' })
  t.end()
})

t.test('emptied, it is noticed although its directory is as it was', (t) => {
  const { dir, inPlace } = settled(t)
  fs.truncateSync(join(dir, 'gateway.db'))
  t.match(inPlace.problem(), { code: 'STORAGE_MOVED', message: /was emptied/ })
  t.end()
})
