import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { loadConfig } from '../../src/daemon/load-config.js'
import { schemaReference, writeStartingPoint } from '../../src/daemon/starting-point.js'
import { createTokenAuthenticate } from '../../src/daemon/tokens.js'

t.test('the file is valid, for its owner only, and lets its token in without holding it', async (t) => {
  const folder = join(t.testdir(), 'new')
  const { file, workspace, token } = writeStartingPoint(join(folder, 'gateway.json'))
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.notMatch(readFileSync(file, 'utf8'), token)
  const { config, warnings } = loadConfig(file, {}, {})
  t.strictSame(warnings, [])
  t.strictSame(config.allowedCwdRoots, [workspace])
  t.ok(statSync(workspace).isDirectory())
  t.match(createTokenAuthenticate(config.auth!.tokens)({ headers: { authorization: `Bearer ${token}` } }), {
    name: 'admin',
  })
})

t.test('nothing is overwritten', async (t) => {
  const folder = t.testdir({ 'gateway.json': 'mine' })
  t.throws(() => writeStartingPoint(join(folder, 'gateway.json')), { message: /there is a file already/ })
  t.equal(readFileSync(join(folder, 'gateway.json'), 'utf8'), 'mine')
  t.notOk(existsSync(join(folder, 'workspace')))
})

t.test('a folder in the place of the file, and a file in that of its folder, are called what they are', async (t) => {
  const folder = t.testdir({ here: {}, 'mine.json': '{}' })
  t.throws(() => writeStartingPoint(join(folder, 'here')), {
    message: /this is a folder; .* init .*here\/gateway\.json/,
  })
  t.throws(() => writeStartingPoint(join(folder, 'mine.json', 'gateway.json')), {
    message: /mine\.json: no folder could be made/,
  })
})

t.test('where nobody can make a folder is said so', { skip: process.platform !== 'linux' }, async (t) => {
  t.throws(() => writeStartingPoint('/proc/session-gateway/deeper/gateway.json'), {
    message: /deeper: no folder could be made: ENOENT/,
  })
})

t.test('a link that leads nowhere is in the place of the file, too', async (t) => {
  const folder = t.testdir()
  for (const [name, target] of [
    ['loop.json', 'loop.json'],
    ['gone.json', 'nothing'],
  ] as const) {
    symlinkSync(target, join(folder, name))
    t.throws(() => writeStartingPoint(join(folder, name)), { message: /there is a file already/ }, name)
  }
})

t.test('no configuration is left behind of which nobody knows the token', async (t) => {
  const folder = t.testdir({ workspace: 'a file of somebody' })
  const file = join(folder, 'gateway.json')
  t.throws(() => writeStartingPoint(file), { message: /workspace.*no folder could be made/ })
  t.notOk(existsSync(file))
  t.equal(readFileSync(join(folder, 'workspace'), 'utf8'), 'a file of somebody')
})

t.test('$schema is relative inside the project that has the package, and a file URL elsewhere', async (t) => {
  const project = t.testdir()
  const root = join(project, 'node_modules', 'session-gateway')
  t.equal(schemaReference(project, root), './node_modules/session-gateway/dist/gateway.schema.json')
  t.equal(schemaReference(join(project, 'a', 'b'), root), '../../node_modules/session-gateway/dist/gateway.schema.json')
  const elsewhere = schemaReference('/etc/gateway', root)
  t.equal(fileURLToPath(elsewhere), join(root, 'dist', 'gateway.schema.json'))
})
