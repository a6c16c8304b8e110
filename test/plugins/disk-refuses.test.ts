import { createECDH, randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { PATIENCE_MS } from '../../src/lib/patience.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { type BuildOptions, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { failingDisk, failingRecords } from '../fixtures/failing-disk.js'
import { testStorage } from '../fixtures/journaled.js'
import { ok } from '../fixtures/parked.js'
import type { Script, ScriptedRunner } from '../fixtures/scripted-engine.js'

async function world(t: Test) {
  const { disk, storage } = failingDisk()
  const server = await buildServer(t, {
    storage,
    profileStore: storage.profiles,
    authenticate: async () => ({ canManageProfiles: true }),
    queue: { maxConcurrency: 1, killGraceMs: 1_000 },
    health: true,
    notifications: { channels: [{ name: 'phones', format: 'web_push', subject: 'mailto:ops@example.com' }] },
    script: { capabilities: { parking: 'native', permissionModes: ['default', 'dontAsk'] } },
  })
  const { call, engine, registry } = server
  // a test that ends in between would wait for it for ever
  t.teardown(() => {
    disk.release()
    disk.slow = undefined
  })
  const { json: session } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go', profile: 'scripted' })
  await until(() => engine.last.sent.length === 1)
  const runner = engine.last
  const decided: unknown[] = []
  void runner.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} }).then((how) => decided.push(how))
  await until(async () => (await registry.get(session.id))?.pendingPermissions === 1)
  await runner.host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' })
  const job = { session: { cwd: SOME_CWD, prompt: 'work', profile: 'scripted' } }
  const { json: running } = await call('POST', '/jobs', job)
  await until(async () => (await call('GET', `/jobs/${running.id}`)).json.status === 'running')
  await until(() => engine.runners.length === 2)
  const { json: waiting } = await call('POST', '/jobs', job)
  const { json: idle } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted' })
  const profile = { name: 'mine', engine: 'provider', provider: { id: 'scripted' } }
  await call('POST', '/profiles', profile)
  await call('POST', '/notifications/subscriptions', subscriptionOf('known'))
  const { json: pending } = await call('GET', `/sessions/${session.id}`)
  const requestId = (await registry.list()) && (await permissionOf(server, session.id))
  return { ...server, disk, storage, session: pending, requestId, runner, decided, running, waiting, idle, job }
}

/** What a browser gives a page that asks it to be told. */
const subscriptionOf = (name: string) => ({
  endpoint: `https://push.example/${name}`,
  keys: {
    p256dh: createECDH('prime256v1').generateKeys('base64url'),
    auth: randomBytes(16).toString('base64url'),
  },
})

async function permissionOf(
  { call }: Pick<Awaited<ReturnType<typeof buildServer>>, 'call'>,
  id: string,
): Promise<string> {
  const { json } = await call('GET', `/sessions/${id}/events`)
  return json.events.find(({ type }: { type: string }) => type === 'permission_requested').request.id
}

type World = Awaited<ReturnType<typeof world>>

