// Runs the storm (test/bin/cluster-storm.test.ts) with another revision beside this one on one database, rolling both ways:
//   node scripts/storm-beside.mjs REVISION
// It is built in a temporary folder with the dependencies that are installed here. STORM_ROUNDS and STORM_SEED as for the storm alone.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const [revision] = process.argv.slice(2)
if (revision === undefined) {
  console.error('usage: node scripts/storm-beside.mjs REVISION')
  process.exit(2)
}

function run(cwd, command, args, env = {}) {
  const { status } = spawnSync(command, args, { cwd, stdio: 'inherit', env: { ...process.env, ...env } })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} has failed`)
}

const folder = mkdtempSync(join(tmpdir(), 'sg-beside-'))
try {
  run(ROOT, 'git', ['clone', '--quiet', '--shared', ROOT, folder])
  run(folder, 'git', ['checkout', '--quiet', revision])
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  run(folder, 'npx', ['tsc', '-p', 'tsconfig.json'])
  run(folder, process.execPath, ['scripts/write-config-schema.mjs'])
  const STORM_BESIDE = join(folder, 'dist/bin/session-gateway.js')
  run(ROOT, 'npx', ['tap', 'run', '--jobs=1', 'test/bin/cluster-storm.test.ts'], { STORM_BESIDE })
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
