import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ConfigError, type ConfigProblem } from '../../src/daemon/config-problem.js'
import { prepareServer } from '../../src/daemon/daemon.js'
import { loadConfig } from '../../src/daemon/load-config.js'

const DEMO = { name: 'demo', engine: 'provider', provider: { id: 'demo' } }
const NTFY = { format: 'ntfy', url: 'https://ntfy.example/topic' }

/** What `session-gateway check` finds: what it refuses, and what it warns of. */
async function check(t: Test, notifications: object, config: object = {}) {
  const file = join(t.testdir(), 'gateway.json')
  const whole = { allowUnauthenticated: true, storage: 'memory', profiles: [DEMO], notifications, ...config }
  writeFileSync(file, JSON.stringify(whole), { mode: 0o600 })
  const lines: string[] = []
  try {
    const { config, ...loaded } = loadConfig(file, {}, {})
    const quiet = { ...loaded, config: { ...config, log: { level: 'warn' as const, pretty: false } } }
    const { server } = await prepareServer(quiet, { write: (line) => void lines.push(line) }, { thorough: true })
    await server.close()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { refused: error.problems.map(told), warned: [] }
  }
  const warned = lines.map((line) => JSON.parse(line) as { path: string; msg: string })
  return { refused: [], warned: warned.map(({ path, msg: message }) => told({ path, message })) }
}

const told = ({ path, message }: ConfigProblem) => `${path}: ${message}`

t.test('what would never reach anybody is refused, at its place, with what to write', async (t) => {
  const at = (place: string, ...words: string[]) => RegExp(`^notifications\\.${place}: .*${words.join('.*')}`)
  const cases: [notifications: object, refusal: RegExp][] = [
    [{ reminders: [{ afterMs: 1, channel: 'phone' }] }, at('reminders\\[0\\]\\.channel', '"phone"; none is declared')],
    [{ channels: [NTFY], reminders: [{ afterMs: 1, channel: 'phone' }] }, at('reminders\\[0\\]\\.channel', 'are ntfy')],
    [
      { channels: [{ format: 'slack', url: `\${NO_SUCH_VARIABLE}` }] },
      at('channels\\[0\\]\\.url', 'variable NO_SUCH_VARIABLE is not set'),
    ],
    [
      { channels: [{ ...NTFY, format: 'webhook', secret: `\${NO_SUCH_VARIABLE}` }] },
      at('channels\\[0\\]\\.secret', 'variable NO_SUCH_VARIABLE is not set'),
    ],
    [{ channels: [{ format: 'slack', url: { file: 'none' } }] }, at('channels\\[0\\]\\.url', 'there is no such file')],
    [
      { channels: [{ format: 'slack', url: 'http://169.254.169.254/x' }] },
      at('channels\\[0\\]\\.url', '169.254.169.254 may not be reached from here', 'metadata'),
    ],
    [{ channels: [NTFY, { ...NTFY, name: 'b', url: 'ftp://x' }] }, at('channels\\[1\\]\\.url', 'not http or https')],
    [{ channels: [{ format: 'web_push' }] }, at('channels\\[0\\]\\.subject', 'missing', 'mailto:')],
    [{ channels: [{ format: 'web_push', subject: 'ops' }] }, at('channels\\[0\\]\\.subject', 'mailto:')],
    [{ channels: [NTFY, NTFY] }, at('channels\\[1\\]\\.name', '"ntfy" already', 'give each its own')],
    [{ channels: [{ ...NTFY, format: 'discord' }] }, at('channels\\[0\\]\\.format', '"slack", "ntfy" or "web_push"')],
    [{ channels: [{ url: 'https://x' }] }, at('channels\\[0\\]\\.format', 'missing')],
    [{ channels: [null] }, at('channels\\[0\\]', 'expected \\{ "format": … \\}')],
    [{ channels: [true] }, at('channels\\[0\\]', 'expected \\{ "format": … \\}')],
    [{ channels: [NTFY], answerLinks: true }, at('answerLinks', 'publicUrl', 'https://')],
  ]
  for (const [notifications, refusal] of cases) {
    const { refused } = await check(t, notifications)
    t.equal(refused.length, 1, JSON.stringify(notifications))
    t.match(refused[0], refusal)
  }
})

t.test('what is served and hardly meant is told, with what to do', async (t) => {
  const links = { channels: [NTFY], answerLinks: true }
  const webhook = { url: 'https://ops.example/hook' }
  const cases: [notifications: object, warning: RegExp, config?: object][] = [
    [{ ...links, publicUrl: 'http://gateway.example' }, /^notifications\.publicUrl: .*http .*https$/],
    [{ ...links, publicUrl: 'https://gateway.example/v1/' }, /^notifications\.publicUrl: .*\/v1 twice; leave it out/],
    [{ answerLinks: true, publicUrl: 'https://gateway.example' }, /^notifications\.answerLinks: .*no channel/],
    [{ webhook, channels: [{ ...NTFY, format: 'webhook' }] }, /^notifications\.channels\[0\]\.name: .*of its own$/],
    [{ webhook: { ...webhook, events: [] } }, /^notifications\.webhook\.events: nothing is told.*leave it out/],
    [{ channels: [{ ...NTFY, events: [] }] }, /^notifications\.channels\[0\]\.events: nothing is told/],
    [{ channels: [{ ...NTFY, profiles: ['demo', 'dem'] }] }, /^notifications\.channels\[0\]\.profiles\[1\]: .*"dem"/],
  ]
  for (const [notifications, warning] of cases) {
    const { refused, warned } = await check(t, notifications)
    t.same(refused, [])
    t.equal(warned.length, 1, JSON.stringify(notifications))
    t.match(warned[0], warning)
  }
  const fine: [notifications: object, config?: object][] = [
    [{ ...links, publicUrl: 'https://gateway.example' }],
    [{ ...links, publicUrl: 'http://127.0.0.1:8787' }],
    [{ ...links, publicUrl: 'http://[::1]:8787/below' }],
    [{ ...links, publicUrl: 'https://gateway.example/v11' }],
    [{ webhook, answerLinks: true, publicUrl: 'https://gateway.example' }],
    [{ webhook, channels: [{ ...NTFY, profiles: ['demo'] }] }],
    [{ channels: [{ ...NTFY, profiles: ['made-later'] }] }, { profileStore: { file: 'profiles.json' } }],
    [{ channels: [{ ...NTFY, events: [] }], reminders: [{ afterMs: 1, channel: 'ntfy' }] }],
    [{ channels: [{ format: 'web_push' }], publicUrl: 'https://gateway.example' }],
  ]
  for (const [notifications, config] of fine) t.same(await check(t, notifications, config), { refused: [], warned: [] })
})
