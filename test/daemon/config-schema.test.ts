// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is what config files hold
import { readFileSync } from 'node:fs'
import t from 'tap'
import { publishedConfigSchema } from '../../src/daemon/config-schema.js'
import { writeStartingPoint } from '../../src/daemon/starting-point.js'
import { hashToken } from '../../src/daemon/tokens.js'
import fastify from '../fixtures/host.js'

const SHA256 = hashToken('x')

/** Validates as an editor does, by a JSON Schema validator that knows nothing of TypeBox. */
async function build() {
  const customOptions = { strict: false, coerceTypes: false, removeAdditional: false, useDefaults: false } as const
  const app = fastify({ ajv: { customOptions } })
  app.post('/', { schema: { body: publishedConfigSchema() } }, async () => 'ok')
  await app.ready()
  return async (config: unknown) =>
    (await app.inject({ method: 'POST', url: '/', payload: config as object })).statusCode === 200
}

t.test('an editor accepts what the daemon accepts', async (t) => {
  const accepts = await build()
  const { file } = writeStartingPoint(`${t.testdir()}/gateway.json`)
  const accepted: Record<string, object> = {
    nothing: {},
    'a starting point': JSON.parse(readFileSync(file, 'utf8')),
    'the quickstart': JSON.parse(readFileSync('examples/quickstart/gateway.json', 'utf8')),
    'a hash': { auth: { tokens: [{ name: 'a', sha256: SHA256, expiresAt: '2026-12-31' }] } },
    'a variable in the place of a pattern': {
      auth: { tokens: [{ name: '${WHO}', sha256: '${HASH}' }] },
      basePath: '/${BASE}',
    },
    'a file in the place of a secret': { queue: { webhookSecret: [{ file: 'a' }, '${B}'] } },
    'a variable in the place of a choice': { log: { level: '${LEVEL}' } },
    'storage of both kinds': { storage: { sqlite: 'x' } },
    'headers from files': { notifications: { webhook: { url: { file: 'u' }, headers: { a: { file: 'h' } } } } },
  }
  for (const [what, config] of Object.entries(accepted)) t.ok(await accepts(config), what)
})

t.test('an editor refuses what the daemon refuses', async (t) => {
  const accepts = await build()
  const refused: Record<string, object> = {
    'an unknown key': { lisen: {} },
    'an unknown key inside': { listen: { prot: 1 } },
    'a number as a string': { listen: { port: '1' } },
    'a hash that is none': { auth: { tokens: [{ name: 'a', sha256: 'x' }] } },
    'a file where no secret is': { basePath: { file: 'x' } },
    'a choice that is none': { log: { level: 'loud' } },
    'a storage that is none': { storage: { sqlit: 'x' } },
  }
  for (const [what, config] of Object.entries(refused)) t.notOk(await accepts(config), what)
})

t.test('it describes itself and carries no marks of ours', async (t) => {
  const text = JSON.stringify(publishedConfigSchema())
  t.notMatch(text, /x-secret|x-path/)
  const { properties } = publishedConfigSchema() as { properties: Record<string, { description?: string }> }
  const silent = Object.entries(properties).filter(([, schema]) => !('description' in schema))
  t.strictSame(
    silent.map(([name]) => name),
    [],
  )
})
