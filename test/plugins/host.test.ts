import cors from '@fastify/cors'
import rateLimit from '@fastify/rate-limit'
import t from 'tap'
import gatewayPlugin, { type MessageBlock } from '../../src/index.js'
import { buildGateway, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'
import { isProblem } from '../fixtures/problem.js'

t.test(
  'a host that set compilers for a schema language of its own boots with the gateway, and both work',
  async (t) => {
    const host = fastify()
    t.teardown(() => host.close())
    const onlyMine = ({ schema }: { schema: unknown }) => {
      if (!(schema as { mine?: true }).mine) throw new Error('Invalid schema passed')
      return schema
    }
    host.setValidatorCompiler((definition) => {
      onlyMine(definition)
      return () => true
    })
    host.setSerializerCompiler((definition) => {
      onlyMine(definition)
      return (data) => JSON.stringify({ mine: data })
    })
    host.get('/own', { schema: { response: { 200: { mine: true } } } }, async () => ({ x: 1 }))
    const shown: string[] = []
    host.addHook('onRoute', (route) => {
      setImmediate(() => (route.schema as { hide?: true } | undefined)?.hide || shown.push(route.url))
    })
    await host.register(gatewayPlugin, { ...hostWorld().options, queue: {}, health: true, metrics: true })
    await host.ready()
    t.same(
      shown.filter((path) => path.startsWith('/v1')),
      [],
      'none is in a document of the host, which reads its own schemas',
    )
    t.same(shown.sort(), ['/healthz', '/healthz', '/metrics', '/metrics', '/readyz', '/readyz'], 'GET and HEAD alone')
    t.same((await host.inject('/own')).json(), { mine: { x: 1 } })
    const created = await host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD } })
    t.match(created.json(), { status: 'idle', profile: 'p' })
    t.equal((await host.inject('/v1/openapi.json')).json().openapi, '3.1.0')
  },
)

t.test('what a host makes of its own answers is nothing to those of the gateway, nor to their keys', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  host.setReplySerializer((payload) => JSON.stringify({ data: payload }))
  host.addHook('preSerialization', async (_request, _reply, payload) => ({ wrapped: payload }))
  // as a plugin does that compresses them
  host.addHook('onSend', async (_request, _reply, payload) => Buffer.from(payload as string))
  host.get('/own', async () => ({ x: 1 }))
  await host.register(gatewayPlugin, { ...hostWorld().options, health: true })
  t.same((await host.inject('/own')).json(), { data: { wrapped: { x: 1 } } })
  const headers = { 'idempotency-key': 'k' }
  const create = () => host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD }, headers })
  const [first, again] = [await create(), await create()]
  t.match(first.json(), { status: 'idle' })
  t.same([again.statusCode, again.json()], [201, first.json()])
  t.match(again.headers, { 'idempotent-replayed': 'true', location: first.headers.location })
  t.equal((await host.inject('/v1/sessions')).json().length, 1)
  t.same((await host.inject('/healthz')).json(), { status: 'ok' })
})

for (const statusCode of [500, 503])
  t.test(
    `what was made is made once, also when a hook of the host fails at the answer with ${statusCode}`,
    async (t) => {
      const host = fastify()
      t.teardown(() => host.close())
      let isFull = true
      host.addHook('onSend', async (_request, _reply, payload) => {
        if (!isFull) return payload
        isFull = false
        throw Object.assign(new Error('the audit log of the host is full'), { statusCode })
      })
      await host.register(gatewayPlugin, hostWorld().options)
      const headers = { 'idempotency-key': 'k' }
      const create = () => host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD }, headers })
      const failed = await create()
      t.match([failed.statusCode, failed.headers.location], [statusCode, undefined])
      const again = await create()
      t.match([again.statusCode, again.headers['idempotent-replayed']], [201, 'true'])
      t.same((await host.inject('/v1/sessions')).json(), [again.json()])
    },
  )

t.test('a hook of the host that lets no answer through keeps no key taken', async (t) => {
  const host = fastify({ forceCloseConnections: true })
  t.teardown(() => host.close())
  let isStuck = true
  let held = 0
  host.addHook('onSend', async (_request, _reply, payload) => {
    if (!isStuck) return payload
    held++
    return new Promise(() => {})
  })
  await host.register(gatewayPlugin, hostWorld().options)
  const url = `${await host.listen({ port: 0, host: '127.0.0.1' })}/v1/sessions`
  const create = (key: string, cwd: string, signal?: AbortSignal) =>
    fetch(url, {
      ...{ method: 'POST', body: JSON.stringify({ cwd }), signal: signal ?? null },
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
    })
  const leaving = new AbortController()
  const asked = [create('made', SOME_CWD, leaving.signal), create('refused', '/does/not/exist', leaving.signal)]
  await until(() => held === 2)
  leaving.abort()
  for (const { status } of await Promise.allSettled(asked)) t.equal(status, 'rejected')
  isStuck = false
  const answerOf = async (key: string) => {
    await until(async () => (await create(key, SOME_CWD)).status !== 409)
    return create(key, SOME_CWD)
  }
  const again = await answerOf('made')
  t.same([again.status, again.headers.get('idempotent-replayed')], [201, 'true'])
  t.equal(((await (await fetch(url)).json()) as unknown[]).length, 1)
  t.equal((await answerOf('refused')).status, 201, 'a key of what was refused may be used for something else')
})

