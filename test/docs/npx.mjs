// `npx` as a reader of the documentation has it: `session-gateway` is this checkout's, compiled. What serves until it is stopped is started
// by the test, which ends it; the rest runs here.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const [name, ...args] = process.argv.slice(2)
const serves =
  (args[0] === undefined || args[0].startsWith('--')) &&
  !args.some((arg) => /^--(help|version|print-config)$/.test(arg))

if (name === 'openapi-typescript') run(fileURLToPath(new URL(`../../node_modules/.bin/${name}`, import.meta.url)), args)
else if (name !== 'session-gateway') throw new Error(`npx ${name} is not what a page may run`)
else if (serves) await serve()
else run(process.execPath, [`${process.env.DOCS_PACKAGE}/bin/session-gateway.js`, ...args])

function run(command, words) {
  process.exitCode = spawnSync(command, words, { stdio: 'inherit' }).status ?? 1
}

async function serve() {
  const body = JSON.stringify({ args, cwd: process.cwd(), env: process.env })
  const response = await fetch(process.env.DOCS_SERVE, { method: 'POST', body })
  process.stderr.write(await response.text())
  process.exitCode = response.ok ? 0 : 1
}
