import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Parser } from '@asyncapi/parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { apiDocuments } from '../../scripts/write-api-documents.mjs'
import * as gateway from '../../src/index.js'
import { buildServer } from '../fixtures/build.js'

const committed = (file: string) => readFileSync(new URL(`../../schemas/${file}`, import.meta.url), 'utf8')
// biome-ignore lint/suspicious/noExplicitAny: the documents are looked into freely
const openapi: any = JSON.parse(committed('openapi.json'))
// biome-ignore lint/suspicious/noExplicitAny: the documents are looked into freely
const asyncapi: any = JSON.parse(committed('asyncapi.json'))

interface Media {
  schema: object
  example?: unknown
}
interface Described {
  operationId: string
  tags: string[]
  summary: string
  description: string
  /** Empty for who asks nobody who they are. */
  security?: []
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { $ref?: string; content?: Record<string, Media> }>
}

const operations = Object.entries<Record<string, Described>>(openapi.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ what: `${method} ${path}`, ...operation })),
)
const resolved = (response: { $ref?: string; content?: Record<string, Media> }) =>
  response.$ref ? openapi.components.responses[response.$ref.split('/').at(-1)!] : response

t.test('a change of the wire shows in the committed documents: npm run schemas writes them', async (t) => {
  const now = await apiDocuments(gateway)
  for (const file of ['openapi.json', 'asyncapi.json'] as const)
    t.ok(now[file] === committed(file), `schemas/${file} is what is served`)
})

t.test('generators and validators take the documents as they are', async (t) => {
  const folder = t.testdir({ 'redocly.yaml': 'extends: [recommended]\n' })
  const cli = join(createRequire(import.meta.url).resolve('@redocly/cli/package.json'), '..', 'bin', 'cli.js')
  writeFileSync(join(folder, 'openapi.json'), committed('openapi.json'))
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const arguments_ = [cli, 'lint', '--format=json', 'openapi.json']
  const { stdout, stderr } = spawnSync(process.execPath, arguments_, { cwd: folder, encoding: 'utf8', env })
  t.match(JSON.parse(stdout), { totals: { errors: 0, warnings: 0 } }, stderr)
  t.match(await new Validator().validate(structuredClone(openapi)), { valid: true })
  const diagnostics = await new Parser().validate(committed('asyncapi.json'))
  t.same(
    diagnostics.filter(({ severity }) => severity <= 1).map(({ message, path }) => `${path.join('.')}: ${message}`),
    [],
  )
})

t.test('every operation says what it is for, and every example is valid', async (t) => {
  const ajv = new Ajv2020({ strict: false })
  ajv.addFormat('binary', true)
  ajv.addSchema({ $id: 'openapi', ...openapi })
  ajv.addSchema({ $id: 'asyncapi', ...asyncapi })
  const check = (document: string, schema: object, example: unknown, what: string) => {
    const text = JSON.stringify(schema).replaceAll('"#/', `"${document}#/`)
    const validate = ajv.compile(JSON.parse(text))
    t.ok(validate(example), `${what}: ${ajv.errorsText(validate.errors)}`)
  }
  const tags = new Set(openapi.tags.map(({ name }: { name: string }) => name))
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length)
  for (const { what, operationId, tags: own, summary, description, requestBody, responses, security } of operations) {
    t.match(
      { operationId, summary, description },
      { operationId: /^[a-z]\w+$/, summary: /\w/, description: /\w/ },
      what,
    )
    t.ok(own.length === 1 && tags.has(own[0]!), what)
    const medias = [requestBody, ...Object.values(responses).map(resolved)].flatMap((part) =>
      Object.entries<Media>(part?.content ?? {}),
    )
    for (const [type, media] of medias)
      if (type !== 'application/octet-stream') check('openapi', media.schema, media.example, `${what} ${type}`)
    t.ok(
      Object.keys(responses).some((status) => status.startsWith('2')),
      what,
    )
    for (const status of security ? ['400', '500'] : ['400', '401', '500', '503'])
      t.ok(responses[status], `${what} ${status}`)
  }
  for (const [name, message] of Object.entries<{ payload: object; examples: { payload: unknown }[] }>(
    asyncapi.components.messages,
  ))
    for (const { payload } of message.examples) check('asyncapi', message.payload, payload, name)
})