t.test('what can be read can be asked for its head, also in a host that makes no such routes', async (t) => {
  const host = fastify({ exposeHeadRoutes: false })
  t.teardown(() => host.close())
  host.get('/own', async () => ({ x: 1 }))
  const channels = [
    { format: 'webhook' as const, url: 'http://127.0.0.1:1/', events: ['permission_requested' as const] },
  ]
  const notifications = { channels, publicUrl: 'https://gateway.example', answerLinks: true }
  await host.register(gatewayPlugin, { ...hostWorld().options, console: true, notifications })
  const created = await host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD } })
  const { id } = created.json()
  for (const path of ['sessions', `sessions/${id}`, `sessions/${id}/events`, 'openapi.json', 'docs', 'console/me'])
    t.match(await host.inject({ method: 'HEAD', url: `/v1/${path}` }), { statusCode: 200, body: '' }, path)
  t.equal((await host.inject({ method: 'HEAD', url: '/v1/sessions?limit=x' })).statusCode, 400)
  t.equal((await host.inject({ method: 'HEAD', url: '/own' })).statusCode, 404)
  const guess = () => host.inject({ method: 'HEAD', url: '/v1/answer?token=a.b' })
  let last = await guess()
  t.match(last, { statusCode: 404, headers: { 'content-type': /html/ } }, 'refused as where it can be read')
  for (let knock = 0; knock < 70 && last.statusCode === 404; knock++) last = await guess()
  t.equal(last.statusCode, 429, 'and as seldom')
})

t.test(
  "what goes wrong is in the gateway's own log, where the host has none, under the id of the answer",
  async (t) => {
    const host = fastify()
    t.teardown(() => host.close())
    const told: { fields: Record<string, unknown>; message: string }[] = []
    const logger = {
      info() {},
      warn() {},
      error: (fields: object, message: string) => void told.push({ fields: { ...fields }, message }),
    }
    const authenticate = () => {
      throw new Error('the directory of users is away')
    }
    await host.register(gatewayPlugin, { ...hostWorld().options, authenticate, logger, health: true, metrics: true })
    for (const path of ['/v1/sessions', '/metrics']) {
      const { instance, code } = (await host.inject(path)).json()
      t.equal(code, 'SG_ERR_AUTHENTICATE_FAILED')
      t.match(told.pop(), { fields: { reqId: instance, err: { cause: { message: /users is away/ } } } }, path)
    }
  },
)

t.test('what the host refuses before the gateway is asked keeps its status, on which clients act', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  host.addHook('onRequest', async ({ headers: { refuse } }, reply) => {
    if (refuse === '401') reply.header('www-authenticate', 'Basic realm="host"')
    if (refuse) throw Object.assign(new Error('inner workings of the host'), { statusCode: Number(refuse) })
  })
  await host.register(gatewayPlugin, hostWorld().options)
  const get = async (refuse: string) => {
    const { statusCode: status, headers, body: text } = await host.inject({ url: '/v1/sessions', headers: { refuse } })
    return { status, headers: new Headers(headers as Record<string, string>), text, json: JSON.parse(text) }
  }
  for (const [status, code, header] of [
    [401, 'SG_ERR_UNAUTHENTICATED', ['www-authenticate', 'Basic realm="host"']],
    [403, 'SG_ERR_FORBIDDEN'],
    [418, 'SG_ERR_BAD_REQUEST'],
    [429, 'SG_ERR_TOO_MANY', ['retry-after', '5']],
    [503, 'SG_ERR_UNAVAILABLE', ['retry-after', '5']],
  ] as const) {
    const answer = await get(String(status))
    isProblem(t, answer, status === 418 ? 400 : status, code)
    t.notMatch(answer.json.detail, 'inner workings')
    if (status === 418) t.match(answer.json.detail, /The service that this gateway is part of refused/, 'it was read')
    if (header) t.equal(answer.headers.get(header[0]), header[1], `${status}`)
  }
})

t.test("a limit of the host's own is a 429 with its own Retry-After", async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(rateLimit, { max: 1, timeWindow: 40_000 })
  const channel = { format: 'webhook', name: 'phone', url: 'https://phone.example' } as const
  const notifications = { channels: [channel], publicUrl: 'https://gateway.example', answerLinks: true }
  await host.register(gatewayPlugin, { ...hostWorld().options, notifications })
  t.equal((await host.inject('/v1/sessions')).statusCode, 200)
  for (const url of ['/v1/sessions', '/v1/answer?token=x'])
    t.match(await host.inject(url), { statusCode: 429, headers: { 'retry-after': '40' } }, url)
})

