import type { FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import type { InboxItem } from '../../schemas/notifications.js'
import { GatewayError } from '../../src/errors.js'
import { deferred } from '../../src/lib/deferred.js'
import { UNLIMITED } from '../../src/principal.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { type BuildOptions, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { native } from '../fixtures/parked.js'

const QUESTION = {
  questions: [{ question: 'Which?', header: 'Which', options: [{ label: 'this' }, { label: 'that' }] }],
}
const profiles = ['a', 'b', 'c'].map((name) => ({ name, engine: 'provider' as const, provider: { id: 'scripted' } }))

async function build(t: Test, options: BuildOptions = {}) {
  const world = await buildServer(t, {
    profiles,
    authenticate: ({ headers }) => {
      const allowed = headers['x-profiles'] as string | undefined
      return { name: headers['x-user'], ...(allowed !== undefined && { allowedProfiles: allowed.split(',') }) }
    },
    ...options,
  })
  const { call, engine } = world
  const inbox = async (query = '', headers = {}) => (await call('GET', `/inbox${query}`, undefined, headers)).json
  /** A session in a turn that asks. */
  const ask = async (profile = 'a', { isQuestion = false, ...more }: { isQuestion?: boolean; title?: string } = {}) => {
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile, prompt: 'x', ...more })
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    const toolName = isQuestion ? 'AskUserQuestion' : 'Write'
    const decision = runner.host.requestPermission({ toolName, toolUseId: 't', input: isQuestion ? QUESTION : {} })
    const known = new Set<string>()
    let item: InboxItem | undefined
    await until(async () => {
      item = (await inbox(`?sessionId=${json.id}`)).find(({ request }: InboxItem) => !known.has(request.id))
      return item
    })
    return { id: json.id as string, item: item!, runner, decision }
  }
  return { ...world, inbox, ask }
}

t.test('everything that waits for a person is in one list, oldest first, with its session', async (t) => {
  const { inbox, ask, call, clock } = await build(t)
  t.same(await inbox(), [])
  t.same((await call('GET', '/inbox/count')).json, { permissions: 0, questions: 0 })
  const asked: Awaited<ReturnType<typeof ask>>[] = []
  for (const [profile, isQuestion] of [
    ['b', false],
    ['a', true],
    ['a', false],
    ['c', true],
    ['b', false],
  ] as const) {
    asked.push(await ask(profile, { isQuestion, title: `of ${profile}` }))
    await clock.advance(10)
  }
  const all: InboxItem[] = await inbox()
  t.same(
    all.map(({ session, kind }) => [session.id, session.profile, session.title, kind]),
    asked.map(({ id, item }) => [id, item.session.profile, `of ${item.session.profile}`, item.kind]),
  )
  t.match(all[0], {
    kind: 'permission',
    request: { toolName: 'Write', toolUseId: 't', input: {} },
    session: { cwd: SOME_CWD },
    since: Number,
    expiresAt: Number,
    seq: Number,
  })
  const { events } = (await call('GET', `/sessions/${all[0]!.session.id}/events`)).json
  const event = events.find(({ seq }: { seq: number }) => seq === all[0]!.seq)
  t.match(event, { type: 'permission_requested', ts: all[0]!.since, request: { id: all[0]!.request.id } })
  t.same((await call('GET', '/inbox/count')).json, { permissions: 3, questions: 2 })
  const ids = (items: InboxItem[]) => items.map(({ request }) => request.id)
  const of = (isOf: (item: InboxItem) => boolean) => ids(all.filter(isOf))
  t.same(
    ids(await inbox('?kind=question')),
    of(({ kind }) => kind === 'question'),
  )
  t.same(
    ids(await inbox('?profile=b')),
    of(({ session }) => session.profile === 'b'),
  )
  t.same(
    ids(await inbox('?profile=a&kind=permission')),
    of(({ session, kind }) => session.profile === 'a' && kind === 'permission'),
  )
  t.same(ids(await inbox(`?sessionId=${asked[1]!.id}`)), [asked[1]!.item.request.id])
  t.same(await inbox(`?sessionId=${asked[1]!.id}&profile=b`), [])
  for (const allowed of ['a', 'b,c', 'c,c', '']) {
    const headers = { 'x-profiles': allowed }
    const sees = ({ session }: InboxItem) => allowed.split(',').includes(session.profile)
    t.same(ids(await inbox('', headers)), of(sees), `who may see ${allowed}`)
    const count = (await call('GET', '/inbox/count', undefined, headers)).json
    t.equal(count.permissions + count.questions, of(sees).length)
    t.same(
      ids(await inbox('?profile=b', headers)),
      of((item) => sees(item) && item.session.profile === 'b'),
    )
    const other = await inbox(`?sessionId=${asked[1]!.id}`, headers)
    t.same(
      ids(other),
      of((item) => sees(item) && item.session.id === asked[1]!.id),
    )
  }
})

