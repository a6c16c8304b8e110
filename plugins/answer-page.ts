import rateLimit from '@fastify/rate-limit'
import type { FastifyError, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../src/errors.js'
import { wordsIn } from '../src/notifications/answers/answer-form.js'
import type { AnswerLinks } from '../src/notifications/answers/answer-links.js'
import { ANSWER_PAGE_HEADERS, answerPage, messagePage, takenPage } from '../src/notifications/answers/page.js'
import { sayWhenAgain, toGatewayError } from './errors.js'

/** Of what a form may say: what somebody may write below one question takes 18 kB, and an agent asks as many as it likes. */
const MAX_FORM_BYTES = 1024 * 1024
/** Looks and answers by one link, a minute, and from one address by links that are none. */
const MAX_PER_MINUTE = 60

/** What the page says above the sentence of a refusal. */
const HEADLINES: Record<number, string> = {
  400: 'That is no answer',
  404: 'Nothing to answer here',
  409: 'That could not be done',
  410: 'This link has expired',
  413: 'That is too much',
  415: 'That is no answer',
  429: 'Slow down',
  502: 'Look again shortly',
  503: 'Try again shortly',
}

/** Where the sentence of the catalogue speaks of an API. */
const TEXTS: Record<number, string> = {
  413: 'Write less.',
  415: 'Use the form of the page.',
  502: 'Whether your answer was taken is not known. Open the link again: it says so.',
}

/** Where links lead: a page that shows what is asked, and whose form answers it. The link is the credential, and there is no other. */
export const answerPages: FastifyPluginAsync<{ links: AnswerLinks }> = async (scope, { links }) => {
  scope.setErrorHandler(sendRefusal)
  scope.removeAllContentTypeParsers()
  const form = { parseAs: 'string', bodyLimit: MAX_FORM_BYTES } as const
  scope.addContentTypeParser('application/x-www-form-urlencoded', form, (_request, text, done) =>
    done(null, new URLSearchParams(String(text))),
  )
  const nameOf = (request: FastifyRequest) => links.nameOf(givenToken(request) ?? '')
  await scope.register(rateLimit, {
    global: false,
    max: MAX_PER_MINUTE,
    timeWindow: 60_000,
    // behind a proxy all have one address: who guesses there keeps nobody from a link of their own
    keyGenerator: async (request) => (await nameOf(request)) ?? request.ip,
    errorResponseBuilder: (_request, { ttl }) =>
      new GatewayError('SG_ERR_TOO_MANY', { retryAfterS: Math.ceil(ttl / 1000) }),
  })
  const limited = scope.rateLimit()
  const options = {
    config: { isPublic: true },
    // of who guesses no form is read; by a link it is, so that the words are there to be given back
    async onRequest(request: FastifyRequest, reply: FastifyReply) {
      if ((await nameOf(request)) === undefined) await limited.call(scope, request, reply)
    },
    preHandler: limited,
  }

  scope.get('/answer', options, async (request, reply) => {
    const view = await links.look(tokenOf(request))
    return reply
      .code(view.state === 'open' ? 200 : 410)
      .headers(ANSWER_PAGE_HEADERS)
      .send(answerPage(view))
  })

  scope.post('/answer', options, async (request, reply) => {
    const body = request.body instanceof URLSearchParams ? request.body : new URLSearchParams()
    const outcome = await links.answer(tokenOf(request), body)
    reply.headers(ANSWER_PAGE_HEADERS)
    if ('taken' in outcome) return reply.send(takenPage(outcome.taken))
    return reply.code(409).send(answerPage(outcome, wordsIn(body)))
  })
}

function tokenOf(request: FastifyRequest): string {
  const token = givenToken(request)
  if (token === undefined) throw new GatewayError('SG_ERR_ANSWER_LINK')
  return token
}

/** Given twice, it is none. */
function givenToken({ query }: FastifyRequest): string | undefined {
  const { token } = query as { token?: unknown }
  return typeof token === 'string' ? token : undefined
}

function sendRefusal(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusal = toGatewayError(error, request)
  const { statusCode, code } = refusal
  // by a link that is none anybody could have somebody else's words shown here
  const words = request.body instanceof URLSearchParams && code !== 'SG_ERR_ANSWER_LINK' ? wordsIn(request.body) : []
  sayWhenAgain(refusal, reply)
  return reply
    .code(statusCode)
    .headers(ANSWER_PAGE_HEADERS)
    .send(messagePage(HEADLINES[statusCode] ?? 'That did not work', textOf(refusal), words))
}

/** A field of the form has no name that a person has seen. */
function textOf({ statusCode, message, errors }: GatewayError): string {
  const [wrong] = errors ?? []
  return wrong ? `${wrong.message} Go back to answer.` : (TEXTS[statusCode] ?? message)
}
