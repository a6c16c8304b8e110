import { type TSchema, Type } from '@sinclair/typebox'
import t, { type Test } from 'tap'
import { gatewayPlugin } from '../../plugins/gateway.js'
import { SessionCommand, SessionCommands } from '../../schemas/commands.js'
import { AnswerInboxRequest } from '../../schemas/notifications.js'
import { CreateSessionRequest } from '../../schemas/sessions.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { type BuildOptions, buildServer, SOME_CWD } from '../fixtures/build.js'
import { attach, type TestClient } from '../fixtures/client.js'
import fastify from '../fixtures/host.js'
import { asText, MutatedValues } from '../fixtures/mutated-values.js'
import { outOfPatience } from '../fixtures/patience.js'
import { HANDSHAKE, type RawAnswer, type RawRequest, rawRequest } from '../fixtures/raw-http.js'
import { rounds } from '../fixtures/rounds.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'

/** Another run: FUZZ_SEED=… ; each input has a seed of its own, so that one can be looked at alone. */
const SEED = Number(process.env.FUZZ_SEED ?? 20260101)
const REQUESTS = rounds(2_000, 10_000)
const FRAMES = rounds(1_000, 5_000)
const AT_ONCE = 8

interface Route {
  method: string
  url: string
  schema: { body?: TSchema; querystring?: TSchema }
  /** Whether it is there to answer 405. */
  refuses: boolean
}

const profile = (name: string, engine: 'cli' | 'provider') => ({
  name,
  engine,
  ...(engine === 'provider' && { provider: { id: 'x' } }),
})

const options = {
  authenticate: () => ({ canManageProfiles: true }),
  profiles: [profile('scripted', 'provider'), profile('agent', 'cli')],
  profileStore: createMemoryProfileStore(),
  queue: { maxConcurrency: 4 },
  maxBodyBytes: 64 * 1024,
  eventLog: { maxEvents: 200 },
  script: {
    capabilities: { resume: true, fork: true, permissionModes: ['default', 'dontAsk', 'bypassPermissions', 'plan'] },
    files: {
      list: () => [{ path: 'a', bytes: 1, modifiedAt: 1 }],
      read: (path) => (path === 'a' ? Buffer.from('x') : undefined),
    },
    // a turn waits for a person and for a client, so that there is something to answer
    async send(runner: ScriptedRunner, text: string) {
      const { host, context } = runner
      const asked = host.requestPermission({ toolName: 'Write', toolUseId: text, input: { text } })
      const called = context.bridge.execute({
        executionId: `call-${runner.sent.length}`,
        toolName: 'client',
        input: { text },
      })
      await Promise.all([asked, called])
      runner.complete()
    },
  },
} satisfies BuildOptions

/** The routes as the router was told them, with the schemas that they check by. */
async function routesOf(t: Test): Promise<Route[]> {
  const app = fastify()
  t.teardown(() => app.close())
  const routes: Route[] = []
  app.addHook('onRoute', ({ method, url, schema }) => {
    const refuses = Array.isArray(method)
    for (const one of [method].flat())
      routes.push({ method: one, url, schema: (schema ?? {}) as Route['schema'], refuses })
  })
  const { script: _script, ...given } = options
  await app.register(gatewayPlugin, { ...given, createEngineRunner: () => Promise.reject(new Error('not used')) })
  for (const route of routes)
    if (route.method !== 'POST') continue
    else if (route.url.endsWith('/commands')) route.schema.body = SessionCommand
    else if (route.url.endsWith('/sessions')) route.schema.body = CreateSessionRequest
    else if (route.url.endsWith('/inbox/answers')) route.schema.body = AnswerInboxRequest
  return routes
}

