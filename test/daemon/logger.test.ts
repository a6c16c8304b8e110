import t from 'tap'
import { createLogger } from '../../src/daemon/logger.js'
import { toError } from '../../src/errors.js'

function build({ pretty = false, secrets = [] as string[] } = {}) {
  const lines: string[] = []
  const logger = createLogger({
    level: 'trace',
    pretty,
    secrets,
    destination: { write: (line) => void lines.push(line) },
  })
  return { logger, text: () => lines.join(''), last: () => JSON.parse(lines.at(-1)!) as Record<string, unknown> }
}

t.test('a line is JSON with a level in words, a time, and what was said', async (t) => {
  const { logger, last } = build()
  logger.info({ url: 'http://127.0.0.1:1/v1' }, 'listening')
  t.match(last(), { level: 'info', time: /^\d{4}-.*Z$/, msg: 'listening', url: 'http://127.0.0.1:1/v1' })
  t.notOk('pid' in last() || 'hostname' in last())
})

t.test('of a request it tells method and path, never the query, headers or body', async (t) => {
  const { logger, last, text } = build()
  const req = {
    id: 'r1',
    method: 'GET',
    url: '/v1/sessions?token=canary-1#canary-2',
    headers: { authorization: 'Bearer canary-3', cookie: 'canary-4' },
    body: { prompt: 'canary-5' },
  }
  logger.info({ req, res: { statusCode: 200, headers: { 'set-cookie': 'canary-6' } }, responseTime: 1 }, 'done')
  t.match(last(), { req: { id: 'r1', method: 'GET', path: '/v1/sessions' }, res: { status: 200 }, responseTime: 1 })
  t.notMatch(text(), /canary/)
})

t.test('telling keys are redacted, one level down too', async (t) => {
  const { logger, text } = build()
  logger.info(
    { headers: { a: 'canary' }, token: 'canary', webhook: { secret: 'canary' }, config: { env: 'canary' } },
    'x',
  )
  t.notMatch(text(), /canary/)
})

t.test('a known secret appears nowhere, whatever carries it', async (t) => {
  for (const pretty of [false, true]) {
    const secret = 'pass"word\\1'
    const { logger, text } = build({ pretty, secrets: [secret, 'hook-key-123'] })
    logger.error(
      { err: new Error(`POST failed with ${secret}`, { cause: new Error('at hook-key-123') }) },
      `with ${secret}`,
    )
    logger.warn({ detail: 'Authorization: Bearer abcdefgh.ijkl-mn==' }, `sgw_${'a'.repeat(43)}`)
    t.notMatch(text(), /word|hook-key|abcdefgh|aaaa/)
    t.match(text(), /\[redacted\]/)
  }
})

t.test('an error keeps its code, stack and cause', async (t) => {
  const { logger, last } = build()
  const cause = Object.assign(new Error('inner'), { code: 'ECONNREFUSED' })
  logger.error({ err: new TypeError('outer', { cause }) }, 'failed')
  t.match(last(), {
    err: { type: 'TypeError', message: 'outer', stack: /outer/, cause: { message: 'inner', code: 'ECONNREFUSED' } },
  })
})

t.test('of what was thrown and is no Error it tells a message, or the names of its members', async (t) => {
  const { logger, last, text } = build()
  const thrown = { status: 401, config: { sent: { authorization: 'canary' } } }
  logger.error({ err: toError(thrown) }, 'failed')
  t.match(last(), { err: { message: /: an object with status, config\.$/ } })
  for (const cause of [thrown, { ...thrown, message: 'refused' }])
    logger.error({ err: new Error('outer', { cause }) }, 'x')
  t.match(last(), { err: { message: 'outer', cause: { message: 'refused' } } })
  t.notMatch(text(), /canary/)
})
