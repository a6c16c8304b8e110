// Has the test serve what `npx session-gateway` would serve until it is stopped: the test ends it.
const body = JSON.stringify({ args: process.argv.slice(2), cwd: process.cwd(), env: process.env })
const response = await fetch(process.env.DOCS_SERVE, { method: 'POST', body })
process.stderr.write(await response.text())
process.exitCode = response.ok ? 0 : 1
