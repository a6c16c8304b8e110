import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ProfileOptions } from '../../schemas/profiles.js'
import { type Logger, silentLogger } from '../../src/lib/logger.js'
import { UNLIMITED } from '../../src/principal.js'
import { ProfileCatalog } from '../../src/profiles/catalog.js'
import { buildCatalog, catalogOptions, provider, refusal } from '../fixtures/profiles.js'

function recorder() {
  const warnings: { fields: object; message: string }[] = []
  const logger: Logger = { ...silentLogger, warn: (fields, message) => void warnings.push({ fields, message }) }
  return { logger, warnings }
}

t.test('each thing that keeps the service from starting says so, by name', async (t) => {
  const dir = t.testdir({ file: '', config: {}, work: { agents: {} } })
  const at = (path: string) => join(dir, path)
  const cli = (more: Partial<ProfileOptions>): ProfileOptions[] => [{ name: 'work', ...more }]
  const cases: [string, Parameters<typeof catalogOptions>[0], RegExp][] = [
    [
      'configDir that does not exist',
      { declared: cli({ configDir: at('gone') }) },
      /^profiles: profile "work": configDir: ".*gone" does not exist/,
    ],
    [
      'configDir that is a file',
      { declared: cli({ configDir: at('file') }) },
      /configDir: ".*file" is not a directory/,
    ],
    [
      'configDir that is relative',
      { declared: cli({ configDir: 'config' }) },
      /configDir: "config" is not an absolute path/,
    ],
    ['configDir with a NUL', { declared: cli({ configDir: `${dir}\0` }) }, /NUL/],
    [
      'provider without createEngineRunner',
      { declared: [provider('api')], hasEngineRunner: false },
      /^profiles: profile "api": engine: .*createEngineRunner/,
    ],
    ...(['acceptEdits', 'plan', 'auto'] as const).map((permissionMode): [string, object, RegExp] => [
      `provider with ${permissionMode}`,
      { declared: [{ ...provider('api'), defaults: { permissionMode } }] },
      new RegExp(`profile "api": defaults\\.permissionMode: .*${permissionMode}`),
    ]),
    [
      'agent without the mode',
      { declared: cli({ agent: 'qwen', defaults: { permissionMode: 'auto' } }) },
      /profile "work": defaults\.permissionMode: qwen/,
    ],
    ['agent that does not exist', { declared: cli({ agent: 'hal' }) }, /profile "work": agent: .*hal/],
    [
      'bypass while disabled',
      { declared: cli({ defaults: { permissionMode: 'bypassPermissions' } }), disableBypassPermissions: true },
      /profile "work": .*bypassPermissions is disabled/,
    ],
    ['two of one name', { declared: [provider('api'), provider('api')] }, /^profiles: two profiles are named api/],
    ['a bad name', { declared: [provider('../api')] }, /^profiles: profile "\.\.\/api": name: /],
    ['no name', { declared: [{ engine: 'provider' } as never] }, /^profiles: profile number 1: name: /],
    ['no profile', { declared: [null as never] }, /^profiles: profile number 1: /],
    ['no list', { declared: { work: {} } as never }, /^profiles: must be a list/],
    ['an unknown field', { declared: [{ ...provider('api'), apiKey: 'k' } as never] }, /profile "api": apiKey: /],
    [
      'configDir in a root for work',
      { declared: cli({ configDir: at('work/agents') }), allowedCwdRoots: [at('work')] },
      /profile work: configDir .* overlaps allowedCwdRoots.*allowConfigDirOverlap/,
    ],
    [
      'configDir that is such a root',
      { declared: cli({ configDir: at('work') }), allowedCwdRoots: [at('work')] },
      /overlaps allowedCwdRoots/,
    ],
    [
      'configDir around such a root',
      { declared: cli({ configDir: at('work') }), allowedCwdRoots: [at('work/agents')] },
      /overlaps allowedCwdRoots/,
    ],
    [
      'config roots around such a root',
      { allowedConfigDirRoots: [dir], allowedCwdRoots: [at('work')] },
      /^allowedConfigDirRoots: .* overlaps allowedCwdRoots/,
    ],
    [
      'config roots in such a root',
      { allowedConfigDirRoots: [at('work/agents')], allowedCwdRoots: [at('work')] },
      /^allowedConfigDirRoots: .* overlaps/,
    ],
    ['a config root that does not exist', { allowedConfigDirRoots: [at('gone')] }, /^allowedConfigDirRoots: .*gone/],
    ['a relative config root', { allowedConfigDirRoots: ['config'] }, /^allowedConfigDirRoots: /],
  ]
  for (const [what, options, detail] of cases)
    t.throws(() => new ProfileCatalog(catalogOptions(options)), refusal('SG_ERR_OPTION', detail), what)
})

t.test('a link does not hide an overlap', async (t) => {
  const dir = t.testdir({ work: { config: {} } })
  symlinkSync(join(dir, 'work', 'config'), join(dir, 'link'))
  const options = { declared: [{ name: 'a', configDir: join(dir, 'link') }], allowedCwdRoots: [join(dir, 'work')] }
  t.throws(() => new ProfileCatalog(catalogOptions(options)), refusal('SG_ERR_OPTION', /overlaps/))
})

