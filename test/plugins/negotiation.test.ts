import t from 'tap'
import gatewayPlugin from '../../src/index.js'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import fastify from '../fixtures/host.js'
import { headerOf, isProblem } from '../fixtures/problem.js'
import { rawRequest } from '../fixtures/raw-http.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'

t.test('who likes JSON better than a stream is not kept on the line', async (t) => {
  const { call, port } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const rows: [accept: string | undefined, streams: boolean][] = [
    [undefined, false],
    ['*/*', false],
    ['application/json', false],
    ['text/html, */*;q=0.8', false],
    ['text/event-stream;q=0', false],
    ['text/event-stream; q=0, */*', false],
    ['application/json, text/event-stream;q=0.5', false],
    ['text/event-stream;q=0.5, */*', false],
    ['text/event-stream;q=nonsense', false],
    ['text/event-streams', false],
    ['text/event-stream', true],
    ['Text/Event-Stream', true],
    ['text/event-stream, */*', true],
    ['application/json, text/event-stream', true],
    ['application/json;q=0.2, text/event-stream;q=0.3', true],
    ['text/*', true],
    ['text/event-stream;q=0.1', true],
  ]
  for (const [accept, streams] of rows) {
    const answer = await rawRequest(port, {
      path: `/v1/sessions/${json.id}/events`,
      headers: accept === undefined ? {} : { accept },
      firstChunkOnly: true,
    })
    t.match(headerOf(answer, 'content-type'), streams ? /^text\/event-stream/ : /^application\/json/, `${accept}`)
    t.match(headerOf(answer, 'cache-control'), /^no-store\b/, 'no cache gives it to who wants the other')
    if (!streams) t.match(headerOf(answer, 'vary'), /\bAccept\b/)
  }
})

t.test('no proxy is to keep an event stream back, to store it or to pack it', async (t) => {
  const { call, port } = await buildServer(t, { queue: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  for (const path of [`/v1/sessions/${json.id}/events`, '/v1/queue/events', '/v1/notifications/events']) {
    const answer = await rawRequest(port, { path, headers: { accept: 'text/event-stream' }, firstChunkOnly: true })
    t.match(headerOf(answer, 'content-type'), /^text\/event-stream/, path)
    t.same(
      [headerOf(answer, 'cache-control'), headerOf(answer, 'x-accel-buffering')],
      ['no-store, no-transform', 'no'],
      path,
    )
  }
})

t.test('a body that comes encoded is refused by that name, not as broken JSON', async (t) => {
  const { port } = await buildServer(t)
  const body = JSON.stringify({ cwd: SOME_CWD })
  const post = (encoding: string, path = '/v1/sessions') =>
    rawRequest(port, {
      method: 'POST',
      path,
      body,
      headers: { 'content-type': 'application/json', 'content-encoding': encoding },
    })
  for (const encoding of ['gzip', 'br', 'identity, gzip', 'nonsense']) {
    const answer = await post(encoding)
    isProblem(t, answer, 415, 'SG_ERR_UNSUPPORTED_MEDIA_TYPE', encoding)
    t.match(answer.json.detail, /Content-Encoding/)
    t.equal(headerOf(answer, 'accept-encoding'), 'identity')
  }
  for (const encoding of ['identity', 'Identity', '']) t.equal((await post(encoding)).status, 201, encoding)
  isProblem(t, await post('gzip', '/v1/nowhere'), 404, 'SG_ERR_NOT_FOUND')
  const bodiless = await rawRequest(port, { path: '/v1/sessions', headers: { 'content-encoding': 'gzip' } })
  t.equal(bodiless.status, 200, 'nothing is encoded where there is nothing')
})

t.test('a misspelt parameter of a list is not a list of everything', async (t) => {
  const { call } = await buildServer(t, { queue: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const job = await call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'p' } })
  const rows: [path: string, name: string][] = [
    ['/sessions?stauts=idle', 'stauts'],
    ['/sessions?limit=1&Status=idle', 'Status'],
    ['/jobs?state=queued', 'state'],
    ['/sdk-sessions?cwd=x', 'cwd'],
    ['/profiles?name=x', 'name'],
    [`/sessions/${json.id}/files?path=x`, 'path'],
    [`/sessions/${json.id}/events?afterseq=7`, 'afterseq'],
    [`/jobs/${job.json.id}/deliveries?limit=1`, 'limit'],
  ]
  for (const [path, name] of rows) {
    const answer = await call('GET', path)
    isProblem(t, answer, 400, 'SG_ERR_VALIDATION', path)
    t.match(answer.json.errors, [{ path: name, message: 'Unknown property.' }], path)
  }
})

t.test('an execution that no URL could name is refused when it is deferred, not when its result comes', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  const inHost = new ScriptedEngine()
  await host.register(gatewayPlugin, {
    allowUnauthenticated: true,
    profiles: [{ name: 'p', engine: 'provider', provider: { id: 'scripted' } }],
    createEngineRunner: inHost.create,
  })
  const url = await host.listen({ port: 0 })
  const alone = await buildServer(t)
  for (const { engine, api, longest } of [
    { engine: inHost, api: `${url}/v1`, longest: 100 },
    { engine: alone.engine, api: alone.api, longest: 512 },
  ]) {
    const post = (path: string, body: unknown) =>
      fetch(`${api}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    t.equal((await post('/sessions', { cwd: SOME_CWD })).status, 201)
    const { host: session } = engine.last
    for (const executionId of ['', '.', '..', '\ud800', 'a\udc00b', 'x'.repeat(longest + 1)])
      await t.rejects(
        session.deferExecution({ executionId, toolName: 'x' }),
        { code: 'SG_ERR_VALIDATION', errors: [{ path: 'executionId' }] },
        JSON.stringify(executionId.slice(0, 5)),
      )
    const output = { status: 'ok', output: { type: 'text', value: 'x' } }
    for (const executionId of ['a/b', '%2F', 'ä?#[]\u0001 x', '...', '😀'.repeat(longest / 2)]) {
      await session.deferExecution({ executionId, toolName: 'x' })
      const answer = await post(`/executions/${encodeURIComponent(executionId)}/result`, output)
      t.match(await answer.json(), { applied: true }, executionId)
    }
  }
})

t.test('an id that is too long for the router of a host is unknown here like any other', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(gatewayPlugin, {
    authenticate: ({ headers }) => headers.authorization && {},
    profiles: [],
    queue: {},
  })
  const url = await host.listen({ port: 0 })
  const port = Number(new URL(url).port)
  const id = 'x'.repeat(101)
  for (const path of [`/sessions/${id}`, `/sessions/${id}/events`, `/jobs/${id}`, `/executions/${id}/result`]) {
    const authorization = 'Bearer x'
    isProblem(t, await rawRequest(port, { path: `/v1${path}`, headers: { authorization } }), 404, 'SG_ERR_NOT_FOUND')
    const stranger = await rawRequest(port, { path: `/v1${path}` })
    isProblem(t, stranger, 401, 'SG_ERR_UNAUTHENTICATED')
    t.equal(headerOf(stranger, 'www-authenticate'), 'Bearer')
  }
})
