import http from 'node:http'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import WebSocket from 'ws'
import type { NotificationsFrame, SessionNotification } from '../../schemas/notifications.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { type BuildOptions, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { refusedUpgrade } from '../fixtures/client.js'
import { turns } from '../fixtures/turns.js'

const PROFILES = ['a', 'b'].map((name) => ({ name, engine: 'provider' as const, provider: { id: 'scripted' } }))

interface Reader {
  frames: NotificationsFrame[]
  /** The ids of the stream itself; of server-sent events alone. */
  ids: string[]
  closed: unknown
  end(): void
}

const followers: Record<string, (t: Test, api: string, query: string, headers?: Record<string, string>) => Reader> = {
  socket(t, api, query, headers = {}) {
    const socket = new WebSocket(`${api.replace('http', 'ws')}/notifications/ws${query}`, { headers })
    const reader: Reader = { frames: [], ids: [], closed: undefined, end: () => socket.terminate() }
    socket.on('message', (data) => reader.frames.push(JSON.parse(data.toString())))
    socket.on('close', (code) => {
      reader.closed = code
    })
    socket.on('error', () => {})
    t.teardown(reader.end)
    return reader
  },
  'event stream'(t, api, query, headers = {}) {
    const request = http.get(`${api}/notifications/events${query}`, { headers })
    const reader: Reader = { frames: [], ids: [], closed: undefined, end: () => request.destroy() }
    request.on('error', () => {})
    request.on('response', (response) => {
      let rest = ''
      response.on('data', (chunk) => {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop()!
        for (const line of lines)
          if (line.startsWith('data: ')) reader.frames.push(JSON.parse(line.slice(6)))
          else if (line.startsWith('id: ')) reader.ids.push(line.slice(4))
      })
      response.on('close', () => {
        reader.closed = response.statusCode
      })
    })
    t.teardown(reader.end)
    return reader
  },
}

const told = ({ frames }: Reader): SessionNotification[] =>
  frames.flatMap((frame) => (frame.type === 'notification' ? [frame.notification] : []))
const types = ({ frames }: Reader) => frames.map(({ type }) => type)
const isSynced = (reader: Reader) => types(reader).includes('notifications_synced')

async function build(t: Test, options: BuildOptions = {}) {
  const world = await buildServer(t, options)
  const { call, engine } = world
  /** A session that comes to its end: one notification. */
  const one = async (profile?: string) => {
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, ...(profile && { profile }) })
    await call('DELETE', `/sessions/${json.id}`)
  }
  const ask = async (profile?: string) => {
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x', ...(profile && { profile }) })
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
    return json.id as string
  }
  return { ...world, one, ask }
}