/** Every route that keeps something. */
const ROUTES: Record<string, (world: World) => [method: string, path: string, body?: unknown]> = {
  'POST /sessions': () => ['POST', '/sessions', { cwd: SOME_CWD, prompt: 'refused', profile: 'scripted' }],
  'PATCH /sessions/:id': ({ session }) => ['PATCH', `/sessions/${session.id}`, { title: 'refused' }],
  'DELETE /sessions/:id': ({ session }) => ['DELETE', `/sessions/${session.id}`],
  'POST …/commands user_message': ({ idle }) => [
    ...(['POST', `/sessions/${idle.id}/commands`] as const),
    { type: 'user_message', text: 'refused' },
  ],
  'POST …/commands set_permission_mode': ({ idle }) => [
    ...(['POST', `/sessions/${idle.id}/commands`] as const),
    { type: 'set_permission_mode', mode: 'dontAsk' },
  ],
  'POST …/commands close': ({ idle }) => ['POST', `/sessions/${idle.id}/commands`, { type: 'close' }],
  'POST …/permissions/:id': ({ session, requestId }) => [
    ...(['POST', `/sessions/${session.id}/permissions/${requestId}`] as const),
    { behavior: 'allow' },
  ],
  'POST /executions/:id/result': () => ['POST', '/executions/e1/result', ok],
  'POST /jobs': ({ job }) => ['POST', '/jobs', job],
  'DELETE /jobs/:id of one that runs': ({ running }) => ['DELETE', `/jobs/${running.id}`],
  'DELETE /jobs/:id of one that waits': ({ waiting }) => ['DELETE', `/jobs/${waiting.id}`],
  'POST /profiles': () => ['POST', '/profiles', { name: 'more', engine: 'provider', provider: { id: 'scripted' } }],
  'PATCH /profiles/:name': () => ['PATCH', '/profiles/mine', { description: 'refused' }],
  'DELETE /profiles/:name': () => ['DELETE', '/profiles/mine'],
  'POST /notifications/subscriptions': () => ['POST', '/notifications/subscriptions', subscriptionOf('refused')],
  'DELETE /notifications/subscriptions': () => [
    ...(['DELETE', '/notifications/subscriptions'] as const),
    { endpoint: 'https://push.example/known' },
  ],
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** What anybody can see, but for times and numbers that go on. */
async function seen({ call, idle, engine, runner, decided }: World) {
  const lists = await Promise.all(['/sessions', '/jobs', '/profiles', '/queue'].map((path) => call('GET', path)))
  const strip = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(strip)
    if (!isObject(value)) return value
    const { lastActivityAt: _at, lastSeq: _seq, ...rest } = value
    return Object.fromEntries(Object.entries(rest).map(([key, part]) => [key, strip(part)]))
  }
  const { json: log } = await call('GET', `/sessions/${idle.id}/events`)
  return {
    lists: lists.map(({ json }) => strip(json)),
    log: log.events.map(({ type }: { type: string }) => type),
    sent: engine.runners.map(({ sent }) => sent.length).filter((count) => count > 0),
    settled: runner.settled.length,
    decided: decided.length,
    closed: [runner.closed],
  }
}

for (const fault of ['SQLITE_FULL', 'SQLITE_IOERR'])
  t.test(
    `${fault}: every route that keeps something is refused, and nothing of it is there, then or later`,
    async (t) => {
      const built = await world(t)
      const { call, disk, url, clock } = built
      const before = await seen(built)
      disk.fails = fault
      for (const [route, of] of Object.entries(ROUTES)) {
        const { status, json, headers } = await call(...of(built))
        t.match({ status, code: json?.code }, { status: 503, code: 'SG_ERR_STORE_UNAVAILABLE' }, route)
        t.ok(Number(headers.get('retry-after')) > 0, `${route}: when to come again`)
      }
      t.match(await (await fetch(`${url}/readyz`)).json(), { status: 'storage_unavailable' })
      t.equal((await fetch(`${url}/healthz`)).status, 200)
      t.same(await seen(built), before, 'nothing was done')
      disk.fails = undefined
      await clock.advance(1_000)
      await until(async () => (await fetch(`${url}/readyz`)).status === 200, 'ready again by itself')
      await clock.advance(60_000)
      t.same(await seen(built), before, 'nor when the disk is back')
      for (const [route, of] of Object.entries(ROUTES)) {
        if (route === 'DELETE /sessions/:id') continue
        const { status } = await call(...of(built))
        t.ok(status < 300 || (status === 409 && /commands/.test(route)), `${route} is taken then: ${status}`)
      }
    },
  )

t.test('a job whose end could not be kept is told to its end as soon as the disk takes it', async (t) => {
  const { call, disk, engine, running, waiting, clock } = await world(t)
  disk.fails = 'SQLITE_FULL'
  engine.runners[1]!.complete()
  const { status } = await call('DELETE', `/jobs/${waiting.id}`)
  t.equal(status, 503)
  await clock.advance(40_000)
  disk.fails = undefined
  await clock.advance(1_000)
  await until(async () => (await call('GET', `/jobs/${running.id}`)).json.status === 'succeeded', 'its end')
})

