import t from 'tap'
import type { SessionNotification } from '../../schemas/notifications.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

type Call = Awaited<ReturnType<typeof buildServer>>['call']

/** Makes some notifications: each turn of a session is one. */
async function turns(world: Pick<Awaited<ReturnType<typeof buildServer>>, 'call' | 'engine'>, count: number) {
  const { json } = await world.call('POST', '/sessions', { cwd: SOME_CWD })
  for (let turn = 0; turn < count; turn++) {
    await world.call('POST', `/sessions/${json.id}/commands`, { type: 'user_message', text: `turn ${turn}` })
    await until(() => world.engine.last.sent.length === turn + 1)
    world.engine.last.complete({ result: `turn ${turn}` })
  }
  return json.id as string
}

/** Closes a gateway whose clock stands still. */
async function closed({ worker, clock }: Pick<Awaited<ReturnType<typeof buildServer>>, 'worker' | 'clock'>) {
  let isClosed = false
  const closing = worker.close().then(() => {
    isClosed = true
  })
  await until(async () => {
    await clock.advance(1_000)
    return isClosed
  })
  await closing
}

/** Everything after an id, page by page. */
async function readOn(call: Call, after: string | undefined, limit: number): Promise<SessionNotification[]> {
  const all: SessionNotification[] = []
  for (let path = `/notifications?limit=${limit}${after === undefined ? '' : `&after=${after}`}`; ; ) {
    const { json, headers } = await call('GET', path)
    all.push(...json)
    const next = /<\/v1([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
    if (next === undefined) return all
    path = next
  }
}

t.test('every notification has its place, and everything after a place is read from it', async (t) => {
  const world = await buildServer(t)
  const id = await turns(world, 7)
  await world.call('DELETE', `/sessions/${id}`)
  const all = (await world.call('GET', '/notifications')).json as SessionNotification[]
  t.same(
    all.map(({ type, preview }) => [type, preview]),
    [
      ...Array.from({ length: 7 }, (_, turn) => ['turn_completed', `turn ${turn}`]),
      ['session_closed', 'The session ended (client).'],
    ],
    'oldest first',
  )
  const ids = all.map(({ id }) => id)
  t.same([...ids].sort(), ids, 'their ids rise as text')
  t.equal(new Set(ids).size, 8)
  const newest = await world.call('GET', '/notifications?limit=3')
  t.same(newest.json, all.slice(-3), 'without a place: the newest page')
  t.equal(newest.headers.get('link'), null)
  for (const [index, id] of ids.entries()) t.same(await readOn(world.call, id, 3), all.slice(index + 1))
  t.same((await world.call('GET', '/notifications?types=session_closed,session_error')).json, all.slice(-1))
  t.same((await world.call('GET', '/notifications?profile=other')).json, [])
  t.equal((await world.call('GET', `/notifications?types=session_closed&after=${ids[0]}&limit=1`)).json.length, 1)
})

t.test('what is to be forgotten at once, and is not, is not asked for without a pause', async (t) => {
  const storage = createMemoryStorage()
  let asked = 0
  const notifications: NonNullable<typeof storage.notifications> = Object.create(storage.notifications!, {
    prune: {
      value: () => {
        asked++
        return Promise.reject(new Error('disk full'))
      },
    },
  })
  const retention = { maxAgeMs: 1 }
  const world = await buildServer(t, { storage: { ...storage, notifications }, notifications: { retention } })
  await turns(world, 1)
  await until(async () => (await storage.notifications!.oldest(0)) !== undefined)
  asked = 0
  await world.clock.advance(10_000)
  t.ok(asked > 1 && asked < 15, `${asked} times in ten seconds`)
  await closed(world)
})

t.test('what is no place is refused, and after a place that is not known comes all that is kept', async (t) => {
  const world = await buildServer(t)
  await turns(world, 2)
  for (const query of [
    'after=',
    'after=x',
    'after=e%3A1',
    'types=',
    'types=nothing',
    'types=,',
    'limit=0',
    'cursor=x',
  ]) {
    const { status, json } = await world.call('GET', `/notifications?${query}`)
    t.equal(status, 400, query)
    t.equal(json.code, 'SG_ERR_VALIDATION')
    t.match(json.errors?.[0]?.path, new RegExp(query.split('=')[0]!))
  }
  const { json: all } = await world.call('GET', '/notifications')
  const other = '0b5c4a1e-0000-4000-8000-000000000000:000000000002'
  t.same((await world.call('GET', `/notifications?after=${other}`)).json, all, 'of another gateway')
  const ahead = all[1].id.replace(/\d+$/, '000000009999')
  t.same((await world.call('GET', `/notifications?after=${ahead}`)).json, all, 'not come to yet')
})

t.test('everybody reads of what they may see, as it is now', async (t) => {
  let allowed: string[] | undefined
  const world = await buildServer(t, {
    authenticate: () => ({ ...(allowed && { allowedProfiles: allowed }) }),
    profiles: ['a', 'b'].map((name) => ({ name, engine: 'provider' as const, provider: { id: 'scripted' } })),
  })
  for (const profile of ['a', 'b', 'a']) {
    const { json } = await world.call('POST', '/sessions', { cwd: SOME_CWD, profile })
    await world.call('DELETE', `/sessions/${json.id}`)
  }
  const profiles = async (query = '') =>
    (await world.call('GET', `/notifications${query}`)).json.map((told: SessionNotification) => told.session.profile)
  t.same(await profiles(), ['a', 'b', 'a'])
  allowed = ['b']
  t.same(await profiles(), ['b'])
  t.same(await profiles('?profile=a'), [], 'asking does not help')
  allowed = []
  t.same(await profiles(), [])
  allowed = ['a', 'c']
  t.same(await profiles('?limit=1'), ['a'])
  t.same(await profiles('?profile=a'), ['a', 'a'])
})

t.test('notifications outlive the process with their ids, and are forgotten when they are many or old', async (t) => {
  const storage = createMemoryStorage()
  const retention = { maxCount: 1000, maxAgeMs: 60_000 }
  const first = await buildServer(t, { storage, notifications: { retention } })
  await turns(first, 3)
  const { json: before } = await first.call('GET', '/notifications')
  await closed(first)

  const second = await buildServer(t, { storage, notifications: { retention }, clock: first.clock })
  t.same((await second.call('GET', '/notifications')).json, before)
  await turns(second, 2)
  const { json: after } = await second.call('GET', `/notifications?after=${before[2].id}`)
  t.equal(after.length, 2)
  t.ok(after[0].id > before[2].id, 'the numbering goes on')
  await second.clock.advance(59_999)
  t.equal((await second.call('GET', '/notifications')).json.length, 2, 'those of the first process are too old')
  await second.clock.advance(2)
  t.same((await second.call('GET', '/notifications')).json, [])
  const range = { after: 0, until: 99, since: 0 }
  await until(async () => {
    await second.clock.advance(60_000)
    return (await storage.notifications!.read(range, { limit: 9, maxBytes: 1e6 })).length === 0
  }, 'nothing of what is too old')
  await closed(second)

  const third = await buildServer(t, { storage, notifications: { retention: { maxCount: 2 } }, clock: first.clock })
  await turns(third, 4)
  const { json: kept } = await third.call('GET', '/notifications')
  t.same(
    kept.map(({ preview }: SessionNotification) => preview),
    ['turn 2', 'turn 3'],
  )
  t.ok(kept[0].id > after[1].id, 'no number is given again, although all were forgotten')
})

t.test(
  'what became of the deliveries of a notification is kept for as long as that one, and of those of a job as long as the job',
  async (t) => {
    const sink = await WebhookSink.start(t)
    const storage = createMemoryStorage()
    const { attempts } = storage.outbox
    const webhook = { url: sink.url }
    const options = { storage, queue: {}, webhookPolicy: { allowPrivateNetworks: true } }
    const old = { notifications: { webhook, retention: { maxCount: 1000, maxAgeMs: 60_000 } } }
    const first = await buildServer(t, { ...options, ...old })
    const { json: job } = await first.call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'work' }, webhook })
    await until(() => first.engine.runners.length === 1 && first.engine.last.sent.length === 1)
    first.engine.last.complete()
    await until(async () => (await attempts(job.id)).length === 2, 'the deliveries of the job')
    await turns(first, 2)
    const laneOf = ({ sessionId, seq }: SessionNotification) => `notification ${sessionId}:${seq}`
    const lanes = ((await first.call('GET', '/notifications')).json as SessionNotification[]).map(laneOf)
    const kept = async () => (await Promise.all(lanes.map((lane) => attempts(lane)))).flat().length
    await until(async () => (await kept()) === lanes.length, 'the deliveries of the notifications')
    await first.clock.advance(59_000)
    t.equal(await kept(), lanes.length)
    await until(async () => {
      await first.clock.advance(60_000)
      return (await kept()) === 0
    }, 'nothing of what is too old')
    t.equal((await attempts(job.id)).length, 2)
    await closed(first)

    const many = { notifications: { webhook, retention: { maxCount: 2 } } }
    const second = await buildServer(t, { ...options, ...many, clock: first.clock })
    await turns(second, 1)
    const [early] = (await second.call('GET', '/notifications')).json as SessionNotification[]
    lanes.splice(0, lanes.length, laneOf(early!))
    await until(async () => (await kept()) === 1, 'a delivery')
    await second.clock.advance(120_000)
    await turns(second, 110)
    await until(async () => (await kept()) === 0, 'nothing of what was told before those that are kept')
    const newest = (await second.call('GET', '/notifications')).json as SessionNotification[]
    lanes.splice(0, 1, ...newest.map(laneOf))
    await until(async () => (await kept()) === 2, 'the deliveries of those that are kept')
  },
)

