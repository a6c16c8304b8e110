import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { PATIENCE_MS } from '../../src/lib/patience.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { failingDisk } from '../fixtures/failing-disk.js'

const key = (value: string, more: Record<string, string> = {}) => ({ 'idempotency-key': value, ...more })
const session = { cwd: SOME_CWD }

t.test('a request with a key is carried out once, and its answer repeated', async (t) => {
  const { call, registry, worker, clock } = await buildServer(t, { queue: {} })
  const first = await call('POST', '/sessions', session, key('a'))
  const again = await call('POST', '/sessions', session, key('a'))
  t.same([again.status, again.text], [first.status, first.text])
  t.equal(again.headers.get('location'), first.headers.get('location'))
  t.match(again.headers.get('content-type'), /^application\/json/)
  t.same(
    [first, again].map(({ headers }) => headers.get('idempotent-replayed')),
    [null, 'true'],
  )
  t.equal((await registry.list()).length, 1)

  const job = { session: { ...session, prompt: 'x' } }
  const jobs = [await call('POST', '/jobs', job, key('a')), await call('POST', '/jobs', job, key('a'))]
  t.equal(jobs[0]?.status, 201, 'keys of different routes are different keys')
  t.equal(jobs[0]?.json.id, jobs[1]?.json.id)
  t.equal((await worker.queue!.page({})).items.length, 1)

  const other = await call('POST', '/sessions', { ...session, title: 'x' }, key('a'))
  t.match([other.status, other.json.code], [422, 'SG_ERR_IDEMPOTENCY_MISMATCH'])
  await clock.advance(24 * 3_600_000 - 1)
  t.equal((await call('POST', '/sessions', session, key('a'))).json.id, first.json.id)
  await clock.advance(1)
  t.not((await call('POST', '/sessions', session, key('a'))).json.id, first.json.id, 'for a day')
})

t.test(
  'a body whose members come in another order is the same body, nested ones too; that of a list is not',
  async (t) => {
    const { call } = await buildServer(t)
    const body = { ...session, title: 'x', meta: { a: { b: 1, c: 2 }, list: [1, 2] } }
    const turned = { meta: { list: [1, 2], a: { c: 2, b: 1 } }, title: 'x', ...session }
    const first = await call('POST', '/sessions', body, key('a'))
    const again = await call('POST', '/sessions', turned, key('a'))
    t.same([again.status, again.json, again.headers.get('idempotent-replayed')], [201, first.json, 'true'])
    const other = await call('POST', '/sessions', { ...body, meta: { ...body.meta, list: [2, 1] } }, key('a'))
    t.equal(other.status, 422)
  },
)

t.test('a key that an earlier version kept, to which the order of members counted, is still known', async (t) => {
  const storage = createMemoryStorage()
  const { call, registry } = await buildServer(t, { storage })
  const body = { title: 'x', ...session }
  const digest = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('base64url')
  const { json: made } = await call('POST', '/sessions', session)
  // as it was written then: an answer under the digest of the body as it came
  const begin = storage.idempotency!.begin.bind(storage.idempotency)
  let scoped = ''
  storage.idempotency!.begin = (given, fingerprint) => {
    scoped = given
    return begin(given, fingerprint)
  }
  t.equal((await call('POST', '/sessions', {}, key('a'))).status, 400)
  await storage.idempotency!.begin(scoped, digest(body))
  const answer = { status: 201, headers: { 'content-type': 'application/json' }, body: JSON.stringify(made) }
  await storage.idempotency!.complete(scoped, answer)
  const before = (await registry.list()).length
  const again = await call('POST', '/sessions', body, key('a'))
  t.same([again.status, again.text, again.headers.get('idempotent-replayed')], [201, answer.body, 'true'])
  t.equal((await call('POST', '/sessions', { ...session, title: 'y' }, key('a'))).status, 422, 'and no other body')
  t.equal((await registry.list()).length, before)
})

t.test('while the first is in progress the second is told so', async (t) => {
  const building: (() => void)[] = []
  const { call, engine } = await buildServer(t, {
    createEngineRunner: async (context) => {
      await new Promise<void>((resolve) => building.push(resolve))
      return engine.create(context)
    },
  })
  const first = call('POST', '/sessions', session, key('a'))
  await until(() => building.length === 1)
  const second = await call('POST', '/sessions', session, key('a'))
  t.match([second.status, second.json.code], [409, 'SG_ERR_IDEMPOTENCY_IN_FLIGHT'])
  t.ok(second.headers.get('retry-after'))
  t.equal((await call('POST', '/sessions', { ...session, title: 'x' }, key('a'))).status, 422)
  building[0]?.()
  t.equal((await first).status, 201)
  t.equal((await call('POST', '/sessions', session, key('a'))).headers.get('idempotent-replayed'), 'true')
})

