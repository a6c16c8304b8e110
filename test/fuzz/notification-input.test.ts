import { createECDH, randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import {
  AnswerInboxRequest,
  CreateSubscriptionRequest,
  DeleteSubscriptionRequest,
  FollowNotificationsQuery,
  ListInboxQuery,
  ListNotificationsQuery,
} from '../../schemas/notifications.js'
import { signGrant } from '../../src/notifications/answers/token.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { asText, MutatedValues } from '../fixtures/mutated-values.js'
import { HANDSHAKE, type RawAnswer, type RawRequest, rawRequest } from '../fixtures/raw-http.js'
import { rounds } from '../fixtures/rounds.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

/** Another run: FUZZ_SEED=… ; each input has a seed of its own. */
const SEED = Number(process.env.FUZZ_SEED ?? 20260417)
const REQUESTS = rounds(1_200, 10_000)
const MAX_PER_PRINCIPAL = 20
/** One address may look at so many links a minute. */
const PER_ADDRESS = 50

/** Addresses that a push service has no business at, in spellings that somebody may try. */
const PRIVATE = [
  'http://127.0.0.1/x',
  'http://127.1/x',
  'http://2130706433/x',
  'http://0x7f.1/x',
  'http://0/x',
  'http://[::1]/x',
  'http://[::ffff:10.0.0.1]/x',
  'http://[::ffff:a9fe:a9fe]/x',
  'http://[64:ff9b::a9fe:a9fe]/x',
  'http://169.254.169.254/latest',
  'http://0251.0376.0251.0376/x',
  'http://[fd00:ec2::254]/x',
  'http://10.0.0.1:8080/x',
  'http://192.168.1.1/x',
  'http://user:secret@push.example/x',
  'file:///etc/passwd',
  'gopher://push.example/x',
  'https://',
  '//push.example',
]

const keysOf = () => ({
  p256dh: createECDH('prime256v1').generateKeys('base64url'),
  auth: randomBytes(16).toString('base64url'),
})

/** Ann sees everything, Bob and Eve what is of the profile `other`. What waits is Ann's alone. */
async function buildWorld(t: Test) {
  const sink = await WebhookSink.start(t)
  const callers = { ann: {}, bob: { allowedProfiles: ['other'] }, eve: { allowedProfiles: ['other'] } }
  const profile = (name: string) => ({ name, engine: 'provider' as const, provider: { id: 'x' } })
  const server = await buildServer(t, {
    authenticate: ({ headers }) => {
      const name = headers.authorization?.slice('Bearer '.length) ?? ''
      return name in callers && { name, ...callers[name as keyof typeof callers] }
    },
    profiles: [profile('secret'), profile('other')],
    maxBodyBytes: 64 * 1024,
    notifications: {
      channels: [
        { format: 'webhook', name: 'phone', url: sink.url, events: ['permission_requested'] },
        { format: 'web_push', subject: 'mailto:ops@example.com', events: ['session_error'] },
      ],
      publicUrl: 'https://gateway.example',
      answerLinks: true,
      answerLinkTtlMs: 60_000,
    },
  })
  const ann = { authorization: 'Bearer ann' }
  const ask = async (name: string) => {
    const body = { cwd: SOME_CWD, prompt: 'x', profile: name, approvalTimeoutMs: 86_400_000 }
    const { json } = await server.call('POST', '/sessions', body, ann)
    const runner = server.engine.last
    await until(() => runner.sent.length === 1)
    const told = sink.received.length
    runner.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: { command: 'ls' } }).catch(() => {})
    await until(() => sink.received.length > told, 'what the channel is told')
    const { request, answerUrl, id } = sink.received[told]!.body
    const token = new URL(answerUrl).searchParams.get('token')!
    return { sessionId: String(json.id), requestId: String(request.id), notification: String(id), token }
  }
  const expired = await ask('secret')
  await server.clock.advance(61_000)
  const spent = await ask('secret')
  await rawRequest(server.port, {
    ...{ method: 'POST', path: `/v1/answer?token=${spent.token}`, body: 'behavior=deny' },
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  const waiting = [await ask('secret'), await ask('secret'), await ask('secret')]
  return { ...server, expired, spent, waiting, seen: await ask('other') }
}
type World = Awaited<ReturnType<typeof buildWorld>>

const encoded = (value: unknown): string => encodeURIComponent(asText(value).replace(/\p{Surrogate}/gu, '\ufffd'))
const search = (query: unknown): string => {
  const members = typeof query === 'object' && query !== null ? Object.entries(query) : [['', query]]
  return members.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join('&')
}

/** A link that nobody was given: of one that somebody was, or of nothing. */
function forgedToken(values: MutatedValues, { waiting, expired, spent }: World): string {
  const real = values.pick(waiting).token
  const [claims = '', signature = ''] = real.split('.')
  const other = values.pick([expired, spent, ...waiting].filter(({ token }) => token !== real)).token.split('.')
  const read = JSON.parse(Buffer.from(claims, 'base64url').toString())
  const at = values.below(real.length)
  const changed = [...read]
  changed[values.below(changed.length)] = values.pick([1e15, null, 'phone', '', {}, values.pick(waiting).sessionId])
  const rewritten = Buffer.from(JSON.stringify(changed)).toString('base64url')
  const [sessionId, requestId, channel, seq, expiresAt] = read
  const stolen = signGrant({ sessionId, requestId, channel, seq, expiresAt }, randomBytes(32))
  const forged = values.pick([
    real.slice(0, at),
    real.slice(at),
    `${real.slice(0, at)}${values.pick(['A', '_', '.', '=', '%', ' '])}${real.slice(at + 1)}`,
    `${claims}.${other[1]}`,
    `${other[0]}.${signature}`,
    `${rewritten === claims ? 'W10' : rewritten}.${signature}`,
    `${real}${values.pick(['A', '.', '=', '..', `.${signature}`])}`,
    `${claims}.`,
    `.${signature}`,
    stolen,
    real.toUpperCase(),
    Buffer.from(real).toString('base64url'),
    'x'.repeat(values.pick([1, 4_096, 7_000])),
    asText(values.anything()),
  ])
  return forged === real ? `${forged}A` : forged
}

const FORM = 'application/x-www-form-urlencoded'

function linkRequest(values: MutatedValues, world: World): RawRequest {
  const { expired, spent, waiting } = world
  const used = values.chance(0.2)
  const token = used ? values.pick([expired, spent]).token : forgedToken(values, world)
  const method = values.pick(['GET', 'GET', 'HEAD', 'POST', 'POST', 'POST', 'PUT', 'DELETE', 'OPTIONS'])
  const name = values.chance(0.95) ? 'token' : values.pick(['Token', 'token[]', 'token%00', '__proto__'])
  const twice = name === 'token' && values.chance(0.1) ? `&token=${values.pick(waiting).token}` : ''
  const body = values.pick([
    'behavior=allow',
    'behavior=deny&message=no',
    `behavior=allow&token=${values.pick(waiting).token}`,
    search(values.anything()),
    `behavior=allow&message=${'x'.repeat(70_000)}`,
    '{"behavior":"allow"}',
  ])
  const type = values.chance(0.85) ? FORM : values.pick(['application/json', 'text/plain', '', 'multipart/form-data'])
  const hasBody = !['GET', 'HEAD', 'OPTIONS'].includes(method)
  return {
    method,
    path: `/v1/answer?${name}=${values.chance(0.9) ? encoded(token) : token}${twice}`,
    headers: hasBody ? { 'content-type': type } : {},
    ...(hasBody && { body }),
  }
}

function apiRequest(values: MutatedValues, world: World, caller: string, keys: object): RawRequest {
  const told = values.pick([world.seen, ...world.waiting])
  const [epoch, number = ''] = told.notification.split(':')
  const places = [told.notification, `${epoch}x:${number}`, `${epoch}:999999999999`, `:${number}`, `${epoch}:-1`, 'x:0']
  const after = () => values.pick([...places, asText(values.anything())])
  const fill = new MutatedValues(values.below(2 ** 31), {
    endpoint: () =>
      values.chance(0.3)
        ? values.pick(PRIVATE)
        : `https://push.example/${values.chance(0.7) ? caller : values.pick(['ann', 'bob', 'eve'])}/${values.below(40)}`,
    keys: () => keys,
    expirationTime: () => null,
    sessionId: () => told.sessionId,
    requestId: () => told.requestId,
    after,
    cursor: after,
  })
  const json = (method: string, path: string, value: unknown): RawRequest => ({
    ...{ method, path: `/v1${path}`, body: values.text(values.chance(0.6) ? value : values.spoiled(value)) },
    headers: { 'content-type': 'application/json' },
  })
  const get = (path: string, query: unknown = {}, headers = {}): RawRequest => ({
    ...{ method: values.pick(['GET', 'GET', 'HEAD']), headers },
    path: `/v1${path}?${search(values.chance(0.6) ? query : values.spoiled(query))}`,
  })
  const request = values.pick([
    ...Array.from({ length: 5 }, () => () => {
      return json('POST', '/notifications/subscriptions', fill.valid(CreateSubscriptionRequest))
    }),
    () => json('DELETE', '/notifications/subscriptions', fill.valid(DeleteSubscriptionRequest)),
    // who may see what waits could answer it
    ...(caller === 'ann' ? [] : [() => json('POST', '/inbox/answers', fill.valid(AnswerInboxRequest))]),
    () => get('/inbox', fill.valid(ListInboxQuery)),
    () => get('/inbox/count'),
    () => get('/notifications', fill.valid(ListNotificationsQuery)),
    () => get('/notifications/vapid-key'),
    () => get(`/notifications/${encoded(after())}/deliveries`),
    () => get('/notifications/events', fill.valid(FollowNotificationsQuery), { 'last-event-id': encoded(after()) }),
    () => get('/notifications/ws', fill.valid(FollowNotificationsQuery), HANDSHAKE),
  ])()
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${caller}` } }
}

const noFault = ({ status, text }: RawAnswer) =>
  status >= 500 || status < 101 ? `status ${status}: ${text}` : undefined

/** What is wrong with the answer to a link that is none. */
function linkComplaint({ method = '' }: RawRequest, { status, headers, text }: RawAnswer): string | undefined {
  if (status < 400)
    return method === 'OPTIONS' && status === 204 ? undefined : `a forged link was answered ${status}: ${text}`
  // other methods than those of the page are no affair of a link
  const isPageMethod = ['GET', 'HEAD', 'POST'].includes(method)
  if (!isPageMethod && /^40[15]$/.test(String(status))) return undefined
  if (!/^(400|404|409|410|413|414|415|429)$/.test(String(status))) return `status ${status}: ${text}`
  if (isPageMethod && status !== 414 && !/^text\/html/.test(headers['content-type'] ?? '')) return 'no page'
  if (isPageMethod && !/^default-src 'none'/.test(String(headers['content-security-policy'])))
    return 'a page without its policy'
  return /ls|My session|secret/.test(text.replace(/<style>.*<\/style>/s, ''))
    ? `it tells of the request: ${text}`
    : undefined
}

t.test(`${REQUESTS} mutated requests to what people are told by, and answer by`, async (t) => {
  const world = await buildWorld(t)
  const keys = { ann: keysOf(), bob: keysOf(), eve: keysOf() }
  const owners = new Map<string, string>()
  const statuses = new Map<number, number>()
  const failures: string[] = []

  /** Whose browser it is does not change by what somebody else sends. */
  const browserComplaint = (caller: string, { method, path, body }: RawRequest, { status }: RawAnswer) => {
    if (!path.startsWith('/v1/notifications/subscriptions') || status >= 400) return undefined
    const { endpoint } = JSON.parse(String(body)) as { endpoint: string }
    const owner = owners.get(endpoint)
    if (PRIVATE.includes(endpoint)) return `subscribed ${endpoint}`
    if (owner !== undefined && owner !== caller) return `${caller} may ${method} what is ${owner}'s`
    if (method === 'POST' && (status === 201) !== (owner === undefined)) return `${status} for what is ${owner}'s`
    if (method === 'DELETE') owners.delete(endpoint)
    else owners.set(endpoint, caller)
    const own = [...owners.values()].filter((name) => name === caller).length
    return own > MAX_PER_PRINCIPAL ? `${caller} has ${own} browsers` : undefined
  }
  /** Who may see one profile sees nothing of another. */
  const sightComplaint = (caller: string, { path }: RawRequest, { text, json }: RawAnswer) => {
    if (caller === 'ann' || path.includes('/subscriptions')) return undefined
    const taken = json?.results?.some?.(({ resolved, sessionId }: { resolved: boolean; sessionId: string }) => {
      return resolved && sessionId !== world.seen.sessionId
    })
    if (taken) return `${caller} answered what is not theirs`
    return /"profile":"secret"/.test(text) ? `${caller} was shown: ${text}` : undefined
  }

  for (let n = 0; n < REQUESTS && failures.length < 5; n++) {
    const values = new MutatedValues(SEED + n)
    const caller = values.pick(['ann', 'bob', 'eve'] as const)
    const isLink = values.chance(0.4)
    const given = isLink ? linkRequest(values, world) : apiRequest(values, world, caller, keys[caller])
    const from = `127.2.${Math.floor(n / PER_ADDRESS / 250)}.${1 + (Math.floor(n / PER_ADDRESS) % 250)}`
    const path = given.path.replace(/[^\x21-\x7e]/g, '%').slice(0, 8_000)
    const request = { ...given, path, from, firstChunkOnly: true }
    const answer = await rawRequest(world.port, request).catch((error) => String(error))
    const wrong =
      typeof answer === 'string'
        ? answer
        : (noFault(answer) ??
          (isLink ? linkComplaint(request, answer) : browserComplaint(caller, request, answer)) ??
          sightComplaint(caller, request, answer))
    if (wrong) failures.push(`seed ${SEED + n}: ${caller} ${JSON.stringify(request).slice(0, 1_000)} → ${wrong}`)
    if (typeof answer !== 'string') statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
  }
  t.same(failures, [], `FUZZ_SEED=${SEED}`)
  t.comment([...statuses].map(([status, count]) => `${status}: ${count}`).join(', '))
  for (const status of [101, 200, 201, 400, 404, 409, 410, 413, 415, 429])
    t.ok(statuses.has(status), `some were answered ${status}`)

  const { waiting, call } = world
  const left = (await call('GET', '/inbox?profile=secret', undefined, { authorization: 'Bearer ann' })).json
  const ids = left.map(({ request }: { request: { id: string } }) => request.id)
  for (const { requestId } of waiting) t.ok(ids.includes(requestId), 'nobody has answered what waits')
  const link = { method: 'POST', path: `/v1/answer?token=${waiting[0]!.token}`, headers: { 'content-type': FORM } }
  t.equal(
    (await rawRequest(world.port, { ...link, body: 'behavior=allow' })).status,
    200,
    'and its own link still does',
  )
})
