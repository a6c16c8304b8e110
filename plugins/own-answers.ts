import type { FastifyInstance, FastifyReply } from 'fastify'

/**
 * Makes text of what the handlers of a scope answer before hooks of the host are asked: one that wraps the answers of its own routes would
 * make something of these that their schemas do not have.
 */
export function serializeFirst(scope: FastifyInstance): void {
  scope.addHook('onRoute', (route) => {
    if (route.config?.socket) return
    const { handler } = route
    route.handler = function (request, reply) {
      const send = reply.send.bind(reply)
      reply.send = ((answer: unknown) =>
        send(isObject(answer) ? textOf(reply, answer) : answer)) as FastifyReply['send']
      return handler.call(this, request, reply)
    }
  })
}

/** A stream is an object to look at, too. */
const isObject = (answer: unknown): answer is Record<string, unknown> =>
  Array.isArray(answer) || (Object.prototype.toString.call(answer) === '[object Object]' && !isStream(answer as object))

const isStream = (answer: object): boolean => 'pipe' in answer && typeof answer.pipe === 'function'

function textOf(reply: FastifyReply, answer: Record<string, unknown>): string {
  if (!reply.hasHeader('content-type')) reply.type('application/json; charset=utf-8')
  return reply.serialize(answer) as string
}