t.test('an overlap can be accepted, and neighbours are none', async (t) => {
  const dir = t.testdir({ work: { config: {} }, 'work-config': {} })
  const work = join(dir, 'work')
  const forced = { allowedCwdRoots: [work], allowConfigDirOverlap: true }
  for (const options of [
    { declared: [{ name: 'a', configDir: join(dir, 'work-config') }], allowedCwdRoots: [work] },
    { ...forced, declared: [{ name: 'a', configDir: join(work, 'config') }] },
    { ...forced, allowedConfigDirRoots: [work] },
  ])
    await t.resolves(buildCatalog(options))
})

t.test('declared profiles are listed as declared, in their order', async (t) => {
  const configDir = t.testdir()
  const catalog = await buildCatalog({ declared: [provider('z'), { name: 'a', configDir, description: 'mine' }] })
  t.strictSame(catalog.list(UNLIMITED), {
    profiles: [provider('z'), { name: 'a', engine: 'cli', configDir, description: 'mine' }],
    canManage: false,
  })
})

t.test('without a declaration there is the operator’s own, as default', async (t) => {
  const dir = t.testdir({ home: { '.claude': {} }, one: {}, two: {}, file: '' })
  const at = (path: string) => join(dir, path)
  const found = async (env: NodeJS.ProcessEnv) => {
    const catalog = await buildCatalog({ declared: undefined, env })
    return catalog.list(UNLIMITED).profiles
  }
  const asDefault = (configDir: string) => [{ name: 'default', engine: 'cli', configDir }]
  const HOME = at('home')
  t.strictSame(await found({ HOME }), asDefault(at('home/.claude')))
  t.strictSame(await found({ HOME, CLAUDE_CONFIG_DIR: at('two') }), asDefault(at('two')))
  t.strictSame(await found({ HOME, CLAUDE_CONFIG_DIR: at('two'), AGENT_CONFIG_DIR: at('one') }), asDefault(at('one')))
  t.strictSame(await found({ HOME, AGENT_CONFIG_DIR: '' }), asDefault(at('home/.claude')))
  t.strictSame(await found({ HOME, AGENT_CONFIG_DIR: at('gone') }), [], 'no other identity takes its place')
  t.strictSame(await found({ HOME, AGENT_CONFIG_DIR: at('file') }), [])
  t.strictSame(await found({ HOME: at('one') }), [])
  const none = await buildCatalog({ declared: [], env: { HOME } })
  t.strictSame(none.list(UNLIMITED).profiles, [], '[] switches it off')
})

t.test('the default runs where it would run anyway, so nothing is pinned', async (t) => {
  const HOME = t.testdir({ '.claude': {} })
  const catalog = await buildCatalog({ declared: undefined, env: { HOME } })
  const config = { cwd: HOME }
  t.equal(catalog.pin(config, catalog.resolve(undefined, UNLIMITED)), config)
})

t.test('a detected default in a root for work is told, not refused', async (t) => {
  const HOME = t.testdir({ '.claude': {} })
  const { logger, warnings } = recorder()
  const catalog = await buildCatalog({ declared: undefined, env: { HOME }, allowedCwdRoots: [HOME], logger })
  t.equal(catalog.resolve(undefined, UNLIMITED).info.name, 'default')
  t.same(catalog.declaredNames, ['default'])
  t.match(warnings, [{ message: /allowedCwdRoots/ }])
})

t.test('a directory that others can write into is told', async (t) => {
  const configDir = t.testdir()
  const { logger, warnings } = recorder()
  chmodSync(configDir, 0o700)
  await buildCatalog({ declared: [{ name: 'a', configDir }], logger })
  t.same(warnings, [])
  chmodSync(configDir, 0o770)
  await buildCatalog({ declared: [{ name: 'a', configDir }], logger })
  t.match(warnings, [{ fields: { profile: 'a', configDir }, message: /other accounts/ }])
})

t.test('what the host does with its options later changes nothing', async (t) => {
  const declared = [{ ...provider('api'), description: 'first' }]
  const catalog = await buildCatalog({ declared })
  declared[0]!.description = 'second'
  declared.push({ ...provider('more'), description: '' })
  t.same(
    catalog.list(UNLIMITED).profiles.map(({ description }) => description),
    ['first'],
  )
})

t.test('a declared directory that is lost later does not bring the service down', async (t) => {
  const configDir = join(t.testdir(), 'config')
  mkdirSync(configDir)
  writeFileSync(join(configDir, 'settings.json'), '{}')
  const catalog = await buildCatalog({ declared: [{ name: 'a', configDir }] })
  rmSync(configDir, { recursive: true })
  t.strictSame((await catalog.describe('a', UNLIMITED)).config, {
    hasUserMemory: false,
    skills: [],
    agents: [],
    commands: [],
  })
})