t.test('a notification that could not be written down with its event is not read before it is', async (t) => {
  const world = await buildJournaled(t)
  const { registry, engine, journal, gateway, clock } = world
  const { feed } = gateway.notifications
  const told = async () => (await feed.page({}, {})).items.map(({ json }) => JSON.parse(json).preview)
  const stuck = await registry.create({ cwd: SOME_CWD, prompt: 'x' })
  await until(() => engine.last.sent.length === 1)
  const one = engine.last
  const other = await registry.create({ cwd: SOME_CWD, prompt: 'x' })
  await until(() => engine.last.sent.length === 1)
  for (const { id } of [stuck, other]) await registry.durable(id)
  journal.broken = true
  one.complete({ result: 'of the one that is stuck' })
  await until(() => !registry.isWritable, 'a write that failed')
  journal.broken = false
  engine.last.complete({ result: 'of another one' })
  await until(async () => {
    await clock.advance(1_000)
    return (await told()).length === 2
  })
  t.same(new Set(await told()), new Set(['of another one', 'of the one that is stuck']), 'each is told once it is')
})

t.test('what is read of a storage that does not answer is refused like what is written', async (t) => {
  const storage = createMemoryStorage()
  const first = await buildServer(t, { storage })
  const id = await turns(first, 1)
  await closed(first)
  const reads: string[] = []
  const hang = (name: string) => () => {
    reads.push(name)
    return new Promise<never>(() => {})
  }
  const silent = Object.assign(Object.create(storage.notifications!), { read: hang('notifications') })
  const journal = Object.assign(Object.create(storage.journal), { read: hang('journal') })
  const { call, clock } = await buildServer(t, { storage: { ...storage, journal, notifications: silent } })
  const asked = Promise.all([call('GET', `/sessions/${id}/events`), call('GET', '/notifications')])
  // and what is old is looked for at the start
  await until(() => reads.length === 3)
  await clock.advance(10_000)
  for (const { status, headers, json } of await asked)
    t.match([status, headers.get('retry-after'), json.code], [503, '5', 'SG_ERR_STORE_UNAVAILABLE'])
})
