/**
 * How far a call travels: the files that it passes on its way through a real server on SQLite, and how often it changes from one to
 * another. Counted by a call at the head of every function of the build.
 *
 *   npm run build && node scripts/trips.mjs [--files]
 */
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'
import { WebSocket } from 'ws'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const COPY = join(ROOT, 'node_modules', '.cache', 'trips')

/** A file with `globalThis.__at` called at the head of each of its functions. */
function instrumented(text, name) {
  const head = `globalThis.__at?.(${JSON.stringify(name)})`
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, false)
  const edits = []
  const visit = (node) => {
    const { body } = node
    if (body && ts.isFunctionLike(node)) {
      if (ts.isBlock(body)) edits.push([body.getStart(source) + 1, `${head};`])
      else edits.push([body.getStart(source), `(${head}, `], [body.end, ')'])
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  let result = text
  for (const [at, inserted] of edits.sort(([a], [b]) => b - a))
    result = result.slice(0, at) + inserted + result.slice(at)
  return result
}

rmSync(COPY, { recursive: true, force: true })
cpSync(join(ROOT, 'dist'), COPY, { recursive: true })
for (const name of readdirSync(COPY, { recursive: true })) {
  const file = join(COPY, name)
  // a schema is a description and no stop on the way
  if (!/^(src|plugins)\/.*\.js$/.test(name)) continue
  writeFileSync(file, instrumented(readFileSync(file, 'utf8'), relative(COPY, file).replace(/\.js$/, '')))
}

let way
const begin = () => {
  way = []
  globalThis.__at = (file) => {
    if (way.at(-1) !== file) way.push(file)
  }
}
const end = () => {
  globalThis.__at = undefined
  return way
}

const { createWorkerServer, createSqliteStorage } = await import(pathToFileURL(join(COPY, 'src', 'index.js')))

const runners = []
const arrived = { send: () => {}, settle: () => {} }
const createEngineRunner = () => {
  const runner = {
    capabilities: {
      permissionModes: ['default'],
      parking: 'native',
      setModel: false,
      resume: false,
      fork: false,
      files: false,
    },
    async start(host) {
      runner.host = host
      const none = { tools: [], skills: [], slashCommands: [], mcpServers: [] }
      host.emit({
        type: 'system_init',
        sdkSessionId: 'sdk',
        model: 'm',
        cwd: tmpdir(),
        apiKeySource: 'none',
        permissionMode: 'default',
        ...none,
      })
    },
    send: () => arrived.send(),
    settleExecution: () => arrived.settle(),
    async interrupt() {},
    async close() {},
    snapshot: () => ({ engine: 'scripted', state: [] }),
  }
  runners.push(runner)
  return runner
}
const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }
const complete = () =>
  runners.at(-1).host.emit({
    type: 'turn_completed',
    subtype: 'success',
    isError: false,
    durationMs: 1,
    numTurns: 1,
    totalCostUsd: 0,
    usage: NO_USAGE,
  })
const say = (text) =>
  runners.at(-1).host.emit({
    ...{ type: 'assistant_message', uuid: `m${Math.random()}`, parentToolUseId: null },
    message: { role: 'assistant', content: [{ type: 'text', text }] },
  })

const dir = mkdtempSync(join(tmpdir(), 'trips-'))
const worker = createWorkerServer({
  allowUnauthenticated: true,
  profiles: [{ name: 'scripted', engine: 'provider', provider: { id: 'scripted' } }],
  createEngineRunner,
  storage: createSqliteStorage({ path: join(dir, 'gateway.db') }),
})
const { url, port } = await worker.listen(0)
const call = async (method, path, body) => {
  const response = await fetch(`${url}/v1${path}`, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response.json()
}
const becomes = async (id, status) => {
  while ((await call('GET', `/sessions/${id}`)).status !== status) await new Promise(setImmediate)
}
const rest = () => new Promise((resolve) => setTimeout(resolve, 100))
/** @param over resolves when the call is where it was to go; default: answered */
const trip = async (work, over) => {
  await rest()
  begin()
  const done = over?.()
  const answer = work()
  await (done ?? answer)
  const passed = end()
  await answer
  await rest()
  return passed
}
const at = (what) => () =>
  new Promise((resolve) => {
    arrived[what] = () => {
      end()
      resolve()
    }
  })

const trips = {}
const { id } = await call('POST', '/sessions', { cwd: tmpdir(), prompt: 'go' })
await becomes(id, 'running')
const { host } = runners.at(-1)
await host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' })
host.waitForExecutions()
await becomes(id, 'parked')
// as most are found that have waited for long: not in memory
await new Promise((resolve) => setTimeout(resolve, 11_000))
const result = { status: 'ok', output: { type: 'text', value: 'done' } }
trips['result of a parked session → engine'] = await trip(
  () => call('POST', '/executions/e1/result', result),
  at('settle'),
)
complete()
await becomes(id, 'idle')

const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/sessions/${id}/ws`)
let heard = () => {}
socket.on('message', (data) => heard(JSON.parse(data.toString())))
await once(socket, 'open')
trips['user_message → engine'] = await trip(
  async () => socket.send(JSON.stringify({ type: 'user_message', text: 'again', id: 'c1' })),
  at('send'),
)
trips['engine event → journal and socket'] = await trip(
  async () => say('hello'),
  () =>
    new Promise((resolve) => {
      heard = (frame) => {
        if (frame.type === 'event' && frame.event.type === 'assistant_message') resolve()
      }
    }),
)
complete()
await becomes(id, 'idle')
socket.close()
await once(socket, 'close')
trips.DELETE = await trip(() => call('DELETE', `/sessions/${id}`))
await worker.close()
rmSync(dir, { recursive: true })

console.log('trip | files | changes of file\n--- | --- | ---')
for (const [name, passed] of Object.entries(trips)) {
  console.log(`${name} | ${new Set(passed).size} | ${passed.length - 1}`)
  if (process.argv.includes('--files')) for (const file of new Set(passed)) console.log(`    ${file}`)
}