t.test('no name of a profile stands for those of all', async (t) => {
  const { ask, inbox, call } = await build(t, {
    authenticate: ({ headers }) =>
      headers.name === undefined || { allowedProfiles: [JSON.parse(String(headers.name))] },
  })
  await ask('a')
  for (const name of ['\0', '', '*', '__proto__', 'constructor', 'Symbol(all)', 'undefined']) {
    const caller = { name: JSON.stringify(name) }
    t.same(await inbox('', caller), [], caller.name)
    t.same(await inbox(`?profile=${encodeURIComponent(name)}`, caller), [], caller.name)
    t.same((await call('GET', '/inbox/count', undefined, caller)).json, { permissions: 0, questions: 0 }, caller.name)
    t.same(await inbox(`?profile=${encodeURIComponent(name)}`), [], caller.name)
  }
  t.equal((await inbox()).length, 1)
})

t.test('pages lose and repeat nothing, while requests come and go', async (t) => {
  const { inbox, ask, call } = await build(t)
  const asked: Awaited<ReturnType<typeof ask>>[] = []
  for (let n = 0; n < 7; n++) asked.push(await ask(['a', 'b', 'c'][n % 3]))
  const read: string[] = []
  let path = '/inbox?limit=2'
  for (let page = 0; path; page++) {
    const { json, headers } = await call('GET', path)
    read.push(...json.map(({ request }: InboxItem) => request.id))
    if (page === 0) {
      const [first, second] = asked
      for (const { id, item } of [first!, second!])
        await call('POST', `/sessions/${id}/permissions/${item.request.id}`, { behavior: 'allow' })
    }
    path = /<\/v1([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? ''
  }
  t.same(
    read,
    asked.map(({ item }) => item.request.id),
  )
  t.equal((await inbox()).length, 5)
  for (const query of ['cursor=x', 'kind=x', 'limit=0', 'limit=201', 'nothing=1', 'cursor='])
    t.match((await call('GET', `/inbox?${query}`)).json, { status: 400, code: 'SG_ERR_VALIDATION' }, query)
  t.equal((await call('GET', '/inbox/count?profile=a')).status, 400)
})

t.test('what is settled is gone, however it was', async (t) => {
  const { inbox, ask, call, clock, engine } = await build(t)
  const settle: Record<string, (asked: Awaited<ReturnType<typeof ask>>) => unknown> = {
    answered: ({ id, item }) => call('POST', `/sessions/${id}/permissions/${item.request.id}`, { behavior: 'deny' }),
    interrupted: ({ id }) => call('POST', `/sessions/${id}/commands`, { type: 'interrupt' }),
    closed: ({ id }) => call('POST', `/sessions/${id}/commands`, { type: 'close' }),
    removed: ({ id }) => call('DELETE', `/sessions/${id}`),
    failed: ({ runner }) => runner.host.emit({ type: 'session_error', message: 'it broke' }),
    expired: () => clock.advance(300_000),
  }
  for (const [how, act] of Object.entries(settle)) {
    const asked = await ask()
    t.equal((await inbox()).length, 1)
    await act(asked)
    t.same(await inbox(), [], how)
    t.same((await call('GET', '/inbox/count')).json, { permissions: 0, questions: 0 }, how)
  }
  t.ok(engine.runners.length > 0)
})

t.test('several answers at once: each as its own route would have given it, in their order', async (t) => {
  const { inbox, ask, call } = await build(t)
  const [a, b, question, hidden] = [
    await ask('a'),
    await ask('b'),
    await ask('b', { isQuestion: true }),
    await ask('c'),
  ]
  const of = ({ id, item }: typeof a) => ({ sessionId: id, requestId: item.request.id })
  const ada = { 'x-user': 'ada', 'x-profiles': 'a,b' }
  const answers = [
    { ...of(a), behavior: 'maybe' },
    { ...of(a), behavior: 'allow', nonsense: 1 },
    { ...of(a), behavior: 'allow' },
    { ...of(a), behavior: 'deny' },
    { ...of(b), behavior: 'deny', message: 'no' },
    { ...of(b), requestId: 'no such request', behavior: 'allow' },
    { ...of(a), sessionId: 'no such session', behavior: 'allow' },
    { ...of(hidden), behavior: 'allow' },
    { ...of(question), behavior: 'allow', updatedInput: { answers: { 'Which?': 'that' } } },
  ]
  const { status, json } = await call('POST', '/inbox/answers', { answers }, ada)
  t.equal(status, 200)
  const singles = ['SG_ERR_VALIDATION', 'SG_ERR_VALIDATION', 0, 'SG_ERR_PERMISSION_NOT_FOUND', 0]
  const codes = [...singles, 'SG_ERR_PERMISSION_NOT_FOUND', 'SG_ERR_SESSION_NOT_FOUND', 'SG_ERR_SESSION_NOT_FOUND', 0]
  t.same(
    json.results.map(({ sessionId, requestId, resolved, code }: Record<string, unknown>) => [
      sessionId,
      requestId,
      resolved,
      code,
    ]),
    answers.map(({ sessionId, requestId }, index) => [
      sessionId,
      requestId,
      codes[index] === 0,
      codes[index] || undefined,
    ]),
  )
  for (const { resolved, detail } of json.results) t.equal(typeof detail, resolved ? 'undefined' : 'string')
  t.match(await a.decision, { behavior: 'allow', updatedInput: {} })
  t.match(await b.decision, { behavior: 'deny', message: 'no' })
  t.match(await question.decision, { updatedInput: { answers: { 'Which?': 'that' } } })
  const { events } = (await call('GET', `/sessions/${a.id}/events`)).json
  t.match(
    events.filter(({ type }: { type: string }) => type === 'permission_resolved'),
    [{ by: { principal: 'ada', channel: 'inbox' } }],
  )
  t.same(
    (await inbox()).map(({ session }: InboxItem) => session.id),
    [hidden.id],
  )
  t.same((await call('POST', '/inbox/answers', { answers: [] })).json, { results: [] })
  const many = Array.from({ length: 101 }, () => ({ ...of(hidden), behavior: 'allow' }))
  for (const body of [
    { answers: many },
    { answers: [{ behavior: 'allow' }] },
    { answers: [1] },
    { answers: 1 },
    {},
    [],
  ])
    t.equal((await call('POST', '/inbox/answers', body)).status, 400, JSON.stringify(body).slice(0, 60))
  t.equal((await inbox()).length, 1, 'what was refused as a whole has answered nothing')
})

t.test('the same key answers once', async (t) => {
  const { ask, call } = await build(t)
  const { id, item } = await ask()
  const body = { answers: [{ sessionId: id, requestId: item.request.id, behavior: 'allow' }] }
  const headers = { 'idempotency-key': 'k' }
  const first = await call('POST', '/inbox/answers', body, headers)
  const second = await call('POST', '/inbox/answers', body, headers)
  t.match(first.json, { results: [{ resolved: true }] })
  t.same(second.json, first.json)
  t.equal(second.headers.get('idempotent-replayed'), 'true')
})

t.test('the same key tries again what could not be kept, and nothing else', async (t) => {
  const { ask, call, registry } = await build(t)
  const [a, b] = [await ask(), await ask()]
  const whose = [a, b].map(({ id, item }) => ({ sessionId: id, requestId: item.request.id }))
  const answers = [...whose, { ...whose[0]!, requestId: 'none' }].map((one) => ({ ...one, behavior: 'allow' }))
  const give = () => call('POST', '/inbox/answers', { answers }, { 'idempotency-key': 'k' })
  const unknown = { resolved: false, code: 'SG_ERR_PERMISSION_NOT_FOUND' }
  const resolve = registry.resolvePermission.bind(registry)
  registry.resolvePermission = async (id, ...given) => {
    if (id === b.id) throw new GatewayError('SG_ERR_STORE_UNAVAILABLE')
    return resolve(id, ...given)
  }
  const refused = { resolved: false, code: 'SG_ERR_STORE_UNAVAILABLE' }
  t.match((await give()).json, { results: [{ resolved: true }, refused, unknown] })
  t.match((await give()).json, { results: [{ resolved: true }, refused, unknown] }, 'what was done stays done')
  registry.resolvePermission = resolve
  const again = await give()
  t.match(again.json, { results: [{ ...whose[0], resolved: true }, { ...whose[1], resolved: true }, unknown] })
  t.equal(again.headers.get('idempotent-replayed'), null, 'it was carried out')
  t.match(await Promise.all([a.decision, b.decision]), [{ behavior: 'allow' }, { behavior: 'allow' }])
  const last = await give()
  t.same([last.json, last.headers.get('idempotent-replayed')], [again.json, 'true'], 'now it is done')
})

t.test(
  'of two that are the same in one request with a key the second comes too late, as it does without one',
  async (t) => {
    const { ask, call } = await build(t)
    const { id, item } = await ask()
    const answer = { sessionId: id, requestId: item.request.id, behavior: 'allow' }
    const give = () => call('POST', '/inbox/answers', { answers: [answer, answer] }, { 'idempotency-key': 'k' })
    const told = { results: [{ resolved: true }, { resolved: false, code: 'SG_ERR_PERMISSION_NOT_FOUND' }] }
    t.match((await give()).json, told)
    t.match((await give()).json, told)
  },
)

t.test('the second of two that are the same comes too late also when it is tried again with the key', async (t) => {
  const { ask, call, registry } = await build(t)
  const { id, item } = await ask()
  const answer = { sessionId: id, requestId: item.request.id, behavior: 'allow' }
  const give = () => call('POST', '/inbox/answers', { answers: [answer, answer] }, { 'idempotency-key': 'k' })
  const resolve = registry.resolvePermission.bind(registry)
  let asked = 0
  registry.resolvePermission = async (...given) => {
    if (++asked === 2) throw new GatewayError('SG_ERR_STORE_UNAVAILABLE')
    return resolve(...given)
  }
  const told = (code: string) => ({ results: [{ resolved: true }, { resolved: false, code }] })
  t.match((await give()).json, told('SG_ERR_STORE_UNAVAILABLE'))
  t.match((await give()).json, told('SG_ERR_PERMISSION_NOT_FOUND'))
})

t.test('answers whose keys could not be completed are repeated once the storage takes them', async (t) => {
  const storage = createMemoryStorage()
  const { complete } = storage.idempotency
  const { ask, call } = await build(t, { storage })
  const [a, b] = [await ask(), await ask()]
  const answers = [a, b].map(({ id, item }) => ({ sessionId: id, requestId: item.request.id, behavior: 'allow' }))
  const give = () => call('POST', '/inbox/answers', { answers }, { 'idempotency-key': 'k' })
  storage.idempotency.complete = () => Promise.reject(new Error('no space left on device'))
  const told = { results: [{ resolved: true }, { resolved: true }] }
  t.match((await give()).json, told)
  t.equal((await give()).status, 503, 'it is not said to be in progress')
  storage.idempotency.complete = complete
  const again = await give()
  t.match([again.status, again.headers.get('idempotent-replayed')], [200, 'true'])
  t.match(again.json, told)
})

t.test('of two that try again at once with the same key, one does', async (t) => {
  const storage = createMemoryStorage()
  let came = 0
  const authenticate = ({ headers }: FastifyRequest) => {
    if (headers['idempotency-key'] !== undefined) came++
    return {}
  }
  const { ask, call, registry } = await build(t, { storage, authenticate })
  const { id, item, decision } = await ask()
  const answers = [{ sessionId: id, requestId: item.request.id, behavior: 'allow' }]
  const give = () => call('POST', '/inbox/answers', { answers }, { 'idempotency-key': 'k' })
  const resolve = registry.resolvePermission.bind(registry)
  registry.resolvePermission = () => Promise.reject(new GatewayError('SG_ERR_STORE_UNAVAILABLE'))
  t.match((await give()).json, { results: [{ resolved: false }] })
  const gate = deferred()
  let given = 0
  registry.resolvePermission = async (...what) => {
    given++
    await gate.promise
    return resolve(...what)
  }
  // the second one asks before the first goes on: both find it answered
  const { begin } = storage.idempotency
  let asked = 0
  storage.idempotency.begin = async (...key) => {
    if (asked++ === 0) {
      await until(() => came === 3)
      for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    }
    return begin(...key)
  }
  const both = [give(), give()]
  const refused = await Promise.race(both)
  t.match(refused.json, { code: 'SG_ERR_IDEMPOTENCY_IN_FLIGHT' })
  gate.resolve()
  t.same((await Promise.all(both)).map(({ status }) => status).sort(), [200, 409])
  t.equal(given, 1)
  t.match(await decision, { behavior: 'allow' })
  t.match((await give()).json, { results: [{ resolved: true }] })
})

t.test(
  'a request is in the inbox as soon as its session says that it waits, and told of once it is durable',
  async (t) => {
    const { registry, engine, journal, gateway } = await buildJournaled(t)
    const { inbox } = gateway.notifications
    const told: string[] = []
    inbox.listeners.on('changed', ({ profile }) => told.push(profile))
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    journal.hold()
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
    await until(() => registry.here(id)?.status === 'awaiting_approval')
    t.equal(inbox.page({}, UNLIMITED).items[0]?.session.id, id)
    t.same(inbox.count(UNLIMITED), { permissions: 1, questions: 0 })
    t.same(told, [])
    journal.release()
    await until(() => told.length === 1)
  },
)

t.test(
  'who was told a count with a request that was settled before it was durable is told that it is gone',
  async (t) => {
    const { registry, engine, journal, gateway } = await buildJournaled(t)
    const { inbox } = gateway.notifications
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    journal.hold()
    const takenBack = new AbortController()
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} }, takenBack.signal)
    await until(() => registry.here(id)?.status === 'awaiting_approval')
    const counts = [inbox.count(UNLIMITED)]
    inbox.listeners.on('changed', () => counts.push(inbox.count(UNLIMITED)))
    takenBack.abort()
    await until(() => registry.here(id)?.status === 'running')
    t.same(counts, [
      { permissions: 1, questions: 0 },
      { permissions: 0, questions: 0 },
    ])
    journal.release()
  },
)

