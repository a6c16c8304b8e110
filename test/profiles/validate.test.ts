import t from 'tap'
import { BUILT_IN_AGENTS } from '../../src/engines/cli/agent-table.js'
import { assertBypassAllowed, validateProfile } from '../../src/profiles/validate.js'
import { codeOf, refusal } from '../fixtures/profiles.js'

const rules = { agents: BUILT_IN_AGENTS, hasEngineRunner: true, isHostsEngine: true }

t.test('what is accepted comes back as a copy with its engine', async (t) => {
  const accepted: [string, object, object?][] = [
    ['a name alone', { name: 'a' }, { name: 'a', engine: 'cli' }],
    ['the longest name', { name: 'x'.repeat(64) }],
    ['every sign that a name may have', { name: '0aZ._-', engine: 'cli' }],
    ['a name that every object has', { name: 'constructor', engine: 'cli' }],
    ['members that are undefined', { name: 'a', engine: 'cli', description: undefined }, { name: 'a', engine: 'cli' }],
    ['an agent', { name: 'a', engine: 'cli', agent: 'codex', configDir: '/somewhere' }],
    ['a mode of the agent', { name: 'a', engine: 'cli', defaults: { permissionMode: 'plan', model: 'm' } }],
    ['a provider profile without a model', { name: 'a', engine: 'provider' }],
    [
      'a full provider profile',
      {
        name: 'a',
        engine: 'provider',
        provider: { id: 'p', models: ['m'], baseUrl: 'http://[::1]:8080/v1', apiKeyEnv: '_KEY' },
        defaults: { permissionMode: 'dontAsk' },
        session: { capabilities: [], mcpServers: ['files'], instructions: '' },
      },
    ],
    ['an empty session block', { name: 'a', engine: 'provider', session: {} }],
  ]
  for (const [what, input, expected] of accepted) {
    const profile = validateProfile(input, rules)
    t.strictSame(profile, expected ?? { engine: 'cli', ...input }, what)
  }
})

t.test('an absent session block stays absent, an empty one stays empty', async (t) => {
  t.notOk('session' in validateProfile({ name: 'a', engine: 'provider' }, rules))
  t.strictSame(validateProfile({ name: 'a', engine: 'provider', session: {} }, rules).session, {})
})

t.test('what is refused names the field', async (t) => {
  const refused: [string, unknown, string, RegExp][] = [
    ['no object', null, 'SG_ERR_VALIDATION', /object/i],
    ['no name', {}, 'SG_ERR_VALIDATION', /^name: /],
    ['a name that is no string', { name: 7 }, 'SG_ERR_VALIDATION', /^name: /],
    ['an unknown field', { name: 'a', token: 'x' }, 'SG_ERR_VALIDATION', /^token: /],
    [
      'an unknown field of a provider',
      { name: 'a', engine: 'provider', provider: { id: 'p', apiKey: 'k' } },
      'SG_ERR_VALIDATION',
      /^provider\.apiKey: /,
    ],
    [
      'servers in place of their names',
      { name: 'a', engine: 'provider', session: { mcpServers: [{ url: 'http://x' }] } },
      'SG_ERR_VALIDATION',
      /^session\.mcpServers/,
    ],
    [
      'a capability that does not exist',
      { name: 'a', engine: 'provider', session: { capabilities: ['root'] } },
      'SG_ERR_VALIDATION',
      /^session\.capabilities/,
    ],
    [
      'a key in place of its variable',
      { name: 'a', engine: 'provider', provider: { id: 'p', apiKeyEnv: 'sk-123' } },
      'SG_ERR_VALIDATION',
      /^provider\.apiKeyEnv: /,
    ],
    [
      'a mode that nobody has',
      { name: 'a', defaults: { permissionMode: 'yolo' } },
      'SG_ERR_VALIDATION',
      /^defaults\.permissionMode: /,
    ],
    ['an engine that does not exist', { name: 'a', engine: 'other' }, 'SG_ERR_VALIDATION', /^engine: /],
    ['an empty configDir', { name: 'a', configDir: '' }, 'SG_ERR_VALIDATION', /^configDir: /],
    ['a provider on cli', { name: 'a', provider: { id: 'p' } }, 'SG_ERR_PROFILE_INVALID', /^provider: .*engine/],
    ['a session block on cli', { name: 'a', session: {} }, 'SG_ERR_PROFILE_INVALID', /^session: /],
    ['an agent that does not exist', { name: 'a', agent: 'hal' }, 'SG_ERR_PROFILE_INVALID', /^agent: .*hal.*claude/],
    [
      'a mode that the agent lacks',
      { name: 'a', agent: 'gemini', defaults: { permissionMode: 'auto' } },
      'SG_ERR_PROFILE_INVALID',
      /^defaults\.permissionMode: gemini/,
    ],
    [
      'a configDir on provider',
      { name: 'a', engine: 'provider', configDir: '/x' },
      'SG_ERR_PROFILE_INVALID',
      /^configDir: /,
    ],
    ['an agent on provider', { name: 'a', engine: 'provider', agent: 'claude' }, 'SG_ERR_PROFILE_INVALID', /^agent: /],
    ...['acceptEdits', 'plan', 'auto'].map((permissionMode): [string, unknown, string, RegExp] => [
      `${permissionMode} on provider`,
      { name: 'a', engine: 'provider', defaults: { permissionMode } },
      'SG_ERR_PROFILE_INVALID',
      new RegExp(`^defaults\\.permissionMode: .*${permissionMode}`),
    ]),
    ...[
      'ftp://h',
      'file:///etc',
      'nowhere',
      'https://u:p@h/v1',
      'https://u@h',
      'https://h/v1?key=1',
      'https://h/#k',
      'https://h/?',
    ].map((baseUrl): [string, unknown, string, RegExp] => [
      `base URL ${baseUrl}`,
      { name: 'a', engine: 'provider', provider: { id: 'p', baseUrl } },
      'SG_ERR_PROFILE_INVALID',
      /^provider\.baseUrl: (?!.*key=1)/,
    ]),
  ]
  for (const [what, input, code, detail] of refused)
    t.throws(() => validateProfile(input, rules), refusal(code, detail), what)
})

