import type { FastifyRequest } from 'fastify'
import t from 'tap'
import type { InboxItem } from '../../schemas/notifications.js'
import { GatewayError } from '../../src/errors.js'
import { deferred } from '../../src/lib/deferred.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { until } from '../fixtures/build.js'
import { buildInbox } from '../fixtures/inbox-world.js'

t.test('several answers at once: each as its own route would have given it, in their order', async (t) => {
  const { inbox, ask, call } = await buildInbox(t)
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
  const { ask, call } = await buildInbox(t)
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
  const { ask, call, registry } = await buildInbox(t)
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
    const { ask, call } = await buildInbox(t)
    const { id, item } = await ask()
    const answer = { sessionId: id, requestId: item.request.id, behavior: 'allow' }
    const give = () => call('POST', '/inbox/answers', { answers: [answer, answer] }, { 'idempotency-key': 'k' })
    const told = { results: [{ resolved: true }, { resolved: false, code: 'SG_ERR_PERMISSION_NOT_FOUND' }] }
    t.match((await give()).json, told)
    t.match((await give()).json, told)
  },
)

t.test('the second of two that are the same comes too late also when it is tried again with the key', async (t) => {
  const { ask, call, registry } = await buildInbox(t)
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
  const { ask, call } = await buildInbox(t, { storage })
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
  const { ask, call, registry } = await buildInbox(t, { storage, authenticate })
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
