import t from 'tap'
import { ScratchFiles, scratchPath } from '../../../src/engines/provider/files.js'

const files = (limits = {}) => new ScratchFiles(() => 1000, limits)

const KEYS: [path: string, key: string][] = [
  ['report.md', 'report.md'],
  ['a/b/c.txt', 'a/b/c.txt'],
  ['./a.txt', 'a.txt'],
  ['a//b.txt', 'a/b.txt'],
  ['a/./b.txt', 'a/b.txt'],
  ['..hidden', '..hidden'],
  ['a/...', 'a/...'],
  ['日本.txt', '日本.txt'],
  ['e\u0301.txt', '\u00e9.txt'],
  ['a b "c".txt', 'a b "c".txt'],
  ['%2e%2e%2fetc', '%2e%2e%2fetc'],
  ['C:evil', 'C:evil'],
  ['constructor', 'constructor'],
]
for (const [path, key] of KEYS) {
  t.test(`${JSON.stringify(path)} is kept as ${JSON.stringify(key)}`, async (t) => {
    t.equal(scratchPath(path), key)
    const scratch = files()
    scratch.write(scratchPath(path), 'x')
    t.match(scratch.list(), [{ path: key, bytes: 1, modifiedAt: 1000 }])
    t.ok(scratch.read(key))
  })
}

const HOSTILE = [
  '',
  '.',
  './',
  '/',
  '//',
  '..',
  '../',
  '../secret',
  'a/../../secret',
  'a/..',
  'a/../b',
  '/etc/passwd',
  '//etc/passwd',
  'a/',
  'a/b/',
  '..\\secret',
  'a\\b',
  'C:\\windows',
  '\\\\host\\share',
  'a\0.txt',
  'a\nb',
  'a\rb',
  'a\tb',
  'a\u001b[31m',
  'a\u007f',
  'a\u0085b',
  'invoice\u202efdp.exe',
  'a\u2066b',
  'half\ud800',
  '__proto__',
  './__proto__',
  'x'.repeat(513),
  'é'.repeat(257),
]
for (const path of HOSTILE) {
  t.test(`refuses ${JSON.stringify(path.slice(0, 30))}`, async (t) => {
    t.throws(() => scratchPath(path), { name: 'ScratchError' })
  })
}

t.test('reads by exact key only', async (t) => {
  const scratch = files()
  scratch.write('a/b.txt', 'x')
  for (const path of ['./a/b.txt', 'a//b.txt', '/a/b.txt', 'A/b.txt', 'a', 'a/', 'toString', '__proto__', '']) {
    t.equal(scratch.read(path), undefined, path)
  }
})

t.test('counts bytes, not characters, and lists by path', async (t) => {
  const scratch = files()
  scratch.write('b', 'äöü€')
  scratch.write('a', new Uint8Array([0, 255]))
  t.match(scratch.list(), [
    { path: 'a', bytes: 2 },
    { path: 'b', bytes: 9 },
  ])
  scratch.write('b', '')
  t.match(scratch.list()[1], { path: 'b', bytes: 0 })
})

t.test('keeps its quotas, also when a file is replaced', async (t) => {
  const scratch = files({ maxFiles: 2, maxBytes: 10 })
  scratch.write('a', '12345')
  t.equal(scratch.roomFor('a'), 10)
  t.equal(scratch.roomFor('b'), 5)
  t.throws(() => scratch.write('b', '123456'), /10 bytes together/)
  scratch.write('a', '1')
  scratch.write('b', '123456789')
  t.throws(() => scratch.write('a', '12'), /10 bytes together/)
  t.throws(() => scratch.write('c', ''), /2 files only/)
  t.match(scratch.list(), [
    { path: 'a', bytes: 1 },
    { path: 'b', bytes: 9 },
  ])
})

t.test('a name is a file or a folder, not both', async (t) => {
  const scratch = files()
  scratch.write('a/b', 'x')
  scratch.write('ab', 'x')
  t.throws(() => scratch.write('a', 'x'), /a is a folder/)
  t.throws(() => scratch.write('a/b/c', 'x'), /a\/b is a file/)
})

t.test('what is saved comes back byte for byte', async (t) => {
  const scratch = files()
  scratch.write('text', 'ä')
  scratch.write('bytes', new Uint8Array([0, 1, 254, 255]))
  const { files: saved, modifiedAt } = JSON.parse(JSON.stringify(scratch.save())) as ReturnType<ScratchFiles['save']>
  const again = new ScratchFiles(() => 2000, { maxBytes: 7 })
  again.restore(saved, modifiedAt)
  t.same(again.list(), scratch.list())
  t.same(again.read('bytes'), Buffer.from([0, 1, 254, 255]))
  t.equal(again.roomFor('new'), 1)
})
