import type { FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import WebSocket from 'ws'
import type { QueueFrame } from '../../schemas/jobs.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { refusedUpgrade } from '../fixtures/client.js'
import { turns } from '../fixtures/turns.js'

const job = (profile?: string) => ({ session: { cwd: SOME_CWD, prompt: 'x', ...(profile && { profile }) } })
const PROFILES = ['one', 'two'].map((name) => ({ name, engine: 'provider' as const, provider: { id: 'x' } }))
const known = new Set(['*', 'one', 'two'])
const authenticate = ({ headers }: FastifyRequest) => {
  const caller = headers['x-caller']
  if (typeof caller !== 'string' || !known.has(caller)) return null
  return caller === '*' ? true : { allowedProfiles: [caller] }
}

function listen(t: Test, api: string, headers: Record<string, string> = {}) {
  const socket = new WebSocket(`${api.replace('http', 'ws')}/queue/ws`, { headers })
  const frames: QueueFrame[] = []
  const client = { socket, frames, closed: undefined as number | undefined }
  socket.on('message', (data) => frames.push(JSON.parse(data.toString())))
  socket.on('close', (code) => {
    client.closed = code
  })
  t.teardown(() => socket.terminate())
  return client
}

const told = (frames: QueueFrame[]) =>
  frames.map((frame) => (frame.type === 'job_event' ? `${frame.event.job.profile} ${frame.event.type}` : frame.type))
const events = (frames: QueueFrame[]) => told(frames).filter((line) => line.includes(' '))

t.test('queue_attached comes first, then job events and the stats they change', async (t) => {
  const { api, call, engine } = await buildServer(t, { queue: { dailyTokenLimit: 100 } })
  const { frames } = listen(t, api)
  await until(() => frames.length === 1)
  t.match(frames[0], {
    type: 'queue_attached',
    protocolVersion: 1,
    stats: { queued: 0, running: 0, dailyTokenLimit: 100 },
  })
  await call('POST', '/jobs', job())
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  engine.last.say('hi')
  engine.last.complete({ usage: { inputTokens: 100, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 } })
  await until(() => {
    const last = frames.at(-1)
    return last?.type === 'queue_stats' && last.stats.paused && last.stats.running === 0
  })
  t.same(
    events(frames),
    ['submitted', 'started', 'progress', 'completed'].map((type) => `scripted job_${type}`),
  )
  const progress = frames.findIndex((frame) => frame.type === 'job_event' && frame.event.type === 'job_progress')
  t.not(frames[progress + 1]?.type, 'queue_stats', 'progress changes no counts')
  t.match(frames.at(-1), { stats: { dailyTokensUsed: 100, resumesAt: Date.UTC(2026, 0, 2) } })
})

t.test('everybody hears of what they may see, and of nothing else', async (t) => {
  const { api, call, engine } = await buildServer(t, { queue: { maxConcurrency: 4 }, profiles: PROFILES, authenticate })
  const all = listen(t, api, { 'x-caller': '*' })
  const one = listen(t, api, { 'x-caller': 'one' })
  const two = listen(t, api, { 'x-caller': 'two' })
  await until(() => [all, one, two].every(({ frames }) => frames.length === 1))
  await call('POST', '/jobs', job('one'), { 'x-caller': '*' })
  await call('POST', '/jobs', job('two'), { 'x-caller': '*' })
  await until(() => engine.runners.length === 2 && engine.runners.every(({ sent }) => sent.length === 1))
  for (const runner of engine.runners) runner.complete()
  await until(
    () => events(all.frames).length === 6 && events(one.frames).length === 3 && events(two.frames).length === 3,
  )
  await turns(50)
  t.ok(events(one.frames).every((line) => line.startsWith('one ')))
  t.ok(events(two.frames).every((line) => line.startsWith('two ')))
  const counts = one.frames.flatMap((frame) => (frame.type === 'queue_stats' ? [frame.stats] : []))
  t.ok(
    counts.every(({ queued, running }) => queued + running <= 1),
    'counts are of visible jobs too',
  )
})

t.test('an upgrade is refused without credentials and from a foreign page', async (t) => {
  const { api } = await buildServer(t, { queue: {}, profiles: PROFILES, authenticate })
  const url = `${api.replace('http', 'ws')}/queue/ws`
  t.match(await refusedUpgrade(url), { status: 401 })
  t.match(await refusedUpgrade(url, { origin: 'https://evil.example', headers: { 'x-caller': '*' } }), { status: 403 })
})

t.test('credentials are asked for again, and what they allow may change', async (t) => {
  const { api, call, clock, engine } = await buildServer(t, { queue: {}, profiles: PROFILES, authenticate })
  const client = listen(t, api, { 'x-caller': 'one' })
  await until(() => client.frames.length === 1)
  await clock.advance(25_000)
  await call('POST', '/jobs', job('one'), { 'x-caller': '*' })
  await until(() => engine.runners.length === 1)
  t.equal(client.closed, undefined)
  known.delete('one')
  t.teardown(() => known.add('one'))
  await clock.advance(25_000)
  await until(() => client.closed !== undefined)
  t.equal(client.closed, 4401)
})

t.test('whoever may see other jobs by now is sent to list them again', async (t) => {
  let claims = { allowedProfiles: ['one', 'two'] }
  const { api, clock } = await buildServer(t, { queue: {}, profiles: PROFILES, authenticate: () => claims })
  const client = listen(t, api)
  await until(() => client.frames.length === 1)
  claims = { allowedProfiles: ['two', 'one'] }
  await clock.advance(25_000)
  await turns(50)
  t.equal(client.closed, undefined)
  claims = { allowedProfiles: ['one'] }
  await clock.advance(25_000)
  await until(() => client.closed !== undefined)
  t.equal(client.closed, 1001)
})

t.test('shutting down says so', async (t) => {
  const { api, worker } = await buildServer(t, { queue: {} })
  const client = listen(t, api)
  await until(() => client.frames.length === 1)
  await worker.close()
  await until(() => client.closed !== undefined)
  t.equal(client.closed, 1001)
})

t.test('a client that does not read is cut off and costs nobody anything', async (t) => {
  const { api, worker } = await buildServer(t, { queue: { maxConcurrency: 1 } })
  const slow = listen(t, api)
  await until(() => slow.frames.length === 1)
  slow.socket.pause()
  // as large as the event of a job can be made
  const meta = { note: 'x'.repeat(16_000) }
  let isTold = false
  const { close } = WebSocket.prototype
  t.intercept(WebSocket.prototype, 'close', {
    value(this: WebSocket, ...why: Parameters<typeof close>) {
      isTold = true
      close.apply(this, why)
    },
  })
  for (let index = 0; index < 1_500 && !isTold; index++)
    await worker.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'go' }, meta })
  // whom the server told to go it waits for half a minute
  slow.socket.resume()
  await until(() => slow.closed !== undefined, 'the end of the slow client')
  t.equal(slow.closed, 1013)
})

t.test('the same frames as server-sent events', async (t) => {
  const { api, call, clock } = await buildServer(t, { queue: {} })
  const abort = new AbortController()
  t.teardown(() => abort.abort())
  const response = await fetch(`${api}/queue/events`, {
    headers: { accept: 'text/event-stream' },
    signal: abort.signal,
  })
  t.match(response.headers.get('content-type'), /^text\/event-stream/)
  let text = ''
  const reading = (async () => {
    for await (const chunk of response.body!) text += Buffer.from(chunk).toString()
  })()
  reading.catch(() => {})
  await until(() => text.includes('queue_attached'))
  await call('POST', '/jobs', job())
  await until(() => text.includes('job_started'))
  await clock.advance(15_000)
  await until(() => text.includes(': still here'))
  const types = text
    .split('\n\n')
    .filter((part) => part.startsWith('data: '))
    .map((part) => JSON.parse(part.slice(6)).type)
  t.equal(types[0], 'queue_attached')
  t.ok(types.includes('queue_stats'))
  const head = await fetch(`${api}/queue/events`, { method: 'HEAD' })
  t.equal(head.status, 200)
})