t.test('every public type has a name, and its variants are told apart by their type', async (t) => {
  for (const name of [
    'SessionInfo',
    'JobInfo',
    'ProfileInfo',
    'TokenUsage',
    'PermissionRequest',
    'Problem',
    'SessionStatus',
  ])
    t.ok(openapi.components.schemas[name], name)
  t.same(openapi.components.schemas.SessionStatus.enum.slice(0, 2), ['starting', 'running'])
  for (const [document, name, tag, variant] of [
    [openapi, 'SessionEvent', 'system_init', 'SystemInitEvent'],
    [openapi, 'ServerFrame', 'command_error', 'CommandErrorFrame'],
    [openapi, 'SessionCommand', 'user_message', 'UserMessageCommand'],
    [openapi, 'QueueFrame', 'job_event', 'JobEventFrame'],
    [openapi, 'ResolvePermissionRequest', 'allow', 'AllowPermissionAnswer'],
    [asyncapi, 'ServerFrame', 'attached', 'AttachedFrame'],
  ] as const) {
    const { oneOf, discriminator } = document.components.schemas[name]
    t.ok(
      oneOf.some(({ $ref }: { $ref: string }) => $ref === `#/components/schemas/${variant}`),
      variant,
    )
    if (document === asyncapi) t.equal(discriminator, 'type')
    else t.equal(discriminator.mapping[tag], `#/components/schemas/${variant}`)
    t.ok(document.components.schemas[variant], variant)
  }
})

/** What is plain from its name; who reads a number has to know what it counts, and in what. */
const PLAIN_NUMBERS = ['allow', 'ask', 'deny', 'numTurns']

t.test('every public type says what it is, and every number what it counts', async (t) => {
  interface Described {
    type?: string
    description?: string
    properties?: Record<string, Described>
  }
  for (const document of [openapi, asyncapi])
    for (const [name, schema] of Object.entries<Described>(document.components.schemas)) {
      t.match(schema.description, /^\S.*[.…]$/s, name)
      for (const [field, { type, description }] of Object.entries(schema.properties ?? {}))
        if (type === 'number' || type === 'integer')
          t.ok(description || PLAIN_NUMBERS.includes(field), `${name}.${field}`)
    }
  t.same(openapi.components.schemas.SessionInfo.properties.usage, {
    $ref: '#/components/schemas/TokenUsage',
    description: 'Of all turns so far.',
  })
  t.match(openapi.components.schemas.TokenUsage.description, /^Token counts/)
  t.match(openapi.components.schemas.SessionInfo.properties.createdAt.description, /epoch milliseconds/)
})

t.test('probes and counters are described where they are, for gateways that have them', async (t) => {
  t.match(openapi.paths['/healthz'].get, { operationId: 'getHealth', security: [] })
  t.match(Object.keys(openapi.paths['/readyz'].get.responses), ['200', '400', '408', '431', '500', '503'])
  t.ok(openapi.paths['/metrics'].get.responses['401'])
  const { call } = await buildServer(t, { health: true, basePath: '/deep/v1' })
  const paths = Object.keys((await call('GET', '/openapi.json')).json.paths)
  t.ok(paths.includes('/healthz') && paths.includes('/deep/v1/sessions'))
  t.notOk(paths.includes('/metrics'))
})

t.test('the documents list the routes that exist, and no others', async (t) => {
  const { call } = await buildServer(t)
  const bare = (await call('GET', '/openapi.json')).json
  const paths = Object.keys(bare.paths)
  t.notOk(paths.some((path) => /jobs|queue|subscriptions|vapid/.test(path)))
  t.same(Object.keys(bare.paths['/v1/profiles']), ['get'])
  t.same(Object.keys(bare.paths['/v1/profiles/{name}']), ['get'])
  t.same(Object.keys((await call('GET', '/asyncapi.json')).json.channels), ['session', 'notifications'])
  const all = operations.map(({ operationId }) => operationId)
  for (const id of ['submitJob', 'createProfile', 'updateProfile', 'deleteProfile', 'followQueue', 'subscribe'])
    t.ok(all.includes(id), id)
})