t.test('what parked sessions wait for stays in its place over a restart, and leaves when it is answered', async (t) => {
  let isBroken = false
  const start = () => {
    if (isBroken) throw new Error('not now')
  }
  const script = {
    ...native,
    start: (runner: { init(): void }) => {
      start()
      runner.init()
    },
  }
  const world = await buildJournaled(t, { script })
  const { registry, engine, again, clock } = world
  const page = (gateway: typeof world.gateway) => gateway.notifications.inbox.page({}, UNLIMITED).items
  const ids: string[] = []
  for (let n = 0; n < 3; n++) {
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0, title: `number ${n}` })
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: `t${n}`, input: { n } })
    ids.push(id)
  }
  await until(() => ids.every((id) => registry.here(id)?.status === 'parked'))
  const timed = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  await until(() => page(world.gateway).length === 4)
  const before = page(world.gateway)
  await registry.durable(timed.id)

  const second = await again()
  await until(() => page(second.gateway).length === 3)
  t.same(page(second.gateway), before.slice(0, 3), 'what had an engine was cut off; the others wait on, in their order')
  t.same(second.gateway.notifications.inbox.count(UNLIMITED), { permissions: 3, questions: 0 })
  isBroken = true
  const [first, , last] = before
  const answered = second.registry.resolvePermission(ids[0]!, first!.request.id, { behavior: 'allow' }, UNLIMITED)
  await until(() => page(second.gateway).length === 2)
  t.equal(second.registry.here(ids[0]!)?.parked !== undefined, true, 'before its session could be woken')
  await second.registry.close(ids[2]!, 'client')
  t.same(
    page(second.gateway).map(({ session }) => session.id),
    [ids[1]],
    'removed with its session',
  )
  t.not(last, undefined)
  await clock.advance(5_000)
  await answered

  const third = await again()
  t.same(
    page(third.gateway).map(({ session }) => session.id),
    [ids[1]],
    'and it stays so',
  )
})
