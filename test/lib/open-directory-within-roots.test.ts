import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readlinkSync, realpathSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDirectoryWithinRoots, resolveRoots } from '../../src/lib/paths-within-roots.js'

const skip = process.platform !== 'linux' && 'holds a directory on Linux only'

function world(t: Test) {
  const base = realpathSync(t.testdir({ r: { a: { sub: {} }, b: {}, file: '' }, out: { a: { sub: {} }, sub: {} } }))
  const at = (...names: string[]) => join(base, ...names)
  return { at, roots: resolveRoots([at('r')]) }
}

/** Where a child finds itself. */
const childIn = (cwd: string): string => execFileSync('/bin/pwd', ['-P'], { cwd, encoding: 'utf8' }).trimEnd()
const openFiles = () => readdirSync('/proc/self/fd').length
const outside = { ok: false, reason: 'outside' }

t.test('a child starts in the directory that was opened', { skip }, async (t) => {
  const { at, roots } = world(t)
  const held = await openDirectoryWithinRoots(at('r', 'a'), roots)
  if (!held.ok) throw new Error(held.reason)
  t.match(held.path, /^\/proc\/self\/fd\/\d+$/)
  t.equal(childIn(held.path), at('r', 'a'))

  renameSync(at('r', 'a'), at('r', 'moved'))
  symlinkSync(at('out'), at('r', 'a'))
  t.equal(childIn(at('r', 'a')), at('out'), 'by its name, it would be lured out')
  t.equal(childIn(held.path), at('r', 'moved'))
  const { path } = held
  await held.close()
  t.throws(() => readlinkSync(path), { code: 'ENOENT' }, 'close gives the descriptor back')
})

t.test('what is no longer as it was resolved is refused, and nothing stays open', { skip }, async (t) => {
  const { at, roots } = world(t)
  const before = openFiles()
  const open = (...names: string[]) => openDirectoryWithinRoots(at('r', ...names), roots)

  t.strictSame(await open('nope'), { ok: false, reason: 'missing' }, 'removed')
  t.strictSame(await open('file'), { ok: false, reason: 'not-a-directory' }, 'became a file')

  symlinkSync('b', at('r', 'link-in'))
  t.strictSame(await open('link-in'), { ok: false, reason: 'missing' }, 'became a link, even to inside')
  symlinkSync('../out', at('r', 'link-out'))
  t.strictSame(await open('link-out'), outside, 'became a link out')
  t.strictSame(await open('link-out', 'sub'), outside, 'its parent became a link out')
  t.strictSame(await open('link-out', 'nope'), outside, 'the same, with nothing there')
  t.strictSame(await openDirectoryWithinRoots(at('out'), roots), outside, 'was never inside')
  t.strictSame(await openDirectoryWithinRoots('a', roots), { ok: false, reason: 'invalid' })
  t.strictSame(await openDirectoryWithinRoots(`${at('r')}\0`, roots), { ok: false, reason: 'invalid' })
  t.equal(openFiles(), before)
})

t.test('without roots any directory can be held', { skip }, async (t) => {
  const { at } = world(t)
  const held = await openDirectoryWithinRoots(at('out'), undefined)
  if (!held.ok) throw new Error(held.reason)
  t.equal(childIn(held.path), at('out'))
  await held.close()
  rmSync(at('out'), { recursive: true })
  t.strictSame(await openDirectoryWithinRoots(at('out'), undefined), { ok: false, reason: 'missing' })
})

t.test('a directory that is exchanged all the time is never held outside', { skip }, async (t) => {
  const { at, roots } = world(t)
  mkdirSync(at('r', 'w'))
  renameSync(at('r', 'a'), at('r', 'w', 'a'))
  symlinkSync(at('out'), at('link'))
  const swap = `
    const { renameSync } = require('node:fs')
    const [place, kept, link] = process.argv.slice(1)
    const parent = process.ppid
    while (process.ppid === parent) {
      renameSync(place, kept); renameSync(link, place)
      renameSync(place, link); renameSync(kept, place)
    }`
  const swapper = spawn(process.execPath, ['-e', swap, at('r', 'w'), at('r', 'kept'), at('link')], { stdio: 'ignore' })

  const seen = { held: 0, refused: 0 }
  const lured: string[] = []
  try {
    while (seen.held < 200 || seen.refused < 200) {
      // Both through the exchanged directory and as the exchanged directory itself.
      const path = (seen.held + seen.refused) % 2 ? at('r', 'w') : at('r', 'w', 'a')
      const held = await openDirectoryWithinRoots(path, roots)
      seen[held.ok ? 'held' : 'refused']++
      if (!held.ok) continue
      const place = readlinkSync(held.path)
      if (!roots.contains(place)) lured.push(place)
      await held.close()
    }
  } finally {
    swapper.kill('SIGKILL')
    await once(swapper, 'exit')
  }
  t.strictSame(lured, [])
})