t.test('a write that hangs: whoever asked is refused in time, and nothing of it is there when it lands', async (t) => {
  const built = await world(t)
  const { call, disk, url, clock } = built
  const before = await seen(built)
  const ready = async () => (await fetch(`${url}/readyz`)).status === 200
  for (const route of Object.keys(ROUTES)) {
    disk.hold()
    const asked = call(...ROUTES[route]!(built))
    let answered = false
    void asked.then(() => (answered = true))
    await until(() => disk.held > 0, `${route}: the write`)
    await clock.advance(PATIENCE_MS - 1)
    t.notOk(answered, `${route}: waited for`)
    t.equal((await fetch(`${url}/healthz`)).status, 200)
    await clock.advance(1)
    await until(() => answered, `${route}: an answer`)
    const { status, json, headers } = await asked
    t.match({ status, code: json?.code }, { status: 503, code: 'SG_ERR_STORE_UNAVAILABLE' }, route)
    t.ok(Number(headers.get('retry-after')) > 0, `${route}: when to come again`)
    t.notOk(await ready(), `${route}: not ready`)
    disk.release()
    await until(ready, `${route}: ready again by itself`)
    await clock.advance(5_000)
    t.same(await seen(built), before, `${route}: nothing of it when it lands`)
  }
  for (const route of Object.keys(ROUTES)) {
    if (route === 'DELETE /sessions/:id') continue
    const { status } = await call(...ROUTES[route]!(built))
    t.ok(status < 300 || (status === 409 && /commands/.test(route)), `${route} is taken then: ${status}`)
  }
  t.match(await call('DELETE', `/sessions/${built.session.id}`), { status: 200, json: { status: 'closed' } })
})

t.test('a storage that takes long for each step: who asks is answered in ten seconds all the same', async (t) => {
  const built = await world(t)
  const { call, disk, clock, worker } = built
  const last = 'DELETE /sessions/:id'
  const routes = [...Object.keys(ROUTES).filter((route) => route !== last), last]
  for (const [index, route] of routes.entries()) {
    let steps = 0
    disk.slow = async () => {
      steps++
      await new Promise<void>((resolve) => void clock.after(3_900, resolve))
      steps--
    }
    let since = clock.now()
    let answered: number | undefined
    // at the server: on its way to it and back nothing keeps what else is slow from letting time pass
    worker.server.once('request', (_request, response) => {
      since = clock.now()
      response.once('finish', () => (answered = clock.now()))
    })
    const [method, path, body] = ROUTES[route]!(built)
    const asked = call(method, path, body, { 'idempotency-key': `slow ${index}` })
    while (answered === undefined && clock.now() < since + 60_000) {
      await until(() => answered !== undefined || steps > 0, `${route}: a step, or the answer`)
      if (answered === undefined) await clock.advance(100)
    }
    const { status } = await asked
    t.ok(status < 300 || status === 503, `${route}: ${status}`)
    t.ok(answered! - since < 10_000, `${route}: after ${answered! - since} ms`)
    disk.slow = undefined
    await until(async () => {
      await clock.advance(1_000)
      return steps === 0
    }, 'a storage at rest')
  }
})

/** A session that is parked waiting for an answer and an execution, on a storage of one kind. */
const PARKED_ON: Record<string, () => { disk: ReturnType<typeof failingDisk>['disk']; options: BuildOptions }> = {
  'a storage': () => {
    const { disk, storage } = failingDisk()
    return { disk, options: { storage } }
  },
  'a store of records': () => {
    const { disk, store } = failingRecords()
    return { disk, options: { parking: { store } } }
  },
}