t.test('what a host has already, and the gateway cannot share, stops the start with what to do', async (t) => {
  const crossed = fastify()
  t.teardown(() => crossed.close())
  await crossed.register(cors, { origin: 'https://host.example' })
  await t.rejects(
    async () => crossed.register(gatewayPlugin, { ...hostWorld().options, cors: { origins: ['https://app.example'] } }),
    {
      code: 'SG_ERR_OPTION',
      message: /^cors: this host has @fastify\/cors .*list these origins there/,
    },
  )
  for (const name of ['principal', 'takenKey', 'attachingTo', 'readingFrom']) {
    const named = fastify()
    t.teardown(() => named.close())
    named.decorateRequest(name)
    const says = new RegExp(`sets request\\.${name} on its routes, and this host .*give yours another name`)
    await t.rejects(async () => named.register(gatewayPlugin, hostWorld().options), says)
  }
  const answering = fastify().setNotFoundHandler((_request, reply) => reply.code(404).send('mine'))
  t.teardown(() => answering.close())
  await t.rejects(async () => answering.register(gatewayPlugin, { ...hostWorld().options, basePath: '/' }), {
    code: 'SG_ERR_OPTION',
    message: /^basePath: .*this host answers .* by itself; give the gateway one, as \/v1/,
  })
  for (const name of ['gateway', 'gateways']) {
    const decorated = fastify()
    t.teardown(() => decorated.close())
    decorated.decorate(name, {})
    const says = new RegExp(`at fastify\\.${name}, and this host .*give yours another name`)
    await t.rejects(async () => decorated.register(gatewayPlugin, hostWorld().options), says)
  }
})

t.test('a host that counts its requests has the number of one in the refusal, as text', async (t) => {
  let requests = 0
  const host = fastify({ genReqId: () => ++requests as never })
  t.teardown(() => host.close())
  await host.register(gatewayPlugin, hostWorld().options)
  t.equal((await host.inject('/v1/nowhere')).json().instance, '1')
})

t.test('a misspelt option stops the start: it may have been a limit', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  const options = { ...hostWorld().options, allowedCwdRoot: ['/srv'] }
  await t.rejects(async () => host.register(gatewayPlugin, options), {
    code: 'SG_ERR_OPTION',
    message: 'allowedCwdRoot: unknown option; did you mean allowedCwdRoots?',
  })
})

t.test('counts of everybody are not for a caller who sees some', async (t) => {
  const { url } = await buildServer(t, {
    metrics: true,
    authenticate: ({ headers }) => headers.authorization && JSON.parse(String(headers.authorization)),
  })
  const get = async (principal: unknown) => {
    const response = await fetch(`${url}/metrics`, { headers: { authorization: JSON.stringify(principal) } })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: response.ok ? undefined : JSON.parse(text),
    }
  }
  for (const allowedProfiles of [[], ['scripted']])
    isProblem(t, await get({ allowedProfiles }), 403, 'SG_ERR_METRICS_FORBIDDEN')
  t.match((await get({})).text, /session_gateway_sessions/)
})

t.test('a BigInt in a meta is refused when it comes, not when everybody lists', async (t) => {
  const { gateway, registry } = await buildGateway(t, { queue: {} })
  const circle: Record<string, unknown> = {}
  circle.itself = circle
  for (const value of [1n, [{ deep: 2n }], circle]) {
    const meta = { value }
    const refusal = { code: 'SG_ERR_VALIDATION', statusCode: 400 }
    await t.rejects(registry.create({ cwd: SOME_CWD, meta }), { ...refusal, errors: [{ path: 'meta' }] })
    const session = { cwd: SOME_CWD, prompt: 'p' }
    await t.rejects(gateway.queue!.submit({ session, meta }), { ...refusal, errors: [{ path: 'meta' }] })
    await t.rejects(gateway.queue!.submit({ session: { ...session, meta } }), {
      ...refusal,
      errors: [{ path: 'session.meta' }],
    })
  }
  t.same(await registry.list(), [])
})

t.test('a block of a message is what its type says, to the compiler too', async (t) => {
  const words = (block: MessageBlock): string => {
    switch (block.type) {
      case 'text':
        return block.text
      case 'thinking':
        return block.thinking
      case 'tool_use':
        return block.name
      case 'tool_result':
        return block.tool_use_id
      default:
        return `${block.type satisfies string} ${String(block.source)}`
    }
  }
  t.equal(words({ type: 'text', text: 'hello' }), 'hello')
  t.equal(words({ type: 'image', source: 'x' } as unknown as MessageBlock), 'image x')
})
