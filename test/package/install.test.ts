import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)
const npm = (args: string[], cwd: string) => run('npm', [...args, '--no-audit', '--no-fund'], { cwd, maxBuffer: 1e8 })

const DEMO = { name: 'demo', engine: 'provider', provider: { id: 'demo' } }
const OPTIONS = `{ allowUnauthenticated: true, profiles: [${JSON.stringify(DEMO)}], createEngineRunner: createProviderRunner }`

const HOST = `
import fastify from 'fastify'
import gatewayPlugin, { createProviderRunner } from 'session-gateway'
import { createClient } from 'session-gateway/client'
const app = fastify()
await app.register(gatewayPlugin, ${OPTIONS})
const url = await app.listen({ port: 0 })
const { id } = await createClient({ baseUrl: url + '/v1' }).sessions.create({ cwd: process.cwd() })
if ((await app.gateway.registry.get(id))?.profile !== 'demo') throw new Error('there is no such session')
await app.close()
console.log('served')
`
const COMMONJS = `
import('session-gateway').then(({ createWorkerServer, createProviderRunner, default: plugin }) => {
  const loaded = process.features.require_module ? require('session-gateway') : { createWorkerServer }
  if (loaded.createWorkerServer !== createWorkerServer) throw new Error('loaded twice')
  if (process.features.require_module) require('session-gateway/client').createClient({ baseUrl: 'http://127.0.0.1:1' })
  createWorkerServer(${OPTIONS})
  console.log(typeof plugin, process.features.require_module ? 'required' : 'imported')
})
`
const TYPED = `
import fastify from 'fastify'
import gatewayPlugin, { createProviderRunner, createWorkerServer, type SessionInfo, type WorkerServerOptions } from 'session-gateway'
import { createClient } from 'session-gateway/client'
const options: WorkerServerOptions = ${OPTIONS.replace('"provider"', '"provider" as const')}
export async function serve(): Promise<SessionInfo | undefined> {
  const app = fastify()
  await app.register(gatewayPlugin, options)
  createWorkerServer(options)
  await createClient({ baseUrl: 'http://127.0.0.1:1' }).sessions.create({ cwd: '/' })
  return app.gateway.registry.get('x')
}
`
/** What a library of the host's, or a folder of its monorepo, gives others without naming its types. */
const DECLARED = `
import * as library from 'session-gateway'
import { createClient } from 'session-gateway/client'
export const client = createClient({ baseUrl: 'http://127.0.0.1:1' })
export const profileStore = library.createFileProfileStore('profiles.json')
export const storage = library.createSqliteStorage({ path: 'sessions.db' })
export const check = () => storage.check?.()
export const suites = { ...library }
export const options = {
  allowUnauthenticated: true,
  checkCredentials: { probe: async (profile) => profile.name === 'demo' },
  executions: { tools: [], onDispatch: ({ executionId }) => executionId },
  listSdkSessions: async ({ dir }) => (dir === undefined ? [] : []),
  logger: console as library.Logger,
  notifications: { onNotification: ({ preview }) => preview },
  parking: { onError: (error, context) => [error.message, context] },
  queue: { adapter: library.createMemoryQueueAdapter(), onEvent: (event) => event.type },
} satisfies library.WorkerServerOptions
export const { parking, notifications, queue, agents, eventLog, executions, webhookPolicy } = options as library.WorkerServerOptions
export const usage = { add: async (counts) => void counts, read: async (range) => (range.profiles ? [] : []) } satisfies library.UsageStore
export const partsOf = ({ journal, notifications, channels, queue }: library.GatewayStorage) => ({
  ...{ ...journal, ...notifications, ...channels, ...queue },
})
`

const hasRegistry = await npm(['view', 'fastify', 'version'], ROOT).then(
  () => true,
  () => false,
)