for (const [kind, build] of Object.entries(PARKED_ON)) {
  const parked = async (t: Test) => {
    const { disk, options } = build()
    const wake = { fails: false }
    const script = {
      capabilities: { parking: 'native' as const },
      start(runner: ScriptedRunner) {
        if (wake.fails) throw new Error('not yet')
        runner.init()
      },
    }
    const server = await buildServer(t, { ...options, script })
    const { call, engine } = server
    const { json: session } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
    await until(() => engine.last.sent.length === 1)
    const { host } = engine.last
    void host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} }).catch(() => {})
    await host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' })
    host.waitForExecutions()
    const info = async () => (await call('GET', `/sessions/${session.id}`)).json
    await until(async () => (await info())?.status === 'parked', 'parked')
    const [{ id: requestId }] = (await info()).parked.permissions
    const routes: Record<string, [method: string, path: string, body?: unknown]> = {
      answer: ['POST', `/sessions/${session.id}/permissions/${requestId}`, { behavior: 'allow' }],
      result: ['POST', '/executions/e1/result', ok],
      interrupt: ['POST', `/sessions/${session.id}/commands`, { type: 'interrupt' }],
      title: ['PATCH', `/sessions/${session.id}`, { title: 'refused' }],
      removal: ['DELETE', `/sessions/${session.id}`],
    }
    return { ...server, disk, info, routes, wake }
  }

  t.test(`${kind} that hangs: what is asked of a parked session is refused in time, and never done`, async (t) => {
    const { call, clock, disk, engine, info, routes } = await parked(t)
    const before = await info()
    for (const [name, route] of Object.entries(routes)) {
      disk.hold()
      const asked = call(...route)
      await until(() => disk.held > 0, `${name}: the write`)
      // what comes meanwhile waits for the same
      const second = call(...route)
      await clock.advance(PATIENCE_MS)
      const refused = async (answer: typeof asked) => {
        const { status, json, headers } = await answer
        t.match({ status, code: json?.code }, { status: 503, code: 'SG_ERR_STORE_UNAVAILABLE' }, name)
        t.ok(Number(headers.get('retry-after')) > 0, `${name}: when to come again`)
      }
      await refused(asked)
      let isAnswered = false
      void second.then(() => (isAnswered = true))
      // it may have come a little later
      await until(async () => isAnswered || void (await clock.advance(1_000)), `${name}: an answer for the second`)
      await refused(second)
      t.match(await info(), before, `${name}: as it was`)
      disk.release()
      await clock.advance(60_000)
      t.match(await info(), before, `${name}: nothing of it when it lands`)
    }
    t.equal(engine.runners.length, 1, 'nothing woke it')
    t.match(await call(...routes.title!), { status: 200, json: { title: 'refused', status: 'parked' } })
    t.match(await call(...routes.result!), { status: 200, json: { applied: true } }, 'the first result is taken')
    await until(() => engine.runners.length === 2, 'it wakes')
    t.match(await call(...routes.removal!), { status: 200, json: { status: 'closed' } })
  })

  t.test(`${kind} that hangs: a session whose removal was refused still wakes for what came before`, async (t) => {
    const { call, clock, disk, info, routes, registry, wake } = await parked(t)
    const { id } = await info()
    wake.fails = true
    t.match(await call(...routes.result!), { status: 200, json: { applied: true } })
    await until(async () => /tried again/.test((await info()).statusDetail ?? ''), 'a wake that failed')
    wake.fails = false
    disk.hold()
    const removal = call(...routes.removal!)
    await until(() => disk.held > 0)
    await clock.advance(PATIENCE_MS)
    t.match(await removal, { status: 503 })
    disk.release()
    for (let minute = 0; minute < 6 && registry.here(id)?.status === 'parked'; minute++) await clock.advance(60_000)
    await until(async () => (await info()).status !== 'parked', 'awake')
  })
}

t.test('how long an engine takes to start is not held against the storage', async (t) => {
  const idleReleaseMs = 60_000
  const script: Script = { send: (runner) => runner.complete() }
  const { call, clock, engine, registry } = await buildServer(t, { storage: testStorage(), idleReleaseMs, script })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  await until(() => registry.here(json.id)?.status === 'idle')
  await clock.advance(idleReleaseMs)
  await until(() => engine.last.closed, 'the engine gone')
  let started = () => {}
  script.start = (runner) =>
    new Promise((resolve) => {
      started = () => resolve(runner.init())
    })
  const message = call('POST', `/sessions/${json.id}/commands`, { type: 'user_message', text: 'more' })
  await until(() => engine.runners.length === 2 && engine.last.host !== undefined, 'an engine that starts')
  await clock.advance(PATIENCE_MS + 1)
  started()
  t.match(await message, { status: 200 })
})

t.test('what became of deliveries is refused when that cannot be read', async (t) => {
  const storage = createMemoryStorage()
  const { attempts } = storage.outbox
  let read: typeof attempts = attempts.bind(storage.outbox)
  storage.outbox.attempts = (lane) => read(lane)
  const { call } = await buildServer(t, { storage, queue: {} })
  const { json: job } = await call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'x' } })
  const deliveries = () => call('GET', `/jobs/${job.id}/deliveries`)
  t.match(await deliveries(), { status: 200, json: [] })
  read = () => Promise.reject(new Error('disk I/O error'))
  t.match(await deliveries(), { status: 503, json: { code: 'SG_ERR_STORE_UNAVAILABLE' } })
})
