import { chmodSync, mkdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import t, { type Test } from 'tap'
import { resolveRoots, resolveWithinRoots } from '../../src/lib/paths-within-roots.js'

const realTestdir = (t: Test, content = {}): string => realpathSync(t.testdir(content))

/** Two trees side by side: `r`, which is the root, and `out`, which is not. */
function hostileTree(t: Test): string {
  const base = realTestdir(t, {
    r: { a: { b: {} }, file: '', '..dots': {}, '...': {}, '~': {}, '%2e%2e': {}, 'sp ace': {}, Cased: {}, aliased: {} },
    'r-sibling': {},
    rr: {},
    out: { secret: {}, file: '', private: {}, deep: { er: {} } },
  })
  const inRoot = (...names: string[]) => join(base, 'r', ...names)
  for (const name of ['new\nline', 'back\\slash', 'caf\u00e9', 'full\uff0fwidth', ' ', '\u202edlrow', '-rf'])
    mkdirSync(inRoot(name))
  const links: Record<string, string> = {
    'r/in': 'a',
    'r/in-absolute': inRoot('a', 'b'),
    'r/to-root': '.',
    'r/up': '..',
    'r/out': '../out',
    'r/out-absolute': join(base, 'out', 'secret'),
    'r/to-file': 'file',
    'r/to-sibling': '../r-sibling',
    'r/loop': 'loop',
    'r/loop-1': 'loop-2',
    'r/loop-2': 'loop-1',
    'r/loop-out': '../out/loop-in',
    'r/dangling': 'nope',
    'r/dangling-deep': 'a/nope/../b',
    'r/dangling-absolute': inRoot('nope'),
    'r/dangling-out': '../out/nope',
    'r/dangling-out-absolute': join(base, 'nowhere'),
    'r/dangling-leaves': 'nope/../../r/a',
    'r/by-alias': join(base, 'alias', 'nope'),
    'r/by-out': '../out/to-root/nope',
    'r/proc-root': '/proc/self/root',
    'out/to-root': '../r',
    'out/loop-in': '../r/loop-out',
    'out/dangling': 'nope',
    alias: 'r',
  }
  for (const [from, to] of Object.entries(links)) symlinkSync(to, join(base, from))
  for (let link = 0; link <= 41; link++) symlinkSync(link === 0 ? 'a' : `chain-${link - 1}`, inRoot(`chain-${link}`))
  return base
}

t.test('hostile paths', async (t) => {
  const base = hostileTree(t)
  const r = join(base, 'r')
  const out = join(base, 'out')
  const roots = resolveRoots([r])
  const up = '/..'.repeat(40)

  // [what it is, what is sent, the path below the root it resolves to (`=` and its name) or why it is refused]
  const table: [string, unknown, string][] = [
    ['the root', r, '='],
    ['a directory', `${r}/a`, '=a'],
    ['one below', `${r}/a/b`, '=a/b'],
    ['a trailing slash', `${r}/a/`, '=a'],
    ['several trailing slashes', `${r}/a///`, '=a'],
    ['a trailing dot', `${r}/a/.`, '=a'],
    ['slashes doubled', `${r}//a//b`, '=a/b'],
    ['slashes doubled in front', `/${r}/a`, '=a'],
    ['dots between', `${r}/./a/./b`, '=a/b'],
    ['.. that stays inside', `${r}/a/b/../b`, '=a/b'],
    ['.. up to the root', `${r}/a/..`, '='],
    ['.. out and in again', `${r}/../r/a`, '=a'],
    ['.. above / and in again', `${up}${r}/a`, '=a'],
    ['the prefix sibling by way of the root', `${r}/../rr`, 'outside'],
    ['..', `${r}/..`, 'outside'],
    ['.. with a slash', `${r}/../`, 'outside'],
    ['.. from below', `${r}/a/../..`, 'outside'],
    ['.. to another directory', `${r}/../out`, 'outside'],
    ['.. to a file', `${r}/../out/file`, 'outside'],
    ['.. to nothing', `${r}/../nope`, 'outside'],
    ['.. to /etc', `${r}${up}/etc`, 'outside'],
    ['.. to /etc/passwd', `${r}${up}/etc/passwd`, 'outside'],
    ['.. behind what does not exist, inside', `${r}/nope/../a`, 'missing'],
    ['.. behind what does not exist, leaving', `${r}/nope/../../out/secret`, 'outside'],
    ['.. behind what does not exist, leaving and coming back', `${r}/nope/../../r/a`, 'outside'],
    ['.. behind a file, inside', `${r}/file/../a`, 'not-a-directory'],
    ['.. behind a file, leaving', `${r}/file/../../out/secret`, 'outside'],
    ['.. behind a link, which leaves where the link leads', `${r}/out/..`, 'outside'],
    ['.. behind a link, which stays where the link leads', `${r}/in-absolute/..`, '=a'],
    ['three dots', `${r}/...`, '=...'],
    ['a name that begins with two dots', `${r}/..dots`, '=..dots'],
    ['the prefix sibling', `${base}/rr`, 'outside'],
    ['the other prefix sibling', `${r}-sibling`, 'outside'],
    ['a prefix sibling that does not exist', `${r}x`, 'outside'],
    ['what is above', base, 'outside'],
    ['/', '/', 'outside'],
    ['//', '//', 'outside'],
    ['another directory', `${out}/secret`, 'outside'],
    ['a file elsewhere', `${out}/file`, 'outside'],
    ['below a file elsewhere', `${out}/file/sub`, 'outside'],
    ['nothing elsewhere', `${out}/nope`, 'outside'],
    ['a dangling link elsewhere', `${out}/dangling`, 'outside'],
    ['nothing in /', '/nope-nope-nope', 'outside'],
    ['nothing elsewhere, then back', `${out}/nope/../../r/a`, 'outside'],
    ['another name of the root', `${base}/alias`, '='],
    ['below another name of the root', `${base}/alias/a`, '=a'],
    ['nothing below another name of the root', `${base}/alias/nope`, 'missing'],
    ['a link elsewhere that leads in', `${out}/to-root/a`, '=a'],
    ['a link', `${r}/in`, '=a'],
    ['below a link', `${r}/in/b`, '=a/b'],
    ['an absolute link', `${r}/in-absolute`, '=a/b'],
    ['a link to the root', `${r}/to-root/to-root/a`, '=a'],
    ['a link upwards', `${r}/up`, 'outside'],
    ['a link upwards and in again', `${r}/up/r/a`, '=a'],
    ['a link out', `${r}/out`, 'outside'],
    ['a link out, with a slash', `${r}/out/`, 'outside'],
    ['a directory behind a link out', `${r}/out/secret`, 'outside'],
    ['a file behind a link out', `${r}/out/file`, 'outside'],
    ['below a file behind a link out', `${r}/out/file/sub`, 'outside'],
    ['nothing behind a link out', `${r}/out/nope`, 'outside'],
    ['nothing behind a link out, then back', `${r}/out/nope/../../r/nope`, 'outside'],
    ['a directory behind a link out, then back to nothing', `${r}/out/secret/../../r/nope`, 'outside'],
    ['an absolute link out', `${r}/out-absolute`, 'outside'],
    ['a link to the prefix sibling', `${r}/to-sibling`, 'outside'],
    ['a link to a file', `${r}/to-file`, 'not-a-directory'],
    ['a link to itself', `${r}/loop`, 'missing'],
    ['below a link to itself', `${r}/loop/a`, 'missing'],
    ['out of a link to itself', `${r}/loop/../../out`, 'outside'],
    ['two links in a circle', `${r}/loop-1`, 'missing'],
    ['a circle through what is outside', `${r}/loop-out`, 'outside'],
    ['the same from outside', `${out}/loop-in`, 'outside'],
    ['40 links', `${r}/chain-39`, '=a'],
    ['41 links', `${r}/chain-40`, 'missing'],
    ['a dangling link', `${r}/dangling`, 'missing'],
    ['a dangling link that goes on', `${r}/dangling-deep`, 'missing'],
    ['an absolute dangling link', `${r}/dangling-absolute`, 'missing'],
    ['a link dangling outside', `${r}/dangling-out`, 'outside'],
    ['an absolute link dangling outside', `${r}/dangling-out-absolute`, 'outside'],
    ['a dangling link that leaves and comes back', `${r}/dangling-leaves`, 'outside'],
    ['a link to nothing below another name of the root', `${r}/by-alias`, 'missing'],
    ['a link to nothing by way of outside', `${r}/by-out`, 'outside'],
    ['/proc/self/root', '/proc/self/root', 'outside'],
    ['/proc/self/root and in', `/proc/self/root${r}/a`, '=a'],
    ['/proc/self/root and out', `/proc/self/root${out}/secret`, 'outside'],
    ['/proc/self/root and nothing', `/proc/self/root${out}/nope`, 'outside'],
    ['a link to /proc/self/root, and out', `${r}/proc-root${out}/secret`, 'outside'],
    ['/proc/self/cwd', '/proc/self/cwd', 'outside'],
    ['/proc/1/root', '/proc/1/root', 'outside'],
    ['/dev/stdin', '/dev/stdin', 'outside'],
    ['nothing', `${r}/nope`, 'missing'],
    ['nothing, with a slash', `${r}/nope/`, 'missing'],
    ['below nothing', `${r}/nope/nope`, 'missing'],
    ['a file', `${r}/file`, 'not-a-directory'],
    ['a file, with a slash', `${r}/file/`, 'not-a-directory'],
    ['a file, with a dot', `${r}/file/.`, 'not-a-directory'],
    ['below a file', `${r}/file/sub`, 'not-a-directory'],
    ['another case', `${r}/cased`, 'missing'],
    ['another case of the root', `${base}/R/a`, 'outside'],
    ['NFC, as it is on the disk', `${r}/caf\u00e9`, '=caf\u00e9'],
    ['NFD of the same', `${r}/cafe\u0301`, 'missing'],
    ['a slash of full width, in a name', `${r}/full\uff0fwidth`, '=full\uff0fwidth'],
    ['slashes of full width', `${r}\uff0f..\uff0fout`, 'outside'],
    ['division slashes', `${r}/a\u2215..\u2215..\u2215..\u2215out`, 'missing'],
    ['dots of full width', `${r}/\uff0e\uff0e/out`, 'missing'],
    ['two dots in one character', `${r}/\u2025/out`, 'missing'],
    ['a backslash, in a name', `${r}/back\\slash`, '=back\\slash'],
    ['backslashes', `${r}\\..\\out`, 'outside'],
    ['backslashes inside', `${r}/a\\..\\..\\out`, 'missing'],
    ['%2e%2e, a name', `${r}/%2e%2e`, '=%2e%2e'],
    ['%2e%2e%2f', `${r}/%2e%2e%2fout`, 'missing'],
    ['%00', `${r}/a%00`, 'missing'],
    ['a line feed, in a name', `${r}/new\nline`, '=new\nline'],
    ['a line feed behind', `${r}/a\n`, 'missing'],
    ['a carriage return behind', `${r}/a\r`, 'missing'],
    ['a space, in a name', `${r}/sp ace`, '=sp ace'],
    ['a space as a name', `${r}/ `, '= '],
    ['a space behind', `${r}/a `, 'missing'],
    ['a zero-width space behind', `${r}/a\u200b`, 'missing'],
    ['right to left', `${r}/\u202edlrow`, '=\u202edlrow'],
    ['a name like an option', `${r}/-rf`, '=-rf'],
    ['~ as a name', `${r}/~`, '=~'],
    ['a lone surrogate', `${r}/\ud800`, 'missing'],
    ['a name of 255 characters', `${r}/${'n'.repeat(255)}`, 'missing'],
    ['a name of 256 characters', `${r}/${'n'.repeat(256)}`, 'missing'],
    ['a name of 256 characters elsewhere', `${out}/${'n'.repeat(256)}`, 'outside'],
    ['4,096 bytes of a directory', `${r}/a`.padEnd(4096, '/'), '=a'],
    ['4,097 bytes of a directory', `${r}/a`.padEnd(4097, '/'), 'invalid'],
    ['4,096 bytes of nothing', `${r}/${'n/'.repeat(4096)}`.slice(0, 4096), 'missing'],
    ['5,000 characters', `${r}/${'n'.repeat(5000)}`, 'invalid'],
    ['2,000 characters of 6,000 bytes', `${r}/${'\u6f22'.repeat(2000)}`, 'invalid'],
    ['NUL behind', `${r}/a\0`, 'invalid'],
    ['NUL between', `${r}/a\0/../../out`, 'invalid'],
    ['NUL alone', '\0', 'invalid'],
    ['empty', '', 'invalid'],
    ['a space alone', ' ', 'invalid'],
    ['a space in front', ` ${r}`, 'invalid'],
    ['a line feed in front', `\n${r}`, 'invalid'],
    ['relative', 'a', 'invalid'],
    ['relative from here', './a', 'invalid'],
    ['.', '.', 'invalid'],
    ['relative ..', '..', 'invalid'],
    ['relative to the root, from the working directory', relative(process.cwd(), r), 'invalid'],
    ['~', '~', 'invalid'],
    ['~/', '~/a', 'invalid'],
    ['~root', '~root', 'invalid'],
    ['$HOME', '$HOME', 'invalid'],
    ['a file URL', `file://${r}`, 'invalid'],
    ['a drive', 'C:\\Windows', 'invalid'],
    ['a network share', '\\\\server\\share', 'invalid'],
    ['a backslash in front', `\\${r}`, 'invalid'],
    ['undefined', undefined, 'invalid'],
    ['null', null, 'invalid'],
    ['a number', 1, 'invalid'],
    ['an array', [`${r}/a`], 'invalid'],
    ['an object that reads like a string', { toString: () => `${r}/a` }, 'invalid'],
  ]
  for (const [name, sent, expected] of table) {
    const result = await resolveWithinRoots(sent, roots)
    const wanted = expected.startsWith('=')
      ? { ok: true, path: join(r, expected.slice(1)) }
      : { ok: false, reason: expected }
    t.strictSame(result, wanted, name)
  }
})

t.test('a directory whose path is as long as the kernel takes', async (t) => {
  const root = realTestdir(t)
  const home = process.cwd()
  t.teardown(() => process.chdir(home))
  // The path of the last directory is too long for one mkdir.
  const names: string[] = []
  for (let length = Buffer.byteLength(root); length < 4095; ) {
    const name = 'n'.repeat(Math.min(200, 4095 - length - 1 || 1))
    names.push(name)
    length += name.length + 1
  }
  const path = [root, ...names].join('/')
  process.chdir(root)
  for (const name of names) {
    mkdirSync(name)
    process.chdir(name)
  }
  process.chdir(home)
  t.equal(Buffer.byteLength(path), 4095)
  t.strictSame(await resolveWithinRoots(path, resolveRoots([root])), { ok: true, path })
})

t.test('a directory that may not be read', async (t) => {
  const skip = process.getuid?.() === 0 && 'root may read everything'
  t.test('its content is missing inside a root, and outside elsewhere', { skip }, async (t) => {
    const base = realTestdir(t, { r: { locked: { a: {} } }, out: { locked: { a: {} } } })
    const locked = [join(base, 'r', 'locked'), join(base, 'out', 'locked')]
    for (const path of locked) chmodSync(path, 0)
    t.teardown(() => {
      for (const path of locked) chmodSync(path, 0o700)
    })
    const roots = resolveRoots([join(base, 'r')])
    for (const name of ['a', 'nope', '..', '../..'])
      t.strictSame(
        await resolveWithinRoots(`${base}/out/locked/${name}`, roots),
        { ok: false, reason: 'outside' },
        name,
      )
    t.strictSame(await resolveWithinRoots(`${base}/r/locked/a`, roots), { ok: false, reason: 'missing' })
    t.strictSame(await resolveWithinRoots(`${base}/r/locked/nope/../../../out`, roots), {
      ok: false,
      reason: 'outside',
    })
  })
})

t.test(
  'a name that is no UTF-8 is not taken for the one it decodes to',
  { skip: process.platform !== 'linux' },
  async (t) => {
    const base = realTestdir(t, { r: {} })
    const bytes = (...parts: (string | number)[]) =>
      Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from([part]))))
    mkdirSync(bytes(`${base}/r/`, 0xff))
    symlinkSync(bytes(0xff), join(base, 'r', 'link'))
    mkdirSync(join(base, 'r', '\ufffd'))
    const roots = resolveRoots([join(base, 'r')])
    t.strictSame(await resolveWithinRoots(join(base, 'r', 'link'), roots), { ok: false, reason: 'missing' })
    t.throws(() => resolveRoots([join(base, 'r', 'link')]), { message: /"[^"]*link" has a name that is not UTF-8/ })
  },
)

