import t from 'tap'
import type { ProfileInfo } from '../../client/index.js'
import { browserOf } from '../../console/src/model/browser.js'
import { changesOf, EMPTY_PROFILE, formOf, profileOf, refusalsAt } from '../../console/src/model/profile-form.js'
import { keyBytes } from '../../console/src/model/push-key.js'

const PROFILE: ProfileInfo = {
  name: 'docs',
  engine: 'provider',
  managed: true,
  description: 'Writes',
  provider: { id: 'openai', model: 'm', models: ['m', 'n'], baseUrl: 'https://x.example/v1', apiKeyEnv: 'KEY' },
  defaults: { model: 'm', permissionMode: 'dontAsk' },
  session: { capabilities: ['web_search'], mcpServers: ['a', 'b'], instructions: 'Be brief.' },
}

t.test('a profile that is opened and saved is the same', async (t) => {
  const { managed: _, ...sent } = PROFILE
  t.strictSame(profileOf(formOf(PROFILE)), sent)
  t.strictSame(changesOf(formOf(PROFILE), formOf(PROFILE)), {})
  const cli: ProfileInfo = { name: 'c', engine: 'cli', agent: 'claude', configDir: '/x', trustWorkspace: true }
  t.strictSame(profileOf(formOf(cli)), cli)
})

t.test('a change has what is different, and clears what was emptied', async (t) => {
  const before = formOf(PROFILE)
  t.strictSame(changesOf(before, { ...before, description: '', defaultModel: '', defaultMode: '' }), {
    description: null,
    defaults: null,
  })
  t.strictSame(changesOf(before, { ...before, providerModels: 'm\n\n o ' }), {
    provider: { ...PROFILE.provider, models: ['m', 'o'] },
  })
  t.strictSame(changesOf(before, { ...before, limitsSession: false }), { session: null })
  t.strictSame(changesOf(before, { ...before, name: 'other' }), {}, 'a name is never changed')
})

t.test('what is left empty is left out, and an empty grant is a grant of nothing', async (t) => {
  t.strictSame(profileOf({ ...EMPTY_PROFILE, name: ' n ', providerId: 'demo' }), {
    name: 'n',
    engine: 'provider',
    provider: { id: 'demo' },
  })
  t.strictSame(profileOf({ ...EMPTY_PROFILE, limitsSession: true }).session, { capabilities: [], mcpServers: [] })
})

t.test('each refusal is at its field', async (t) => {
  const { at, rest } = refusalsAt([
    { path: 'provider.baseUrl', message: 'must be an http or https URL.' },
    { path: '/session/mcpServers/0', message: 'too short' },
    { path: 'provider', message: 'is needed' },
    { path: 'name', message: 'one' },
    { path: 'name', message: 'two' },
    { path: 'unheard.of', message: 'x' },
  ])
  t.strictSame(Object.fromEntries(at), {
    providerBaseUrl: 'must be an http or https URL.',
    mcpServers: 'too short',
    providerId: 'is needed',
    name: 'one two',
  })
  t.strictSame(rest, [{ path: 'unheard.of', message: 'x' }])
})

t.test('browsers are known by two words, and keys are bytes', async (t) => {
  const chrome = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36'
  t.equal(browserOf(chrome), 'Chrome on Linux')
  t.equal(browserOf('Mozilla/5.0 (iPhone; CPU iPhone OS 17 like Mac OS X) Version/17 Safari/604.1'), 'Safari on iPhone')
  t.equal(browserOf(`${chrome} Edg/120.0`), 'Edge on Linux')
  t.equal(browserOf('curl/8'), undefined)
  t.strictSame([...keyBytes('-_8A')], [251, 255, 0])
})
