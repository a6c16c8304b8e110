import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'

interface Floor {
  name: string
  files: RegExp
  /** What of ours these files may import. */
  ours: RegExp
  fastify: 'yes' | 'types only' | 'no'
  /** Files that run in browsers: no Node, and of what is not theirs types alone, but for these. */
  browser?: RegExp
}

const UP_TO_GATEWAY = 'src/(?!(?:index|server|daemon)(?:/|\\.ts$))'
const BELOW_GATEWAY = 'src/(?!(?:index|server|daemon|gateway)(?:/|\\.ts$))'

/** The floors of the house, each importing only from those under it. The first row whose `files` match a file is its floor. */
const FLOORS: Floor[] = [
  { name: 'schemas', files: /^schemas\//, ours: /^schemas\//, fastify: 'no' },
  { name: 'src/errors.ts', files: /^src\/errors\.ts$/, ours: /^schemas\//, fastify: 'no' },
  { name: 'src/lib', files: /^src\/lib\//, ours: /^(schemas\/|src\/errors\.ts$|src\/lib\/)/, fastify: 'no' },
  {
    name: 'src/webhooks',
    files: /^src\/webhooks\//,
    ours: /^(schemas\/|src\/errors\.ts$|src\/lib\/|src\/webhooks\/)/,
    fastify: 'no',
  },
  {
    name: 'client',
    files: /^client\//,
    ours: /^(schemas|client)\//,
    fastify: 'no',
    browser: /^schemas\/close-codes\.ts$/,
  },
  {
    name: 'the console',
    files: /^console\//,
    // what it can do, others can build: of ours it has the published client alone
    ours: /^(client\/index\.ts$|console\/)/,
    fastify: 'no',
  },
  {
    name: 'src/gateway.ts',
    files: /^src\/gateway(\.ts$|\/)/,
    ours: RegExp(`^(schemas/|${UP_TO_GATEWAY})`),
    fastify: 'no',
  },
  {
    name: 'src/options.ts',
    files: /^src\/options(-[\w-]+)?\.ts$/,
    ours: RegExp(`^(schemas/|${BELOW_GATEWAY})`),
    fastify: 'types only',
  },
  {
    name: 'the front door',
    files: /^src\/(index|server)\.ts$/,
    ours: /^(schemas|src|plugins)\//,
    fastify: 'yes',
  },
  { name: 'the daemon', files: /^src\/daemon\//, ours: /^(schemas|src)\//, fastify: 'no' },
  { name: 'src/<concern>', files: /^src\//, ours: RegExp(`^(schemas/|${BELOW_GATEWAY})`), fastify: 'no' },
  { name: 'plugins', files: /^plugins\//, ours: RegExp(`^(schemas/|plugins/|${UP_TO_GATEWAY})`), fastify: 'yes' },
  { name: 'bin', files: /^bin\//, ours: /^(src|bin|client)\//, fastify: 'no' },
]

const FOLDERS = ['schemas', 'client', 'console', 'src', 'plugins', 'bin']
const MAX_LINES = 450
const FASTIFY = /^(@fastify\/|fastify(-plugin)?($|\/))/

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')

interface Import {
  /** A path in the repository, or the name of a package. */
  of: string
  typeOnly: boolean
}

function importsOf(file: string, text: string): Import[] {
  const found: Import[] = []
  const add = (specifier: ts.Node | undefined, typeOnly: boolean) => {
    if (!specifier || !ts.isStringLiteralLike(specifier)) return
    const of = specifier.text
    const path = posix.join(posix.dirname(file), of).replace(/\.js$/, '.ts')
    found.push({ of: of.startsWith('.') ? path : of, typeOnly })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, node.importClause?.isTypeOnly ?? false)
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly)
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true)
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node.arguments[0], false)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.ES2022))
  return found
}

/** What is wrong with the imports of a file, each with the rule that it breaks. */
function problemsOf(file: string, text: string): string[] {
  const floor = FLOORS.find(({ files }) => files.test(file))
  if (!floor) return [`${file} is on no floor: add it to the table`]
  return importsOf(file, text).flatMap(({ of, typeOnly }) => {
    const problem = (rule: string) => [`${file} imports ${of}, but ${floor.name} ${rule}`]
    if (/^session-gateway($|\/)/.test(of)) return problem('imports its own package by path only')
    if (FOLDERS.some((folder) => of.startsWith(`${folder}/`))) {
      if (!floor.ours.test(of)) return problem(`may import of ours only ${floor.ours.source}`)
    } else if (of.startsWith('..')) return problem('imports nothing beside the repository')
    if (FASTIFY.test(of) && (floor.fastify === 'no' || (floor.fastify === 'types only' && !typeOnly)))
      return problem(`may import fastify: ${floor.fastify}`)
    if (floor.browser && !of.startsWith(`${floor.name}/`) && !floor.browser.test(of) && !typeOnly)
      return problem('runs in browsers: types alone')
    return []
  })
}

const files = FOLDERS.filter((folder) => existsSync(join(root, folder))).flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
    .filter((file) => /\.tsx?$/.test(file)),
)
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')

/** Files of a folder that import each other in a circle, types included. */
function circlesIn(folder: string): string[] {
  const imports = new Map(
    files
      .filter((file) => file.startsWith(folder))
      .map((file) => [file, importsOf(file, textOf(file)).map(({ of }) => of)] as const),
  )
  const reaches = (from: string, goal: string, seen = new Set<string>()): boolean =>
    (imports.get(from) ?? []).some((next) => {
      if (next === goal) return true
      if (seen.has(next)) return false
      seen.add(next)
      return reaches(next, goal, seen)
    })
  return [...imports.keys()].filter((file) => reaches(file, file))
}

t.test('no file of the heart needs one that needs it, not even for a type', async (t) => {
  t.strictSame(circlesIn('src/sessions/'), [])
})

t.test('every floor imports only from those under it', async (t) => {
  t.ok(files.length > 20, 'the files were found')
  t.strictSame(
    files.flatMap((file) => problemsOf(file, textOf(file))),
    [],
  )
})

t.test('no file is long', async (t) => {
  const lengths = files.map((file) => ({ file, lines: textOf(file).split('\n').length - 1 }))
  t.strictSame(
    lengths
      .filter(({ lines }) => lines > MAX_LINES)
      .map(({ file, lines }) => `${file} has ${lines} lines of ${MAX_LINES}`),
    [],
  )
})

/** Where checkouts commonly lie: there the name of the parent may be part of an ordinary example. */
const COMMON_PARENTS = ['/', '/app', '/home', '/opt', '/root', '/srv', '/usr/src', '/var', tmpdir()]

/** What is, or would be, committed; undefined outside of a checkout. */
function committedFiles(): string[] | undefined {
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { status, stdout } = spawnSync('git', list, { cwd: root, encoding: 'utf8' })
  return status === 0
    ? stdout.split('\0').filter((file) => statSync(join(root, file), { throwIfNoEntry: false })?.isFile())
    : undefined
}

const committed = committedFiles()
t.test('no file names a path of this machine', { skip: !committed && 'not a checkout' }, async (t) => {
  const parent = dirname(root)
  const own = COMMON_PARENTS.includes(parent) ? root : parent
  const below = RegExp(`(?<![\\w.~-])${own.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}/\\w`)
  t.strictSame(
    committed!.filter((file) => below.test(textOf(file))).map((file) => `${file} names a path of this machine`),
    [],
  )
})

t.test('the places that newcomers are sent to are there', async (t) => {
  const named = [...textOf('docs/contributing.md').matchAll(/`((?:src|schemas|plugins|client|test)\/[\w./-]+)`/g)]
  t.ok(named.length > 20)
  for (const [, path = ''] of named) t.ok(existsSync(join(root, path)), `${path} is there`)
})

t.test('the rules bite', async (t) => {
  const wrong: [file: string, text: string][] = [
    ['schemas/x.ts', "import { GatewayError } from '../src/errors.js'"],
    ['src/lib/x.ts', "import type { Session } from '../sessions/session.js'"],
    ['src/errors.ts', "import { x } from './lib/x.js'"],
    ['src/webhooks/x.ts', "import { x } from '../jobs/queue.js'"],
    ['src/sessions/x.ts', "import type { FastifyRequest } from 'fastify'"],
    ['src/sessions/x.ts', "import plugin from 'fastify-plugin'"],
    ['src/sessions/x.ts', "const plugin = await import('@fastify/websocket')"],
    ['src/sessions/x.ts', "type X = import('../../plugins/auth.js').X"],
    ['src/sessions/x.ts', "export * from '../gateway.js'"],
    ['src/storage/memory/x.ts', "import '../../server.js'"],
    ['src/gateway.ts', "import type { FastifyInstance } from 'fastify'"],
    ['src/gateway.ts', "import { x } from '../plugins/gateway.js'"],
    ['src/options.ts', "import fastify from 'fastify'"],
    ['client/x.ts', "import { SessionInfo } from '../schemas/sessions.js'"],
    ['client/x.ts', "import { readFileSync } from 'node:fs'"],
    ['client/x.ts', "import type { GatewayError } from '../src/errors.js'"],
    ['client/x.ts', "import { WebSocket } from 'ws'"],
    ['console/src/x.tsx', "import { Http } from '../../client/http.js'"],
    ['console/src/x.tsx', "import type { SessionInfo } from '../../schemas/sessions.js'"],
    ['src/x.ts', "import { createClient } from '../client/index.js'"],
    ['plugins/x.ts', "import { x } from '../bin/commands/serve.js'"],
    ['plugins/x.ts', "import { x } from '../src/server.js'"],
    ['plugins/x.ts', "import { x } from 'session-gateway'"],
    ['bin/x.ts', "import { x } from '../plugins/gateway.js'"],
    ['bin/x.ts', "import fastify from 'fastify'"],
    ['bin/x.ts', "import { x } from '../../elsewhere/x.js'"],
  ]
  for (const [file, text] of wrong) t.equal(problemsOf(file, text).length, 1, `${file}: ${text}`)

  const right: [file: string, text: string][] = [
    ['schemas/index.ts', "export * from './common.js'"],
    ['src/lib/x.ts', "import { GatewayError } from '../errors.js'"],
    ['src/sessions/x.ts', "import type { Runner } from '../engines/runner.js'"],
    ['src/options.ts', "import type { FastifyRequest } from 'fastify'"],
    ['src/server.ts', "import Fastify from 'fastify'\nimport gateway from '../plugins/gateway.js'"],
    ['client/x.ts', "import type { SessionInfo } from '../schemas/sessions.js'"],
    ['client/x.ts', "import { CLOSE } from '../schemas/close-codes.js'"],
    ['console/src/x.tsx', "import { createClient } from '../../client/index.js'"],
    ['bin/commands/x.ts', "import { createClient } from '../../client/index.js'"],
    ['plugins/x.ts', "import fp from 'fastify-plugin'\nimport { createGateway } from '../src/gateway.js'"],
    ['bin/session-gateway.ts', "import { createWorkerServer } from '../src/server.js'"],
  ]
  for (const [file, text] of right) t.strictSame(problemsOf(file, text), [], `${file}: ${text}`)
})
