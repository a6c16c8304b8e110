import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t, { type Test } from 'tap'
import { createProgram } from '../../bin/program.js'
import { CLOSE } from '../../schemas/close-codes.js'
import { ProfileOptions } from '../../schemas/profiles.js'
import { references } from '../../scripts/write-references.mjs'
import { publishedConfigSchema } from '../../src/daemon/config-schema.js'
import { HOOK_NAMES } from '../../src/daemon/hooks.js'
import { ERROR_CODES, GatewayError } from '../../src/errors.js'
import { compiledPackage } from '../fixtures/compiled.js'
import { type Block, PAGES, type Page, ROOT } from './pages.js'
import { programsOf, typeErrors } from './typed.js'

const textOf = (file: string) => readFileSync(`${ROOT}${file}`, 'utf8')
const [openapi, asyncapi] = ['openapi.json', 'asyncapi.json'].map((file) => JSON.parse(textOf(`schemas/${file}`)))
const STATUSES: string[] = openapi.components.schemas.SessionStatus.enum
const blocks = PAGES.flatMap((page) => page.blocks)
const ofLang = (lang: string) => blocks.filter((block) => block.lang === lang)

/** Commands that are not run here, by page and first line, and why. Nothing else is left out. */
const NOT_RUN: Record<string, string> = {
  'README.md: npm ci && npm start':
    'npm ci is how a checkout comes to run this test; what npm start serves is served to the rest of the page',
  'README.md: npm ci && npm test': 'this test is a part of it',
  'README.md: npx session-gateway run --cwd examples/quickstart/workspace "Please write a report."':
    'a person presses keys: test/bin/terminal.test.ts does, in a pseudo-terminal',
  'docs/agents.md: npm i @anthropic-ai/claude-agent-sdk     # claude; proprietary, hence never bundled':
    'installs from a registry: npm run test:agents does',
  'docs/cluster.md: export DATABASE_URL=postgres://localhost/gateway TOKEN=$(openssl rand -hex 24) CLUSTER_SECRET=$(openssl rand -hex 24)':
    'needs a PostgreSQL: test/bin/cluster-storm.test.ts serves three such daemons on one',
  'docs/cluster.md: ask() { curl -s -H "authorization: Bearer $TOKEN" -H \'content-type: application/json\' "$@"; }':
    'asks the daemons of the block before',
  'docs/operating.md: useradd --system --home-dir /var/lib/session-gateway session-gateway':
    'needs root, accounts and a running systemd',
}
const keyOf = (page: Page, { text }: Block) => `${page.file}: ${text.split('\n')[0]}`

/** Programs that serve until they are stopped, and what to ask of them. */
const SERVICES: Record<string, (t: Test, url: string) => Promise<unknown>> = {
  'embedded.ts': async (t, url) => t.equal((await fetch(`${url}/v1/sessions`)).status, 401),
  'service.ts': async (t, url) => {
    const headers = { authorization: 'Bearer secret' }
    const answer = await fetch(`${url}/v1/profiles`, { headers })
    t.match(await answer.json(), { profiles: [{ name: 'assistant' }] })
  },
}

/** Shown output: `…` stands for anything. */
const isShown = (shown: string, output: string) => {
  const pattern = shown
    .trim()
    .split('…')
    .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return RegExp(`^${pattern.join('[\\s\\S]*')}$`).test(output.trim())
}

t.test('every block is of a kind that is run, compiled, checked or compared', async (t) => {
  t.ok(blocks.length > 50, 'the blocks were found')
  for (const page of PAGES)
    page.blocks.forEach(({ at, lang, name }, index) => {
      const before = page.blocks[index - 1]
      if (lang === 'text')
        t.ok(before && ['sh', 'ts'].includes(before.lang), `${at} shows the output of what stands before it`)
      else if (lang === 'js') t.match(name, /\.mjs$/, `${at} is a file that the page uses`)
      else if (lang === 'json') t.ok(name, `${at} says what it is`)
      else t.match(lang, /^(sh|ts)$/, at)
    })
  const known = new Set(PAGES.flatMap((page) => page.blocks.map((block) => keyOf(page, block))))
  for (const key of Object.keys(NOT_RUN)) t.ok(known.has(key), `there still is ${key}`)
})

t.test('links lead somewhere', async (t) => {
  const anchors = new Map(PAGES.map(({ file, anchors }) => [file, anchors]))
  const broken = PAGES.flatMap(({ file, links }) =>
    links
      .filter((link) => !/^https?:/.test(link))
      .filter((link) => {
        const [path = '', anchor] = link.split('#')
        const target = path === '' ? file : posix.join(posix.dirname(file), path)
        return !existsSync(`${ROOT}${target}`) || (anchor !== undefined && !anchors.get(target)?.has(anchor))
      })
      .map((link) => `${file}: ${link}`),
  )
  t.same(broken, [])
  const reached = new Set(PAGES[0]!.links)
  for (const { file } of PAGES.slice(1)) t.ok(reached.has(file), `the README leads to ${file}`)
})