/** A world with sessions in it, and the ids of what can be touched there. */
async function buildWorld(t: Test) {
  const server = await buildServer(t, options)
  const { registry, call } = server
  const sessions: string[] = []
  let told = 'none'
  const session = async () =>
    (await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', prompt: 'go' })).json.id as string
  /** Makes room and new sessions, so that most of what is touched lives. */
  const renew = async () => {
    const live = (await registry.list()).filter(({ status }) => status !== 'closed' && status !== 'failed')
    for (const { id } of live.slice(30)) await call('DELETE', `/sessions/${id}`)
    sessions.splice(0, Infinity, ...live.slice(0, 30).map(({ id }) => id))
    while (sessions.length < 6) sessions.push(await session())
    told = (await call('GET', '/notifications?limit=1')).json[0]?.id ?? told
  }
  await renew()
  const asked = new Map<string, string>()
  registry.on('session_event', ({ sessionId, event }) => {
    if (event.type === 'permission_requested') asked.set(sessionId, event.request.id)
  })
  /** A session that waits for an answer, and to what. */
  const waiting = () => {
    const id = sessions.find((one) => registry.here(one)?.pendingPermissions)
    const requestId = id && asked.get(id)
    return id && requestId ? { id, requestId } : undefined
  }
  const known = (values: MutatedValues) => ({
    cwd: () => SOME_CWD,
    url: () => 'http://127.0.0.1:9/nobody',
    profile: () => values.pick(['scripted', 'agent']),
    requestId: () => waiting()?.requestId ?? 'none',
    sessionId: () => waiting()?.id ?? 'none',
    after: () => told,
    executionId: () => `call-${values.below(3)}`,
    name: () => values.pick(['scripted', 'managed', 'managed-2']),
  })
  return { ...server, sessions, session, renew, waiting, known }
}

/** As a part of a path or a query; no lone surrogate can be encoded. */
const encoded = (value: unknown): string => encodeURIComponent(asText(value).replace(/\p{Surrogate}/gu, '\ufffd'))

function mutatedRequest(routes: Route[], seed: number, world: Awaited<ReturnType<typeof buildWorld>>): RawRequest {
  const filler: Record<string, () => unknown> = {}
  const values = new MutatedValues(seed, filler)
  Object.assign(filler, world.known(values))
  const [refuses, takesBody] = [values.chance(0.05), values.chance(0.5)]
  const { method, url, schema } = values.pick(
    routes.filter((route) => route.refuses === refuses && (refuses || !takesBody || route.schema.body)),
  )
  const parameter = (name: string) => {
    if (values.chance(0.8)) {
      if (name === ':id') return (url.includes(':requestId') && world.waiting()?.id) || values.pick(world.sessions)
      if (name === '*') return 'a'
      const known = filler[name.slice(1)]
      if (known) return String(known())
    }
    const value = values.pick([values.valid(Type.String()), values.anything()])
    return values.chance(0.9) ? encoded(value) : asText(value)
  }
  const path = url.replace(/:\w+|\*/g, parameter)
  const query = schema.querystring && values.chance(0.7) ? values.valid(schema.querystring) : {}
  const sent = values.chance(0.5) ? values.spoiled(query) : query
  const members = typeof sent === 'object' && sent !== null ? Object.entries(sent) : [['', sent]]
  const search = members.map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
  const headers: Record<string, string> = {}
  if (values.chance(0.1)) headers.accept = values.pick(['text/event-stream', '*/*', '', 'text/event-stream, text/html'])
  if (values.chance(0.1)) headers['last-event-id'] = values.pick([':1', 'x', `:${'9'.repeat(15)}`, '::', '0'])
  if (url.endsWith('/ws') && values.chance(0.7)) Object.assign(headers, HANDSHAKE)
  if (values.chance(0.05)) headers.origin = values.pick(['null', 'https://evil.example', ''])
  const body =
    schema.body && (values.chance(0.3) ? values.valid(schema.body) : values.spoiled(values.valid(schema.body)))
  if (body !== undefined || values.chance(0.05))
    headers['content-type'] = values.chance(0.97)
      ? 'application/json'
      : values.pick(['text/plain', '', 'application/json; charset=utf-16', 'multipart/form-data'])
  const line = `${path}${search.length > 0 ? `?${search.join('&')}` : ''}`
  return {
    method,
    // a request line holds no blanks, control characters or anything beyond ASCII, and no more than a head may have
    path: line.replace(/[^\x21-\x7e]/g, '%').slice(0, 8_000),
    headers,
    ...(body !== undefined && { body: values.text(body) }),
  }
}

/** What is wrong with the answer to a request, if anything. */
function complaint({ method, path }: RawRequest, answer: RawAnswer): string | undefined {
  if (answer.upgraded) return undefined
  // the agent that is asked to delete a session of its own is not installed here, as whoever creates one would be told
  const needsAgent =
    method === 'DELETE' && path.startsWith('/v1/sdk-sessions/') && answer.json?.code === 'SG_ERR_ENGINE_START'
  if ((answer.status >= 500 && !needsAgent) || answer.status < 200) return `status ${answer.status}: ${answer.text}`
  if (answer.status < 400 || answer.text === '') return undefined
  if (!/^application\/problem\+json/.test(answer.headers['content-type'] ?? '')) return `no problem: ${answer.text}`
  return /^SG_ERR_\w+$/.test(answer.json?.code) && answer.json.status === answer.status ? undefined : answer.text
}

const inTime = async <T>(work: Promise<T>): Promise<T> => {
  let stopWaiting = () => {}
  const silence = new Promise<never>((_, reject) => {
    stopWaiting = outOfPatience(() => reject(new Error('no answer')))
  })
  return Promise.race([work, silence]).finally(stopWaiting)
}

async function isHealthy(t: Test, { call }: { call: Awaited<ReturnType<typeof buildServer>>['call'] }): Promise<void> {
  const created = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted' })
  t.equal(created.status, 201, 'a valid request is answered')
  t.equal((await call('GET', '/sessions')).status, 200, 'and what is there can be listed')
  t.equal((await call('DELETE', `/sessions/${created.json.id}`)).status, 200)
  t.equal(({} as { polluted?: unknown }).polluted, undefined)
}

t.test(`${REQUESTS} mutated requests across all routes`, async (t) => {
  const routes = await routesOf(t)
  const world = await buildWorld(t)
  const failures: string[] = []
  const statuses = new Map<number, number>()
  let next = 0
  const work = async () => {
    while (next < REQUESTS && failures.length < 5) {
      const seed = SEED + next++
      const request = mutatedRequest(routes, seed, world)
      try {
        const answer = await inTime(rawRequest(world.port, { ...request, firstChunkOnly: true }))
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        const wrong = complaint(request, answer)
        if (wrong) failures.push(`seed ${seed}: ${JSON.stringify(request).slice(0, 1_000)} → ${wrong}`)
        if (next % 20 === 0) await world.renew()
      } catch (error) {
        failures.push(`seed ${seed}: ${JSON.stringify(request).slice(0, 1_000)} → ${error}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  t.same(failures, [], `FUZZ_SEED=${SEED}`)
  t.comment(
    [...statuses]
      .sort(([a], [b]) => a - b)
      .map(([status, count]) => `${status}: ${count}`)
      .join(', '),
  )
  for (const status of [101, 200, 201, 400, 404, 405, 413, 415])
    t.ok(statuses.has(status), `some were answered ${status}`)
  await isHealthy(t, world)
})

t.test(`${FRAMES} mutated frames over a WebSocket`, async (t) => {
  const world = await buildWorld(t)
  let client: TestClient | undefined
  const { close, ...others } = SessionCommands
  let acknowledged = 0
  for (let at = 0; at < FRAMES; ) {
    const seed = SEED + at
    if (!client || client.closed) {
      client = await attach(t, world.api, await world.session())
      await client.untilFrame('synced')
    }
    const batch: (string | Buffer)[] = []
    for (; batch.length < 50 && at < FRAMES; at++) {
      const filler: Record<string, () => unknown> = {}
      const values = new MutatedValues(SEED + at, filler)
      Object.assign(filler, world.known(values))
      const command = values.valid(values.chance(0.002) ? close : values.pick(Object.values(others)))
      const frame = values.text(values.chance(0.2) ? command : values.spoiled(command))
      batch.push(frame)
      // bytes that are no UTF-8 end the connection when they are sent as text
      client.socket.send(frame, { binary: Buffer.isBuffer(frame) })
    }
    const id = `check-${at}`
    client.send({ type: 'ping', id })
    await client.until(
      ({ frames, closed }) => closed || frames.some((frame) => frame.type === 'ack' && frame.id === id),
      `the answer to frames from seed ${seed}: ${batch.map(String).join('\n').slice(0, 2_000)}`,
    )
    // a valid `close` ends the session, a frame above the limit ends the socket; nothing else does
    if (client.closed) t.match(client.closed.reason, /^(session_ended|frame_too_large)$/, `seed ${seed}`)
    else acknowledged++
    const internal = client.frames.filter((frame) => frame.type === 'command_error' && frame.code === 'SG_ERR_INTERNAL')
    t.same(internal, [], `seed ${seed}: nothing failed inside`)
    client.frames.length = 0
  }
  t.ok(acknowledged > 10, `${acknowledged} batches left the socket open`)
  await isHealthy(t, world)
})