t.test('a request that was refused changed nothing, and its key is free', async (t) => {
  let fails = true
  const { call, engine } = await buildServer(t, {
    createEngineRunner: (context) => {
      if (fails) throw new Error('down')
      return engine.create(context)
    },
  })
  t.equal((await call('POST', '/sessions', session, key('a'))).status, 502)
  t.equal((await call('POST', '/sessions', { ...session, cwd: 'x' }, key('a'))).status, 400)
  fails = false
  const created = await call('POST', '/sessions', session, key('a'))
  t.match([created.status, created.headers.get('idempotent-replayed')], [201, null])
})

t.test(
  'a key that could not be let go of is free once the storage is back, though its request came again',
  async (t) => {
    const { disk, storage } = failingDisk()
    t.teardown(() => disk.release())
    const { call, clock, url } = await buildServer(t, { storage, queue: {}, health: true })
    const submit = () =>
      call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'work' } }, { 'idempotency-key': 'k' })
    disk.only = 'queue.add'
    disk.hold()
    const first = submit()
    await until(() => disk.held > 0, 'the write')
    disk.only = undefined
    disk.fails = 'SQLITE_FULL'
    await clock.advance(PATIENCE_MS)
    t.match(await first, { status: 503 })
    t.match(await submit(), { status: 503 }, 'nothing is kept yet')
    disk.fails = undefined
    disk.release()
    await until(async () => {
      await clock.advance(1_000)
      return (await fetch(`${url}/readyz`)).status === 200
    }, 'the storage is back')
    t.match(await submit(), { status: 201 })
  },
)

t.test('callers do not share keys', async (t) => {
  const claims: Record<string, unknown> = {
    anna: { id: 'anna' },
    ben: { id: 'ben' },
    'anna, limited': { id: 'anna', allowedProfiles: ['scripted'] },
    text: 'text',
    'a row of a database': { id: 5n },
    'the next row': { id: 6n, name: 'anna' },
    'a document': { id: { toJSON: () => '65f0' }, name: 'anna' },
    'the next document': { id: { toJSON: () => '65f1' }, name: 'anna' },
    'a binary key': { id: Buffer.from([1]), name: 'anna' },
    'the next binary key': { id: Buffer.from([2]), name: 'anna' },
  }
  const { call, registry } = await buildServer(t, {
    authenticate: ({ headers }: FastifyRequest) => {
      const found = claims[String(headers['x-caller'])]
      return typeof found === 'object' ? { ...found, requestedAt: Math.random() } : found
    },
  })
  const ids = new Set<string>()
  for (const caller of [...Object.keys(claims), ...Object.keys(claims)])
    ids.add((await call('POST', '/sessions', session, key('a', { 'x-caller': caller }))).json.id)
  t.equal(ids.size, Object.keys(claims).length)
  t.equal((await registry.list()).length, ids.size)
})

t.test('callers that are told apart by nothing but a bigint somewhere do not share keys', async (t) => {
  const { call } = await buildServer(t, {
    authenticate: ({ headers }: FastifyRequest) => ({ user: { number: BigInt(String(headers['x-caller'])) } }),
  })
  const create = async (caller: string) =>
    (await call('POST', '/sessions', session, key('a', { 'x-caller': caller }))).json.id
  const first = await create('5')
  t.not(await create('6'), first)
  t.equal(await create('5'), first)
})

t.test('profiles and permissions take keys, other routes do not mind them', async (t) => {
  const { call, engine } = await buildServer(t, {
    profileStore: createMemoryProfileStore(),
    authenticate: () => ({ name: 'm', canManageProfiles: true }),
  })
  const profile = { name: 'new', engine: 'provider', provider: { id: 'x' } }
  t.equal((await call('POST', '/profiles', profile, key('p'))).status, 201)
  t.equal((await call('POST', '/profiles', profile, key('p'))).status, 201)
  t.equal((await call('POST', '/profiles', profile)).status, 409)

  const { json } = await call('POST', '/sessions', { ...session, profile: 'scripted', prompt: 'x' })
  await until(() => engine.last.sent.length === 1)
  const asking = [1, 2].map((n) => engine.last.host.requestPermission({ toolName: 'T', toolUseId: `t${n}`, input: {} }))
  const pending = (await call('GET', `/sessions/${json.id}/events`)).json.events.filter(
    ({ type }: { type: string }) => type === 'permission_requested',
  )
  const answer = (index: number) =>
    call('POST', `/sessions/${json.id}/permissions/${pending[index].request.id}`, { behavior: 'allow' }, key('q'))
  t.same((await answer(0)).json, { resolved: true })
  t.match(await answer(0), { status: 200, json: { resolved: true } }, 'repeated, not 404')
  t.match((await answer(1)).headers.get('idempotent-replayed'), null, 'another request is another thing')
  t.match(await Promise.all(asking), [{ behavior: 'allow' }, { behavior: 'allow' }])
  t.equal((await call('GET', '/sessions', undefined, key('x'))).status, 200)
})

t.test('a key is one to 255 characters of visible ASCII', async (t) => {
  const { call } = await buildServer(t)
  for (const bad of ['', 'x'.repeat(256), 'ä'])
    t.equal((await call('POST', '/sessions', session, key(bad))).status, 400)
  t.equal((await call('POST', '/sessions', session, key('x'.repeat(255)))).status, 201)
})