t.test('pictures are well-formed', async (t) => {
  const images = PAGES.flatMap(({ file, links }) =>
    links.filter((link) => link.endsWith('.svg')).map((link) => posix.join(posix.dirname(file), link)),
  )
  t.ok(images.length > 0)
  for (const image of images) {
    const open: string[] = []
    for (const [, end, name, rest] of textOf(image).matchAll(/<(\/?)([a-z]+)([^>]*)>/gi)) {
      if (end) t.equal(open.pop(), name, `${image} closes what it opened last`)
      else if (!rest!.endsWith('/')) open.push(name!)
    }
    t.same(open, [])
    for (const status of STATUSES) t.match(textOf(image), `>${status}<`)
  }
})

t.test('programs compile under a strict compiler', async (t) => {
  t.same(typeErrors(PAGES.flatMap(programsOf)), [])
})

t.test('JSON is valid by the schema that it names', async (t) => {
  const documents = new Ajv2020({ strict: false, validateFormats: false })
  documents.addSchema({ $id: 'openapi', ...openapi }).addSchema({ $id: 'asyncapi', ...asyncapi })
  const configuration = new Ajv({ strict: false }).compile(publishedConfigSchema())
  for (const { at, name, text } of ofLang('json')) {
    const isConfiguration = name === 'config' || name.endsWith('.json')
    const home = [openapi, asyncapi].find(({ components }) => components.schemas[name])
    if (!isConfiguration && !home) {
      t.fail(`${at}: neither document has ${name}`)
      continue
    }
    const validate = isConfiguration
      ? configuration
      : documents.compile({ $ref: `${home === openapi ? 'openapi' : 'asyncapi'}#/components/schemas/${name}` })
    t.ok(validate(JSON.parse(text)), `${at}: ${JSON.stringify(validate.errors)}`)
  }
})

t.test('the references say what is: npm run schemas writes them', async (t) => {
  const errors = ERROR_CODES.map((code) => new GatewayError(code)).map(({ code, statusCode, message }) => ({
    ...{ code, status: statusCode, detail: message },
  }))
  const now = references({ schema: publishedConfigSchema(), openapi, asyncapi, errors })
  for (const [file, text] of Object.entries(now)) t.ok(text === textOf(`docs/${file}`), `docs/${file}`)
})

t.test('tables forget nothing', async (t) => {
  const names = (pattern: RegExp, text: string) => [...text.matchAll(pattern)].map(([, name]) => name!)
  const told: [string, string, readonly string[]][] = [
    ['docs/concepts.md', 'status', STATUSES],
    ['docs/clients.md', 'command', createProgram().commands.map((command) => command.name())],
    ['docs/profiles.md', 'field', Object.keys(ProfileOptions.properties)],
    ['docs/operating.md', 'hook', HOOK_NAMES],
    ['docs/operating.md', 'metric', names(/name: '(session_gateway_\w+)'/g, textOf('plugins/metrics.ts'))],
  ]
  for (const { code } of Object.values(CLOSE))
    t.match(textOf('docs/clients.md'), RegExp(`^\\| .*\\b${code}\\b`, 'm'), `close code ${code}`)
  for (const [page, what, all] of told) {
    t.ok(all.length > 1)
    for (const name of all) t.match(textOf(page), RegExp(`\`${name}[\`{]`), `${page} tells the ${what} ${name}`)
  }
})

const compiled = compiledPackage()
const { readersWorld } = await import('./world.js')

const missing = ['bash', 'curl', 'jq'].filter((tool) => spawnSync(tool, ['--version']).error)
const isFollowed = (page: Page) => page.blocks.some(({ lang }) => lang === 'sh' || lang === 'ts')

for (const page of PAGES.filter(isFollowed))
  t.test(
    `${page.file} can be followed`,
    { skip: missing.length > 0 && `there is no ${missing.join(', ')}` },
    async (t) => {
      const world = await readersWorld(t, compiled)
      const programs = new Map(programsOf(page).map((program) => [program.blocks.at(-1), program]))
      if (page.file === 'README.md') {
        cpSync(`${ROOT}examples`, join(world.project, 'examples'), { recursive: true })
        const [, args] = /session-gateway\.js (.*)$/.exec(JSON.parse(textOf('package.json')).scripts.start)!
        await world.serve(args!.split(' '), world.project)
      }
      let output = ''
      for (const block of page.blocks) {
        const { at, lang, name, text } = block
        if (lang === 'text') t.ok(isShown(text, output), `${at} is shown, and this was said:\n${output}`)
        if (lang === 'js' || (lang === 'json' && name.endsWith('.json'))) world.write(name, text)
        if (lang === 'sh' && NOT_RUN[keyOf(page, block)]) {
          execFileSync('bash', ['-n'], { input: text })
          continue
        }
        const program = programs.get(block)
        const service = SERVICES[program?.name ?? '']
        if (program && service) await world.executeService(program.name, program.text, (url) => service(t, url))
        else if (program || lang === 'sh') {
          const result = program ? await world.execute(program.name, program.text) : await world.run(text)
          output = result.output
          t.equal(result.ended, 'well', `${program?.at ?? at} said:\n${output}`)
          t.notMatch(output, /\n +at .*:\d+:\d+\)?\n/, `${program?.at ?? at} breaks nothing on its way`)
          if (result.ended === 'badly') return
        }
      }
    },
  )