t.test('no hostile name is a name', async (t) => {
  const hostile = [
    ...[
      '',
      '.',
      '..',
      '...',
      '.a',
      '-a',
      '_a',
      'a/b',
      'a\\b',
      '../a',
      'a b',
      ' a',
      'a ',
      'a\n',
      'a\0',
      'a%2fb',
      'a:b',
      '*',
    ],
    ...['__proto__', 'ä', 'а', 'a\u200b', 'ａ', 'a\u0301', 'x'.repeat(65), '$(id)', '<a>', 'a;b', '日本'],
  ]
  for (const name of hostile)
    t.equal(
      codeOf(() => validateProfile({ name }, rules)),
      'SG_ERR_VALIDATION',
      JSON.stringify(name),
    )
})

t.test('a provider profile needs createEngineRunner', async (t) => {
  t.throws(
    () => validateProfile({ name: 'a', engine: 'provider' }, { ...rules, hasEngineRunner: false }),
    refusal('SG_ERR_PROFILE_INVALID', /createEngineRunner/),
  )
})

t.test('the copy is nobody else’s, and nobody can change it', async (t) => {
  const input = { name: 'a', engine: 'provider', provider: { id: 'p', models: ['m'] } }
  const profile = validateProfile(input, rules)
  input.provider.models.push('n')
  t.same(profile.provider?.models, ['m'])
  t.throws(() => profile.provider!.models!.push('o'), TypeError)
  t.throws(() => Object.assign(profile.provider!, { baseUrl: 'http://x' }), TypeError)
})

t.test('a default of bypassPermissions is refused while that mode is disabled', async (t) => {
  const bypass = validateProfile({ name: 'a', defaults: { permissionMode: 'bypassPermissions' } }, rules)
  t.doesNotThrow(() => assertBypassAllowed(bypass, false))
  t.throws(() => assertBypassAllowed(bypass, true), refusal('SG_ERR_BYPASS_DISABLED'))
  t.doesNotThrow(() => assertBypassAllowed(validateProfile({ name: 'a' }, rules), true))
})

t.test('a provider profile that the bundled engine could begin no session of is refused, naming the field', (t) => {
  const bundled = { ...rules, isHostsEngine: false }
  const profile = (provider?: object, defaults?: object) => ({
    ...{ name: 'a', engine: 'provider' },
    ...(provider && { provider }),
    ...(defaults && { defaults }),
  })
  const table: [input: object, path: string, message: RegExp][] = [
    [profile(), 'provider', /missing/],
    [profile({ id: 'anthropc', model: 'm' }), 'provider.id', /did you mean anthropic\?; known are demo, openai-/],
    [profile({ id: 'openai-compatible', model: 'm' }), 'provider.baseUrl', /missing/],
  ]
  for (const [input, path, message] of table) {
    t.throws(
      () => validateProfile(input, bundled),
      { code: 'SG_ERR_PROFILE_INVALID', errors: [{ path, message }] },
      path,
    )
    t.doesNotThrow(() => validateProfile(input, rules), 'of which providers an engine of the host has is its word')
  }
  const other = profile({ id: 'demo' }, { model: 'm' })
  t.doesNotThrow(
    () => validateProfile(other, bundled),
    'whoever names a model can use one whose default is not offered',
  )
  t.end()
})
