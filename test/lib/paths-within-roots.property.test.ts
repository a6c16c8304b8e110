import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { type PathRoots, resolveRoots, resolveWithinRoots } from '../../src/lib/paths-within-roots.js'

const parent = realpathSync(t.testdir({}))
interface Entry {
  place: [side: 'root' | 'out', names: string[]]
  kind: 'directory' | 'file' | { absolute: boolean; steps: string }
}

const name = fc.constantFrom('a', 'b', 'c')
const step = fc.oneof({ weight: 4, arbitrary: name }, fc.constantFrom('..', '..', '.', '', 'root', 'out'))
const steps = fc.array(step, { maxLength: 7 }).map((names) => names.join('/'))
const target = fc.record({ absolute: fc.boolean(), steps })
const entry: fc.Arbitrary<Entry> = fc.record({
  place: fc.tuple(fc.constantFrom('root' as const, 'out' as const), fc.array(name, { minLength: 1, maxLength: 3 })),
  kind: fc.oneof(fc.constantFrom('directory' as const, 'file' as const), target, target),
})
const tree = fc.array(entry, { maxLength: 14 })

function grow(entries: Entry[]): string {
  const base = mkdtempSync(join(parent, 'tree-'))
  for (const side of ['root', 'out']) mkdirSync(join(base, side))
  for (const { place, kind } of entries) {
    const path = join(base, place[0], ...place[1])
    try {
      mkdirSync(dirname(path), { recursive: true })
      if (kind === 'directory') mkdirSync(path)
      else if (kind === 'file') writeFileSync(path, '')
      else symlinkSync(kind.absolute ? `${base}/${kind.steps}` : kind.steps || '.', path)
    } catch {
      // The place is taken, or leads through a file or a loop.
    }
  }
  return base
}

/** What is there, as the kernel has it: the synchronous JavaScript `realpathSync` resolves `..` before links. */
function truth(path: string, root: string): string {
  try {
    const real = realpathSync.native(path)
    if (real !== root && !real.startsWith(`${root}/`)) return 'outside'
    return statSync(real).isDirectory() ? real : 'not-a-directory'
  } catch {
    return 'refused'
  }
}

const answer = async (path: string, roots: PathRoots) => {
  const result = await resolveWithinRoots(path, roots)
  return result.ok ? result.path : result.reason
}

t.test('the answer is what the kernel says', async (t) => {
  const seen = new Map<string, number>()
  const paths = fc.array(steps, { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(tree, paths, async (entries, paths) => {
      const base = grow(entries)
      const root = join(base, 'root')
      const roots = resolveRoots([root])
      for (const path of paths.flatMap((path) => [`${base}/${path}`, `${root}/${path}`])) {
        const expected = truth(path, root)
        const given = await answer(path, roots)
        const agrees =
          expected === 'refused'
            ? !given.startsWith('/')
            : // Of a file, realpath does not say that the way to it leaves the root, and nobody else shall.
              given === expected || (expected === 'not-a-directory' && given === 'outside')
        if (!agrees) throw new Error(`${path}: ${given} instead of ${expected}`)
        const kind = given.startsWith('/') ? 'ok' : given
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
      }
      rmSync(base, { recursive: true })
    }),
    { numRuns: 150 },
  )
  t.strictSame([...seen.keys()].sort(), ['missing', 'not-a-directory', 'ok', 'outside'], 'every answer was given')
})

t.test('a refusal does not depend on what exists outside', async () => {
  const paths = fc.array(steps, { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(tree, paths, async (entries, paths) => {
      const base = grow(entries)
      const root = join(base, 'root')
      const roots = resolveRoots([root])
      const sent = paths.map((path) => `${root}/${path}`)
      const before = await Promise.all(sent.map((path) => answer(path, roots)))
      rmSync(join(base, 'out'), { recursive: true })
      const after = await Promise.all(sent.map((path) => answer(path, roots)))
      for (const [index, given] of before.entries()) {
        if (!given.startsWith('/') && given !== after[index])
          throw new Error(`${sent[index]}: ${given}, and ${after[index]} when nothing is outside`)
      }
      rmSync(base, { recursive: true })
    }),
    { numRuns: 150 },
  )
})
