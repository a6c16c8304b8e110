// Makes dist/ as it is packed: from nothing, so that no file of earlier days goes along, and without maps of sources that are not there.
import { execFileSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const run = (command, args) =>
  execFileSync(command, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  })

// a fresh clone
if (!existsSync(new URL('../node_modules/typescript', import.meta.url)))
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
run(process.execPath, [tsc, '-p', 'tsconfig.json', '--sourceMap', 'false', '--declarationMap', 'false'])
run(process.execPath, ['scripts/write-config-schema.mjs'])
const vite = fileURLToPath(new URL('../node_modules/vite/bin/vite.js', import.meta.url))
run(process.execPath, [vite, 'build', '-c', 'console/vite.config.ts', '--logLevel', 'warn'])
