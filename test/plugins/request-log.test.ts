import t from 'tap'
import { RequestLog } from '../../plugins/request-log.js'
import { createLogger } from '../../src/daemon/logger.js'
import fastify from '../fixtures/host.js'

t.test('one line per request, without query, headers and body', async (t) => {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const app = fastify({
    loggerInstance: createLogger({ level: 'info', pretty: false, secrets: [], destination }),
    logController: new RequestLog(),
  })
  app.post('/things/:id', async (request, reply) => reply.code(Number((request.params as { id: string }).id)).send({}))
  const headers = { authorization: 'Bearer canary-1', cookie: 'canary-2' }
  const send = (status: number) =>
    app.inject({ method: 'POST', url: `/things/${status}?token=canary-3`, headers, payload: { prompt: 'canary-4' } })
  for (const status of [201, 401, 403, 404]) await send(status)
  t.match(
    lines.map((line) => JSON.parse(line)),
    [
      { level: 'info', msg: 'request', method: 'POST', path: '/things/201', status: 201, ms: Number, reqId: String },
      { level: 'warn', path: '/things/401', status: 401 },
      { level: 'warn', path: '/things/403', status: 403 },
      { level: 'info', path: '/things/404', status: 404 },
    ],
  )
  t.equal(lines.length, 4)
  t.notMatch(lines.join(''), /canary/)
})