t.test('the packed package in an empty project', { skip: !hasRegistry && 'no npm registry' }, async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'packed-'))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  const project = join(place, 'project')
  mkdirSync(project)
  await npm(['pack', '--pack-destination', place], ROOT)
  const tarball = readdirSync(place).find((name) => name.endsWith('.tgz'))!
  writeFileSync(join(project, 'package.json'), '{ "private": true }')
  await npm(['install', join(place, tarball), 'fastify@5'], project)
  const installed = join(project, 'node_modules', 'session-gateway')

  t.test('has its code and examples, and no map of a source that is not there', async (t) => {
    const names = readdirSync(installed, { recursive: true, encoding: 'utf8' })
    for (const name of [
      'dist/src/index.js',
      'dist/src/index.d.ts',
      'dist/client/index.js',
      'examples/attach.mjs',
      'dist/gateway.schema.json',
    ])
      t.ok(names.includes(name), name)
    t.strictSame(
      names.filter((name) => name.endsWith('.map')),
      [],
    )
  })

  t.test(
    'compiles in a TypeScript project that has types of Node alone, as Node resolves and as bundlers do',
    async (t) => {
      // 5.4 is the first that compiles Fastify
      await npm(['install', '--save-dev', '@types/node@20', 'typescript@5.4'], project)
      writeFileSync(join(project, 'consumer.mts'), TYPED)
      writeFileSync(join(project, 'declared.mts'), DECLARED)
      for (const [module, moduleResolution] of [
        ['NodeNext', 'NodeNext'],
        ['ESNext', 'bundler'],
      ]) {
        const compilerOptions = {
          ...{ module, moduleResolution, target: 'ES2022', lib: ['ES2023'], strict: true },
          ...{ declaration: true, emitDeclarationOnly: true, outDir: 'declarations', rootDir: '.' },
          ...{ exactOptionalPropertyTypes: true, skipLibCheck: false, types: ['node'] },
        }
        writeFileSync(
          join(project, 'tsconfig.json'),
          JSON.stringify({ compilerOptions, files: ['consumer.mts', 'declared.mts'] }),
        )
        for (const place of [ROOT, project]) {
          const tsc = join(place, 'node_modules/typescript/bin/tsc')
          const compiled = run(process.execPath, [tsc, '-p', project])
          const { stdout } = await compiled.catch((wrong: { stdout: string }) => wrong)
          // the declarations of others as well: who compiles them with ours cannot mend them
          t.equal(stdout, '', `resolved as ${moduleResolution}, by ${place === ROOT ? 'this' : 'an older'} TypeScript`)
        }
      }
    },
  )

  for (const version of ['20', '22', '24', '26'])
    t.test(`runs on Node ${version}`, async (t) => {
      const node = await nodeOf(version, place)
      if (!node) {
        t.pass(`Node ${version}`, { skip: `there is no Node ${version} for this platform` })
        return
      }
      const env = { ...process.env, NODE_OPTIONS: '', PATH: `${dirname(node)}${delimiter}${process.env.PATH}` }
      const start = (file: string, text: string) => {
        writeFileSync(join(project, file), text)
        return run(node, [file], { cwd: project, env })
      }
      t.match((await start('host.mjs', HOST)).stdout, /served/)
      t.match((await start('host.cjs', COMMONJS)).stdout, /^function (required|imported)/)
      t.match((await run('npx', ['--no-install', 'session-gateway', '--version'], { cwd: project, env })).stdout, /^\d/)

      const config = { listen: { port: 0 }, allowUnauthenticated: true, profiles: [DEMO], log: { pretty: false } }
      writeFileSync(join(project, 'gateway.json'), JSON.stringify(config), { mode: 0o600 })
      const bin = join(project, 'node_modules/.bin/session-gateway')
      const daemon = spawn(bin, [], { cwd: project, env, stdio: ['ignore', 'pipe', 'inherit'] })
      t.teardown(() => daemon.kill('SIGKILL'))
      const exited = once(daemon, 'exit')
      for await (const line of createInterface(daemon.stdout)) {
        const { msg, url } = JSON.parse(line) as { msg: string; url: string }
        if (msg !== 'listening') continue
        t.equal((await fetch(`${url}/sessions`)).status, 200)
        daemon.kill('SIGTERM')
      }
      t.strictSame(await exited, [0, null])
    })
})

/** The executable of a major version of Node: this one, or npm's package of it; undefined when there is none. */
async function nodeOf(version: string, place: string): Promise<string | undefined> {
  if (process.versions.node.startsWith(`${version}.`)) return process.execPath
  const name = `node-${process.platform}-${process.arch}`
  const folder = join(place, `node-${version}`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const isThere = await npm(['install', `${name}@${version}`], folder).then(
    () => true,
    () => false,
  )
  return isThere ? join(folder, 'node_modules', name, 'bin', 'node') : undefined
}
