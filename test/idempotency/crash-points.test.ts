import t, { type Test } from 'tap'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import type { GatewayStorage } from '../../src/storage/storage.js'
import { type BuildOptions, buildServer, SOME_CWD } from '../fixtures/build.js'
import { bury, mortal } from '../fixtures/mortal-storage.js'

/** As a client writes them, and as another release of it would. */
const REQUESTS = {
  '/sessions': [
    { cwd: SOME_CWD, title: 'one', meta: { a: 1, b: [{ c: 2, d: 3 }] } },
    { meta: { b: [{ d: 3, c: 2 }], a: 1 }, title: 'one', cwd: SOME_CWD },
  ],
  '/jobs': [
    { session: { cwd: SOME_CWD, prompt: 'x' }, runAt: 4e12, priority: 1 },
    { priority: 1, runAt: 4e12, session: { prompt: 'x', cwd: SOME_CWD } },
  ],
  '/profiles': [
    { name: 'new', engine: 'provider', provider: { id: 'x', model: 'm' } },
    { provider: { model: 'm', id: 'x' }, engine: 'provider', name: 'new' },
  ],
} as const
const PATHS = Object.keys(REQUESTS) as (keyof typeof REQUESTS)[]
const PARTS = ['journal', 'profiles', 'queue', 'idempotency'] as const

interface Told {
  body: string
  location: string | null
}

const idOf = ({ body }: Told) => JSON.parse(body).id ?? JSON.parse(body).name

async function serve(
  t: Test,
  storage: GatewayStorage,
  { runsJobs = true, ...options }: BuildOptions & { runsJobs?: boolean },
) {
  const world = await buildServer(t, {
    storage,
    profileStore: storage.profiles,
    ...(runsJobs && { queue: {} }),
    authenticate: () => ({ name: 'm', canManageProfiles: true }),
    ...options,
  })
  const hangUp = new AbortController()
  const ask = async (path: keyof typeof REQUESTS, index: 0 | 1) => {
    const { status, headers, body } = await fetch(world.api + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
      body: JSON.stringify(REQUESTS[path][index]),
      signal: hangUp.signal,
    })
    const told: Told = { body: await new Response(body).text(), location: headers.get('location') }
    return { status, headers, told }
  }
  const end = async () => {
    hangUp.abort()
    await bury(world.worker, world.clock)
  }
  return { ...world, ask, end }
}

/** @returns how many writes there were */
async function dieAt(t: Test, last: number, isDone: boolean, options: BuildOptions = {}): Promise<number> {
  const storage = createMemoryStorage()
  const { view, dead, operations } = mortal(storage, { last, isDone, parts: PARTS })
  const first = await serve(t, view, options)
  const told = new Map<string, Told>()
  const life = (async () => {
    for (const path of PATHS) told.set(path, (await first.ask(path, 0)).told)
  })()
  life.catch(() => {})
  await Promise.race([life, dead])
  await first.end()
  const at = `${isDone ? 'after' : 'before'} write ${last}`

  const next = await serve(t, storage, options)
  for (const path of PATHS) {
    const { status, headers, told: now } = await next.ask(path, 1)
    t.equal(status, 201, `${at}: ${path}`)
    t.equal(now.location, `/v1${path}/${idOf(now)}`, `${at}: where it is`)
    const before = told.get(path)
    if (!before) continue
    t.same(now, before, `${at}: what was answered is answered again`)
    t.equal(headers.get('idempotent-replayed'), 'true')
  }
  t.equal((await next.registry.list()).length, 1, `${at}: one session`)
  t.equal((await next.worker.queue!.page({})).items.length, 1, `${at}: one job`)
  for (const path of PATHS) {
    const other = { ...REQUESTS[path][0], meta: { other: true }, description: 'other' }
    const { status } = await next.call('POST', path, other, { 'idempotency-key': 'k' })
    t.ok(status === 422 || status === 400, `${at}: another body is another request`)
  }
  await next.end()
  return operations()
}

t.test('a process that is killed at any write: what a key asked for is made once, and answered', async (t) => {
  const total = await dieAt(t, Number.POSITIVE_INFINITY, true)
  t.ok(total >= 6, `${total} writes`)
  for (let last = 1; last <= total; last++) for (const isDone of [false, true]) await dieAt(t, last, isDone)
})

t.test('the same when jobs are kept in an adapter of the host’s own', async (t) => {
  const total = await dieAt(t, Number.POSITIVE_INFINITY, true, { queue: { adapter: createMemoryQueueAdapter() } })
  for (let last = 1; last <= total; last++)
    for (const isDone of [false, true]) await dieAt(t, last, isDone, { queue: { adapter: createMemoryQueueAdapter() } })
})

t.test('a job whose answer a crash cut off is repeated, though the next process runs none', async (t) => {
  const storage = createMemoryStorage()
  const complete = storage.idempotency.complete
  storage.idempotency.complete = async () => {}
  const first = await serve(t, storage, {})
  const { told } = await first.ask('/jobs', 0)
  await first.end()
  storage.idempotency.complete = complete
  await (await serve(t, storage, { runsJobs: false })).end()
  const third = await serve(t, storage, {})
  t.match(await third.ask('/jobs', 1), { status: 201, told: { location: told.location } })
  t.equal((await third.worker.queue!.page({})).items.length, 1, 'one job')
  await third.end()
})