for (const [name, follow] of Object.entries(followers)) {
  t.test(`${name}: what was missed comes first, then what happens, once each and in order`, async (t) => {
    const { api, call, one } = await build(t)
    for (let n = 0; n < 5; n++) await one()
    const { json: all } = await call('GET', '/notifications')
    const reader = follow(t, api, `?after=${all[1].id}`)
    await until(() => isSynced(reader))
    t.match(reader.frames[0], {
      type: 'notifications_attached',
      protocolVersion: 1,
      after: all[1].id,
      truncated: false,
    })
    t.same(told(reader), all.slice(2))
    const live = follow(t, api, '')
    await until(() => isSynced(live))
    t.same(types(live), ['notifications_attached', 'notifications_synced'], 'without a place: from now on')
    t.match(live.frames[0], { after: all[4].id })
    await one()
    await one()
    await until(() => told(reader).length === 5 && told(live).length === 2)
    const { json: both } = await call('GET', `/notifications?after=${all[4].id}`)
    t.same(told(live), both)
    t.same(told(reader), [...all.slice(2), ...both])
    if (name === 'event stream') t.equal(reader.ids.at(-1), both[1].id, 'the last id is where to come back to')
  })

  t.test(`${name}: more than the memory holds, and more than one batch`, async (t) => {
    const { api, call, engine } = await build(t)
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
    const seen = follow(t, api, '')
    await until(() => isSynced(seen))
    const count = 1_300
    for (let turn = 0; turn < count; turn++) engine.last.complete({ result: `turn ${turn}` })
    await until(() => told(seen).length === count, 'all of them')
    const first = seen.frames[0] as { after: string }
    const late = follow(t, api, `?after=${first.after}`)
    await until(() => told(late).length === count, 'all of them again')
    t.same(
      told(late).map(({ preview }) => preview),
      Array.from({ length: count }, (_, turn) => `turn ${turn}`),
    )
    t.equal(types(late).filter((type) => type === 'notifications_synced').length, 1)
    t.equal(told(late)[0]?.sessionId, json.id)
  })

  t.test(`${name}: tells when the inbox changes, with what the caller may see`, async (t) => {
    const { api, call, ask } = await build(t, {
      profiles: PROFILES,
      authenticate: ({ headers }) => ({
        ...(headers['x-profile'] !== undefined && { allowedProfiles: [headers['x-profile']] }),
      }),
    })
    const [all, a, b] = [{}, { 'x-profile': 'a' }, { 'x-profile': 'b' }].map((headers) => follow(t, api, '', headers))
    await until(() => [all!, a!, b!].every(isSynced))
    t.match(a!.frames[0], { inbox: { permissions: 0, questions: 0 } })
    const id = await ask('a')
    const counts = ({ frames }: Reader) =>
      frames.flatMap((frame) => (frame.type === 'inbox_changed' ? [frame.inbox.permissions] : []))
    await until(() => counts(all!).at(-1) === 1 && counts(a!).at(-1) === 1)
    const later = follow(t, api, '', { 'x-profile': 'a' })
    await until(() => isSynced(later))
    t.match(later.frames[0], { inbox: { permissions: 1 } })
    await call('DELETE', `/sessions/${id}`)
    await until(() => counts(all!).at(-1) === 0 && counts(a!).at(-1) === 0)
    await until(() => told(a!).length === 2)
    t.same(counts(b!), [], 'nobody hears of what they may not see')
    t.same(told(b!), [])
  })

  t.test(`${name}: credentials are asked for again, and what they allow may change`, async (t) => {
    let claims: object | null = {}
    const { api, one, clock } = await build(t, { profiles: PROFILES, authenticate: () => claims })
    const reader = follow(t, api, '')
    await until(() => isSynced(reader))
    claims = { allowedProfiles: ['b'] }
    await clock.advance(25_000)
    claims = {}
    await one('a')
    await one('b')
    await until(() => told(reader).length === 1)
    t.match(told(reader), [{ session: { profile: 'b' } }])
    claims = null
    await clock.advance(25_000)
    await until(() => reader.closed !== undefined)
    t.equal(reader.closed, name === 'socket' ? 4401 : 200)
  })

  t.test(`${name}: whoever may see something else by now is told of another inbox`, async (t) => {
    let claims = { allowedProfiles: ['a'] }
    const { api, ask, clock } = await build(t, { profiles: PROFILES, authenticate: () => claims })
    await ask('a')
    const reader = follow(t, api, '')
    await until(() => isSynced(reader))
    t.match(reader.frames[0], { inbox: { permissions: 1 } })
    claims = { allowedProfiles: ['a'] }
    await clock.advance(25_000)
    claims = { allowedProfiles: [] }
    await clock.advance(25_000)
    await until(() => types(reader).includes('inbox_changed'))
    claims = { allowedProfiles: ['a', 'b'] }
    await clock.advance(25_000)
    const counts = () =>
      reader.frames.flatMap((frame) => (frame.type === 'inbox_changed' ? [frame.inbox.permissions] : []))
    await until(() => counts().length === 2)
    t.strictSame(counts(), [0, 1], 'and of none while it sees the same')
  })

  t.test(`${name}: says when something is missing: of another gateway, ahead of this one, too old`, async (t) => {
    const { api, call, one } = await build(t, { notifications: { retention: { maxCount: 3 } } })
    for (let n = 0; n < 5; n++) await one()
    const { json: kept } = await call('GET', '/notifications')
    t.equal(kept.length, 3)
    const [epoch] = kept[0].id.split(':')
    for (const after of [
      '0b5c4a1e-0000-4000-8000-000000000000:000000000005',
      `${epoch}:000000000099`,
      `${epoch}:000000000001`,
    ]) {
      const reader = follow(t, api, `?after=${after}`)
      await until(() => isSynced(reader))
      t.match(reader.frames[0], { truncated: true, after: `${epoch}:000000000002` }, after)
      t.same(told(reader), kept, 'all that there is')
    }
    const reader = follow(t, api, `?after=${epoch}:000000000002`)
    await until(() => isSynced(reader))
    t.match(reader.frames[0], { truncated: false }, 'all that came after it is there')
    t.same(told(reader), kept)
  })

  t.test(`${name}: wants some types, of one profile`, async (t) => {
    const { api, ask, one } = await build(t, { profiles: PROFILES })
    const reader = follow(t, api, '?types=permission_requested&profile=a')
    await until(() => isSynced(reader))
    await one('a')
    await ask('b')
    await ask('a')
    await one('a')
    await until(() => told(reader).length === 1)
    t.match(told(reader), [{ type: 'permission_requested', session: { profile: 'a' } }])
  })
}

