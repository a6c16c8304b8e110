import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../src/errors.js'
import { parseJson } from '../src/lib/json-depth.js'

/** JSON is the one content type of request bodies: bounded in size and depth, and a DELETE may announce one and send none. */
export function parseJsonBodies(scope: FastifyInstance, maxBodyBytes: number): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    'application/json',
    { parseAs: 'string', bodyLimit: maxBodyBytes },
    (request, text: string, done) => {
      if (text === '' && request.method === 'DELETE') {
        done(null, undefined)
        return
      }
      try {
        if (text === '') throw new GatewayError('SG_ERR_INVALID_JSON', { detail: 'The body is empty.' })
        done(null, parseJson(text))
      } catch (error) {
        done(error as Error, undefined)
      }
    },
  )
}
