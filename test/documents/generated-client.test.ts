import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { hashToken } from '../../src/daemon/tokens.js'
import { startDaemon, TOKEN } from '../fixtures/daemon-process.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const tool = (file: string) => join(ROOT, 'node_modules', file)
const node = (folder: string, ...line: string[]) =>
  promisify(execFile)(process.execPath, line, { cwd: folder }).catch(({ stdout, stderr }) => ({ stdout, stderr }))

t.test('a client that a generator makes of the document drives a daemon, typed all through', async (t) => {
  const { url, cwd } = await startDaemon(t, {
    auth: { tokens: [{ name: 'ada', sha256: hashToken(TOKEN), canManageProfiles: true }] },
    queue: {},
    profileStore: true,
    storage: 'memory',
  })
  const folder = join(cwd, 'client')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  await node(folder, tool('openapi-typescript/bin/cli.js'), join(ROOT, 'schemas/openapi.json'), '--output', 'api.d.ts')
  t.match(readFileSync(join(folder, 'api.d.ts'), 'utf8'), /listSessions: \{/)

  copyFileSync(new URL('../fixtures/generated-driver.ts.txt', import.meta.url), join(folder, 'driver.ts'))
  const compilerOptions = {
    ...{ module: 'NodeNext', target: 'ES2022', lib: ['ES2023', 'DOM', 'DOM.AsyncIterable'], types: ['node'] },
    ...{ strict: true, noUncheckedIndexedAccess: true, skipLibCheck: true },
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['driver.ts', 'api.d.ts'] }))
  t.same(await node(folder, tool('typescript/bin/tsc')), { stdout: '', stderr: '' })

  const driven = await node(folder, 'driver.js', new URL(url).origin, TOKEN, join(cwd, 'work'))
  t.same(driven, { stdout: 'driven\n', stderr: '' })
})
