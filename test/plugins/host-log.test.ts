import type { FastifyBaseLogger } from 'fastify'
import t from 'tap'
import gatewayPlugin from '../../src/index.js'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { attach } from '../fixtures/client.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'

t.test('a host that logs errors alone has those of the gateway in its own log', async (t) => {
  const lines: string[] = []
  const host = fastify({ logger: { level: 'error', stream: { write: (line: string) => void lines.push(line) } } })
  t.teardown(() => host.close())
  const authenticate = () => {
    throw new Error('the directory of users is away')
  }
  await host.register(gatewayPlugin, { ...hostWorld().options, authenticate })
  t.equal((await host.inject('/v1/sessions')).statusCode, 500)
  t.match(lines, [/the directory of users is away/])
})

t.test("a client's bad frames are nothing that an operator is called for", async (t) => {
  const lines: { level: string; fields: object }[] = []
  const log = (level: string) => (fields: object | string) => void lines.push({ level, fields: Object(fields) })
  const logger = { info: log('info'), warn: log('warn'), error: log('error'), debug: log('debug') }
  const full = { ...logger, trace: log('trace'), fatal: log('fatal'), level: 'trace', silent() {}, child: () => full }
  const { call, api } = await buildServer(t, { logger: full, queue: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const raw = (client: { socket: object }) => (client.socket as { _socket: { write(bytes: Buffer): void } })._socket
  const session = await attach(t, api, json.id)
  raw(session).write(Buffer.from([0x83, 0x80, 0, 0, 0, 0]))
  t.equal((await session.untilClosed()).code, 1002)
  const again = await attach(t, api, json.id)
  again.send('no JSON')
  await again.untilFrame('command_error')
  t.same(
    lines.filter(({ level, fields }) => ['warn', 'error', 'fatal'].includes(level) || 'err' in fields),
    [],
  )
  t.ok(lines.some(({ level, fields }) => level === 'debug' && 'reason' in fields))
})

t.test('a logger that throws costs a server of its own the lines of its requests, too, and nothing else', async (t) => {
  const told: unknown[] = []
  const fails =
    (level: string) =>
    (...said: unknown[]) => {
      told.push(said[1])
      throw new Error(`the log of ${level} is full`)
    }
  const lines = { info: fails('info'), warn: fails('warn'), error: fails('error'), debug: fails('debug') }
  const full = Object.freeze({
    ...lines,
    trace: fails('trace'),
    fatal: fails('fatal'),
    level: 'trace',
    silent() {},
    child: (): FastifyBaseLogger => full,
  })
  const authenticate = ({ headers }: { headers: object }) => {
    if ('x-throw' in headers) throw new Error('no answer')
    return {}
  }
  const { call, url } = await buildServer(t, { logger: full, allowUnauthenticated: false, authenticate, docs: true })
  t.match(await call('POST', '/sessions', { cwd: SOME_CWD }), { status: 201 })
  t.match(await call('GET', '/none'), { status: 404 })
  t.match(await call('GET', '/sessions', undefined, { 'x-throw': '1' }), {
    status: 500,
    json: { code: 'SG_ERR_AUTHENTICATE_FAILED' },
  })
  // all of a file may be on its way before somebody leaves
  while (!told.includes('stream closed prematurely')) {
    const leaves = new AbortController()
    await fetch(`${url}/v1/docs/swagger-ui-bundle.js`, { signal: leaves.signal })
    leaves.abort()
  }
  t.match(await call('GET', '/sessions'), { status: 200 })
})
