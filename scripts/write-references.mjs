import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const cell = (text) => String(text).replaceAll('|', '\\|').replaceAll('\n', ' ')
const row = (...cells) => `| ${cells.map(cell).join(' | ')} |`
const table = (head, rows) => [row(...head), row(...head.map(() => '---')), ...rows].join('\n')

const isFileReference = ({ properties }) => Object.keys(properties ?? {}).join() === 'file'
const isVariableReference = ({ pattern = '' }) => pattern.startsWith('\\$')

/** What may stand there, in a few words; any string may be a variable's, which is said once for all. */
function typeOf(schema) {
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ')
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.anyOf) return unionOf(schema.anyOf)
  if (schema.type === 'array') return `list of ${typeOf(schema.items).replace(/^(object|string)$/, '$1s')}`
  return schema.type ?? 'anything'
}

function unionOf(variants) {
  const isSecret = variants.some(isFileReference) && variants.some(({ type }) => type === 'string')
  const own = variants.filter((variant) => !isVariableReference(variant) && !(isSecret && isFileReference(variant)))
  return `${[...new Set(own.map(typeOf))].join(' or ')}${isSecret ? '; secret' : ''}`
}

const isShown = (value) => value !== undefined && JSON.stringify(value) !== '{}'

/** Objects that a `format` tells apart as one: a key is required where all require it, and what is not said of all says of which it is. */
function oneOf(schema) {
  const formats = (schema.anyOf ?? []).filter(({ properties }) => properties?.format)
  if (formats.length === 0) return schema
  const properties = {}
  for (const name of new Set(formats.flatMap((format) => Object.keys(format.properties)))) {
    const having = formats.filter((format) => format.properties[name])
    const members = having.map((format) => format.properties[name])
    const said = members.map(({ description }, at) =>
      having.length === formats.length && members.every((member) => member.description === description)
        ? description
        : `\`${having[at].properties.format.const}\`: ${description}`,
    )
    const [first] = members
    const isOne = members.every((member) => typeOf(member) === typeOf(first))
    const description = first.description === undefined ? undefined : [...new Set(said)].join(' · ')
    properties[name] = { ...(isOne ? first : { anyOf: members }), description }
  }
  const required = Object.keys(properties).filter((name) => formats.every((format) => format.required?.includes(name)))
  return { properties, required }
}

/** Every key of the configuration, nested ones behind their section, in the order of the schema. */
function* keysOf(schema, path = '') {
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const at = `${path}${name}`
    yield { at, member, isRequired: path !== '' && (schema.required ?? []).includes(name) }
    for (const inner of member.anyOf ?? [member]) {
      if (isFileReference(inner) && (member.anyOf ?? []).some(({ type }) => type === 'string')) continue
      if (inner.properties) yield* keysOf(inner, `${at}.`)
      if (inner.items) yield* keysOf(oneOf(inner.items), `${at}[].`)
    }
  }
}

/** @param schema what `gateway.json` is checked with, as editors see it */
export const configurationReference = (
  schema,
) => `<!-- Written by \`npm run schemas\` from schemas/config.ts; do not edit. -->

# Configuration

Every key of \`gateway.json\`. How to write one is in [Operating](operating.md#configure-it); the options of the library have the same names
([Embedding](embedding.md#options)). ${schema.description}

${table(
  ['key', 'type', 'default', 'meaning'],
  [...keysOf(schema)].map(({ at, member, isRequired }) =>
    row(
      `\`${at}\``,
      typeOf(member),
      isRequired ? 'required' : isShown(member.default) ? `\`${JSON.stringify(member.default)}\`` : '',
      member.description ?? '',
    ),
  ),
)}
`

/**
 * @param openapi the committed document
 * @param errors of the catalogue: code, status and sentence
 */
export function httpReference(openapi, asyncapi, errors) {
  const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
  )
  const sockets = Object.values(asyncapi.channels).map(({ address, title, summary, description }) =>
    row(`\`${address}\``, title ?? summary ?? description ?? ''),
  )
  return `<!-- Written by \`npm run schemas\` from schemas/openapi.json and src/errors.ts; do not edit. -->

# HTTP API

An overview of [openapi.json](../schemas/openapi.json) and [asyncapi.json](../schemas/asyncapi.json), which have every shape. All paths stand under
\`basePath\` and behind \`authenticate\`; job and queue routes are there with \`queue\`, managing profiles with \`profileStore\`. On the daemon, outside
\`basePath\`: \`GET /healthz\`, \`GET /readyz\` and, behind \`authenticate\`, \`GET /metrics\`. How people sign in to the console is in
[The console](console.md#signing-in).

Lists take \`limit\` and \`cursor\`; a further page is announced in \`Link: <…>; rel="next"\`, and a cursor stays good over a restart. Times are epoch
milliseconds, money is US dollars, what is unknown is absent.
${openapi.tags
  .map(
    ({ name, description }) => `
## ${name[0].toUpperCase()}${name.slice(1)}

${description}

${table(
  ['', '', 'operation', ''],
  operations
    .filter(({ tags }) => tags[0] === name)
    .map(({ method, path, operationId, summary }) => row(method, `\`${path}\``, `\`${operationId}\``, summary)),
)}
`,
  )
  .join('')}
## Sockets

${table(['address', ''], sockets)}

How to speak on them is in [Clients](clients.md#sockets).

## Errors

Every refusal is \`application/problem+json\`: \`type\`, \`title\`, \`status\`, \`detail\` (a sentence for a person), \`instance\` (the request's id in the log),
\`code\` (match this), \`error\` (the same as \`detail\`), and \`errors\` (\`[{ path, message }]\`, the fields that were wrong). 429 and 503 carry \`Retry-After\`.

${table(
  ['code', 'status', ''],
  errors.map(({ code, status, detail }) => row(`\`${code}\``, status, detail)),
)}
`
}

/** The references in docs/, by the names of their files. */
export function references({ schema, openapi, asyncapi, errors }) {
  return { 'configuration.md': configurationReference(schema), 'http-api.md': httpReference(openapi, asyncapi, errors) }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { readFile } = await import('node:fs/promises')
  const read = async (file) => JSON.parse(await readFile(new URL(`../schemas/${file}`, import.meta.url), 'utf8'))
  const { publishedConfigSchema } = await import('../dist/src/daemon/config-schema.js')
  const { ERROR_CODES, GatewayError } = await import('../dist/src/errors.js')
  const errors = ERROR_CODES.map((code) => new GatewayError(code)).map(({ code, statusCode, message }) => ({
    ...{ code, status: statusCode, detail: message },
  }))
  const [openapi, asyncapi] = await Promise.all(['openapi.json', 'asyncapi.json'].map(read))
  for (const [file, text] of Object.entries(references({ schema: publishedConfigSchema(), openapi, asyncapi, errors })))
    await writeFile(new URL(`../docs/${file}`, import.meta.url), text)
}
