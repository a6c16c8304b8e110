import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import selectSerializer from '@fastify/fast-json-stringify-compiler'
import { KindGuard, type TObject, type TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'
import { GatewayError } from '../src/errors.js'
import { parseJson } from '../src/lib/json-depth.js'
import { refusalOf } from '../src/lib/validation.js'
import { announcesBody } from './http-versions.js'

const NOT_UTF8 = 'The body is not UTF-8. Send the JSON as UTF-8.'
const NOT_ENCODED = 'Send the body as it is, without a Content-Encoding.'
const READ_BEFORE =
  'The body was read before the request was handed to the gateway: let nothing in front of it parse bodies, as express.json() does.'

/** JSON is the one content type of request bodies: bounded in size and depth, and a DELETE may announce one and send none. */
export function parseJsonBodies(scope: FastifyInstance, maxBodyBytes: number): void {
  scope.removeAllContentTypeParsers()
  scope.addHook('preParsing', (request, _reply, payload, done) => {
    const { 'content-encoding': encoding } = request.headers
    // its end, which has been, would be waited for without one; of a GET it is not read
    const isRead = !/^(?:GET|HEAD)$/.test(request.method) && announcesBody(request.raw)
    if (isRead && (payload as Readable).readableEnded) return done(new Error(READ_BEFORE))
    const isEncoded = encoding !== undefined && !/^(?:identity)?$/i.test(encoding.trim()) && announcesBody(request.raw)
    done(isEncoded ? new GatewayError('SG_ERR_UNSUPPORTED_MEDIA_TYPE', { detail: NOT_ENCODED }) : null)
  })
  scope.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: maxBodyBytes },
    (request, body: Buffer, done) => {
      if (body.length === 0 && request.method === 'DELETE') {
        done(null, undefined)
        return
      }
      try {
        if (body.length === 0) throw new GatewayError('SG_ERR_INVALID_JSON', { detail: 'The body is empty.' })
        // read all the same, it would be another text than the one that was sent
        if (!isUtf8(body)) throw new GatewayError('SG_ERR_INVALID_JSON', { detail: NOT_UTF8 })
        done(null, parseJson(body.toString()))
      } catch (error) {
        done(error as Error, undefined)
      }
    },
  )
}

/**
 * Checks the parts of a request against their TypeBox schemas. Nothing is filled in or removed and bodies are not coerced; in a query,
 * where everything is text, a decimal number becomes one where the schema has an integer.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  let compiled: TypeCheck<TSchema> | undefined
  const integers = httpPart === 'querystring' ? integerNames(schema as TObject) : []
  return (value: unknown) => {
    compiled ??= TypeCompiler.Compile(schema)
    const read = integers.length > 0 ? withIntegers(value as Record<string, unknown>, integers) : value
    if (!compiled.Check(read)) return { error: refusalOf(compiled.Errors(read)) }
    return read === value || { value: read }
  }
}

const integerNames = (schema: TObject): string[] =>
  Object.entries(schema.properties)
    .filter(([, property]) => KindGuard.IsInteger(property))
    .map(([name]) => name)

function withIntegers(query: Record<string, unknown>, names: string[]): Record<string, unknown> {
  const read = { ...query }
  for (const name of names) {
    const text = read[name]
    // a negative one too, so that what is said of it is the bound
    if (typeof text === 'string' && /^(\d{1,16}|-[1-9]\d{0,15})$/.test(text)) read[name] = Number(text)
  }
  return read
}

type Serialize = ReturnType<FastifySerializerCompiler<TSchema>>

const compile = selectSerializer()({}, {}) as FastifySerializerCompiler<TSchema>
/** By schema as JSON: routes share them, and so do all gateways of a process. */
const serializers = new Map<string, Serialize>()

/**
 * Fastify's own, whatever the host has set for its routes: answers carry what their schema declares. One is compiled with the first
 * answer that needs it, since compiling all of them is most of what a start costs.
 */
export const serializerCompiler: FastifySerializerCompiler<TSchema> = (route) => {
  let serialize: Serialize | undefined
  return (answer) => {
    serialize ??= serializerOf(route)
    return serialize(answer)
  }
}

function serializerOf(route: Parameters<typeof compile>[0]): Serialize {
  const text = JSON.stringify(route.schema)
  const known = serializers.get(text) ?? compile(route)
  serializers.set(text, known)
  return known
}