t.test('roots', async (t) => {
  const base = realTestdir(t, { a: { in: {} }, b: { in: {} }, file: '' })
  symlinkSync('a', join(base, 'link'))
  const at = (...names: string[]) => join(base, ...names)
  const ok = (...names: string[]) => ({ ok: true, path: at(...names) })
  const outside = { ok: false, reason: 'outside' }

  t.test('without roots every directory is allowed, and refusals say what is wrong', async (t) => {
    t.strictSame(await resolveWithinRoots(at('link', 'in'), undefined), ok('a', 'in'))
    t.strictSame(await resolveWithinRoots('/', undefined), { ok: true, path: '/' })
    t.strictSame(await resolveWithinRoots(at('nope'), undefined), { ok: false, reason: 'missing' })
    t.strictSame(await resolveWithinRoots(at('file'), undefined), { ok: false, reason: 'not-a-directory' })
    t.strictSame(await resolveWithinRoots('a', undefined), { ok: false, reason: 'invalid' })
  })

  t.test('no root allows nothing', async (t) => {
    for (const path of ['/', at('a'), at('nope')])
      t.strictSame(await resolveWithinRoots(path, resolveRoots([])), outside)
    t.strictSame(await resolveWithinRoots('', resolveRoots([])), { ok: false, reason: 'invalid' })
  })

  t.test('several roots', async (t) => {
    const roots = resolveRoots([at('a'), at('b', 'in')])
    t.strictSame(await resolveWithinRoots(at('a', 'in'), roots), ok('a', 'in'))
    t.strictSame(await resolveWithinRoots(at('b', 'in'), roots), ok('b', 'in'))
    t.strictSame(await resolveWithinRoots(at('b'), roots), outside)
  })

  t.test('/ as a root allows everything', async (t) => {
    t.strictSame(await resolveWithinRoots(at('a'), resolveRoots(['/'])), ok('a'))
    t.strictSame(await resolveWithinRoots(at('nope'), resolveRoots(['/'])), { ok: false, reason: 'missing' })
  })

  t.test('a root that is a link is resolved when it is configured', async (t) => {
    const roots = resolveRoots([at('link')])
    t.strictSame(await resolveWithinRoots(at('link', 'in'), roots), ok('a', 'in'))
    t.strictSame(await resolveWithinRoots(at('a', 'in'), roots), ok('a', 'in'))
    rmSync(at('link'))
    symlinkSync('b', at('link'))
    t.strictSame(await resolveWithinRoots(at('link', 'in'), roots), outside, 'where it leads later is not allowed')
  })

  t.test('a root that is none is named', async (t) => {
    t.throws(() => resolveRoots([at('a'), at('nope')]), { message: /^the root "[^"]*nope" does not exist/ })
    t.throws(() => resolveRoots([at('file')]), { message: /^the root "[^"]*file" is not a directory/ })
    for (const root of ['', 'a', './a', '~', `${base}\0`, `${base}/`.padEnd(5000, 'a')])
      t.throws(() => resolveRoots([root]), { message: /^the root ".*" is not an absolute path/s }, JSON.stringify(root))
    t.throws(() => resolveRoots([undefined as unknown as string]), {
      message: /^the root undefined is not an absolute/,
    })
  })

  t.test('what contains and what leads to', async (t) => {
    const roots = resolveRoots([at('a')])
    t.strictSame(
      [at('a'), at('a', 'x'), at('a', '..x'), base, at('ab'), '/'].map((path) => roots.contains(path)),
      [true, true, true, false, false, false],
    )
    t.strictSame(
      [at('a'), base, '/', at('a', 'x'), at('b')].map((path) => roots.leadTo(path)),
      [true, true, true, false, false],
    )
  })
})