t.test(
  'Last-Event-ID is stronger than the query, and a bad place is refused before anything is streamed',
  async (t) => {
    const { api, call, one } = await build(t)
    for (let n = 0; n < 3; n++) await one()
    const { json: all } = await call('GET', '/notifications')
    const reader = followers['event stream']!(t, api, `?after=${all[0].id}`, { 'last-event-id': all[1].id })
    await until(() => isSynced(reader))
    t.same(told(reader), all.slice(2))
    for (const query of ['?after=x', '?types=x', '?nothing=1']) {
      t.match((await call('GET', `/notifications/events${query}`)).json, { code: 'SG_ERR_VALIDATION' }, query)
      t.match(await refusedUpgrade(`${api.replace('http', 'ws')}/notifications/ws${query}`), { status: 400 }, query)
    }
    const bad = await call('GET', '/notifications/events', undefined, { 'last-event-id': 'x' })
    t.match(bad, { status: 400, json: { errors: [{ path: 'Last-Event-ID' }] } }, 'by the name that it came under')
    t.equal((await call('HEAD', '/notifications/events')).status, 200)
    t.equal((await call('POST', '/notifications/events', {})).status, 405)
  },
)

t.test('a stream ends with the gateway and goes on with the next one, nothing missed, nothing twice', async (t) => {
  const storage = createMemoryStorage()
  const first = await build(t, { storage })
  const reader = followers.socket!(t, first.api, '')
  await until(() => isSynced(reader))
  await first.one()
  await until(() => told(reader).length === 1)
  const closing = first.worker.close()
  await until(() => reader.closed)
  t.equal(reader.closed, 1001)
  await closing
  const second = await build(t, { storage, clock: first.clock })
  await second.one()
  const next = followers.socket!(t, second.api, `?after=${told(reader)[0]!.id}`)
  await until(() => told(next).length === 1)
  t.match(next.frames[0], { truncated: false })
  t.not(told(next)[0]!.id, told(reader)[0]!.id)
})

t.test('a client that does not read costs nothing but its place', async (t) => {
  const { api, call, engine, worker } = await build(t)
  const connections = new Set<Socket>()
  worker.server.on('connection', (connection: Socket) => connections.add(connection))
  await call('POST', '/sessions', { cwd: SOME_CWD })
  const socket = new WebSocket(`${api.replace('http', 'ws')}/notifications/ws`)
  t.teardown(() => socket.terminate())
  const previews: string[] = []
  let isReady = false
  socket.on('message', (data) => {
    const frame = JSON.parse(data.toString()) as NotificationsFrame
    if (frame.type === 'notifications_synced') isReady = true
    if (frame.type === 'notification') previews.push(frame.notification.request?.id ?? frame.notification.preview)
  })
  await until(() => isReady)
  socket.pause()
  const runner = engine.last
  // each says so much that a socket of the system is soon full
  const input = { text: 'x'.repeat(200_000) }
  for (let n = 0; n < 200; n++) void runner.host.requestPermission({ toolName: 'Write', toolUseId: `t${n}`, input })
  await until(async () => (await call('GET', '/inbox/count')).json.permissions === 200)
  const unread = () => Math.max(...[...connections].map(({ writableLength }) => writableLength))
  await until(() => unread() > 0, 'a full socket')
  await turns(100)
  t.ok(unread() < 1_000_000, `${unread()} bytes of 40 million wait to be written`)
  socket.resume()
  await until(() => previews.length === 200, 'all of them in the end')
  t.equal(new Set(previews).size, 200)
})
