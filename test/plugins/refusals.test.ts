import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { headerOf, isProblem } from '../fixtures/problem.js'
import { type RawRequest, rawRequest } from '../fixtures/raw-http.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const nested = (levels: number) =>
  `{"cwd":${JSON.stringify(SOME_CWD)},"meta":${'{"a":'.repeat(levels - 2)}{}${'}'.repeat(levels - 1)}`

/** What is wrong with a `POST /sessions`, before anybody looks at its members. */
const BODIES: [what: string, request: Omit<RawRequest, 'path'>, status: number, code: string][] = [
  ['no content type', { body: '{}' }, 415, 'SG_ERR_UNSUPPORTED_MEDIA_TYPE'],
  ['an empty content type', { body: '{}', headers: { 'content-type': '' } }, 415, 'SG_ERR_UNSUPPORTED_MEDIA_TYPE'],
  ...[
    'text/plain',
    'text/json',
    'application/jsonx',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'x',
  ].map((type): (typeof BODIES)[number] => [
    type,
    { body: '{}', headers: { 'content-type': type } },
    415,
    'SG_ERR_UNSUPPORTED_MEDIA_TYPE',
  ]),
  ['nothing at all', {}, 400, 'SG_ERR_VALIDATION'],
  ...['', '{', '{"cwd":"/"}}', '{"cwd":"/",}', "{'cwd':'/'}", 'NaN', '// {}', '{"cwd":"\n"}', '\u0000'].map(
    (body): (typeof BODIES)[number] => [
      `malformed ${JSON.stringify(body)}`,
      { body, headers: JSON_TYPE },
      400,
      'SG_ERR_INVALID_JSON',
    ],
  ),
  [
    'compressed bytes',
    { body: Buffer.from([0x1f, 0x8b, 0x08, 0]), headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } },
    415,
    'SG_ERR_UNSUPPORTED_MEDIA_TYPE',
  ],
  ...(['latin1', 'utf16le'] as const).map((encoding): (typeof BODIES)[number] => [
    `JSON as ${encoding}`,
    {
      body: Buffer.from(JSON.stringify({ cwd: SOME_CWD, title: 'Grüße' }), encoding),
      headers: { 'content-type': `application/json; charset=${encoding}` },
    },
    400,
    'SG_ERR_INVALID_JSON',
  ]),
  ...['null', 'true', '1', '"x"', '[]', '[{"cwd":"/"}]'].map((body): (typeof BODIES)[number] => [
    `a body that is ${body}`,
    { body, headers: JSON_TYPE },
    400,
    'SG_ERR_VALIDATION',
  ]),
  ...[
    '{"__proto__":{"cwd":"/"}}',
    '{"cwd":"/","meta":{"a":[{"__proto__":1}]}}',
    '{"\\u005f_proto__":{}}',
    '{"constructor":{"prototype":{"admin":true}}}',
  ].map((body): (typeof BODIES)[number] => [
    `a poisoned prototype ${body}`,
    { body, headers: JSON_TYPE },
    400,
    'SG_ERR_INVALID_JSON',
  ]),
  ['65 levels', { body: nested(65), headers: JSON_TYPE }, 400, 'SG_ERR_TOO_DEEP'],
  ['5,000 levels', { body: `{"meta":${'['.repeat(4_999)}`, headers: JSON_TYPE }, 400, 'SG_ERR_TOO_DEEP'],
  ['10,001 bytes', { body: `"${'x'.repeat(9_999)}"`, headers: JSON_TYPE }, 413, 'SG_ERR_BODY_TOO_LARGE'],
  [
    '10,001 bytes of unknown length',
    { body: `"${'x'.repeat(9_999)}"`, headers: { ...JSON_TYPE, 'transfer-encoding': 'chunked' } },
    413,
    'SG_ERR_BODY_TOO_LARGE',
  ],
  ['10,000 bytes', { body: `"${'x'.repeat(9_998)}"`, headers: JSON_TYPE }, 400, 'SG_ERR_VALIDATION'],
]

t.test('bodies', async (t) => {
  const { port, engine, call } = await buildServer(t, { maxBodyBytes: 10_000 })
  for (const [what, request, status, code] of BODIES)
    isProblem(t, await rawRequest(port, { method: 'POST', path: '/v1/sessions', ...request }), status, code, what)
  t.same(engine.runners, [], 'no engine was started')
  for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;'])
    t.equal((await call('POST', '/sessions', { cwd: SOME_CWD }, { 'content-type': type })).status, 201, type)
  const marked = { body: `\ufeff${JSON.stringify({ cwd: SOME_CWD, title: 'Grüße 🎉' })}`, headers: JSON_TYPE }
  const sent = await rawRequest(port, { method: 'POST', path: '/v1/sessions', ...marked })
  t.match([sent.status, sent.json.title], [201, 'Grüße 🎉'], 'with a byte order mark')
  const deep = await call('POST', '/sessions', nested(64))
  t.equal(deep.status, 201, '64 levels')
  t.same((await call('GET', `/sessions/${deep.json.id}`)).json.meta, JSON.parse(nested(64)).meta)
})

t.test('an unknown field is named, and nothing is coerced or dropped', async (t) => {
  const { call } = await buildServer(t)
  const answer = await call('POST', '/sessions', { cwd: SOME_CWD, envv: {}, meta: { free: 1 } })
  isProblem(t, answer, 400, 'SG_ERR_VALIDATION')
  t.same(answer.json.errors, [{ path: 'envv', message: 'Unknown property.' }])
  t.match(answer.json.detail, /envv/)
  const many = await call('POST', '/sessions', Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${at}`, 1])))
  t.equal(many.json.errors.length, 10, 'a caller is told the first ten')
  const long = await call('POST', '/sessions', { cwd: SOME_CWD, ['k'.repeat(100_000)]: 1 })
  isProblem(t, long, 400, 'SG_ERR_VALIDATION', 'a name of 100,000 characters')
  t.ok(long.text.length < 2_000, 'is not told back in full')
  const servers = {
    a: { command: 'x', env: Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`K${at}`, at])) },
  }
  const variant = await call('POST', '/sessions', { cwd: SOME_CWD, mcpServers: servers })
  t.equal(variant.json.errors[0].path, 'mcpServers.a.env.K0', 'of two shapes, the one that was meant')
})

t.test('a member whose name has a line break is checked and echoed like any other', async (t) => {
  const { call } = await buildServer(t, { profiles: [{ name: 'c', engine: 'cli' }] })
  for (const name of ['a\nb', 'a\rb', 'a\u2028b', 'a\u2029b']) {
    const env = { [name]: 5 }
    const refused = await call('POST', '/sessions', { cwd: SOME_CWD, mcpServers: { x: { command: 'x', env } } })
    isProblem(t, refused, 400, 'SG_ERR_VALIDATION', encodeURIComponent(name))
    const server = await call('POST', '/sessions', { cwd: SOME_CWD, mcpServers: { [name]: { command: 7 } } })
    isProblem(t, server, 400, 'SG_ERR_VALIDATION', encodeURIComponent(name))
    const { status, json } = await call('POST', '/sessions', { cwd: SOME_CWD, meta: { [name]: 1, b: 2 } })
    t.same({ status, meta: json.meta }, { status: 201, meta: { [name]: 1, b: 2 } })
  }
})

t.test('paths and methods', async (t) => {
  const { port, call } = await buildServer(t, { health: true, metrics: true })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const known: [path: string, allow: string][] = [
    ['/v1/sessions', 'GET, HEAD, POST'],
    [`/v1/sessions/${json.id}`, 'DELETE, GET, HEAD, PATCH'],
    [`/v1/sessions/${json.id}/commands`, 'POST'],
    [`/v1/sessions/${json.id}/permissions/x`, 'POST'],
    [`/v1/sessions/${json.id}/files`, 'GET, HEAD'],
    [`/v1/sessions/${json.id}/files/a/b`, 'GET, HEAD'],
    [`/v1/sessions/${json.id}/events`, 'GET, HEAD'],
    [`/v1/sessions/${json.id}/ws`, 'GET, HEAD'],
    ['/v1/openapi.json', 'GET, HEAD'],
    ['/v1/asyncapi.json', 'GET, HEAD'],
    ...['/healthz', '/readyz', '/metrics'].map((path): (typeof known)[number] => [path, 'GET, HEAD']),
  ]
  for (const [path, allow] of known) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']) {
      if (allow.split(', ').includes(method)) continue
      const hasBody = ['POST', 'PUT', 'PATCH'].includes(method)
      // neither the size, the type nor the form of a body that nobody reads is an answer
      const answer = await rawRequest(port, {
        method,
        path,
        ...(hasBody && { body: '{', headers: { 'content-type': 'a/b' } }),
      })
      t.equal(headerOf(answer, 'allow'), allow, `${method} ${path}: Allow`)
      if (method === 'HEAD') t.same([answer.status, answer.text], [405, ''])
      else isProblem(t, answer, 405, 'SG_ERR_METHOD_NOT_ALLOWED', `${method} ${path}`)
    }
  }
  for (const [path, allow] of known.filter(([path]) => path.startsWith('/v1/'))) {
    const answer = await rawRequest(port, { method: 'PROPFIND', path: `${path}?x=1` })
    t.equal(headerOf(answer, 'allow'), allow, `PROPFIND ${path}: Allow`)
    isProblem(t, answer, 405, 'SG_ERR_METHOD_NOT_ALLOWED', `PROPFIND ${path}`)
  }
  isProblem(t, await rawRequest(port, { method: 'PROPFIND', path: '/v1/nowhere' }), 404, 'SG_ERR_NOT_FOUND')
  isProblem(t, await rawRequest(port, { method: 'PROPFIND', path: '/v1/sessions/a/b' }), 404, 'SG_ERR_NOT_FOUND')
  t.equal((await call('GET', `/sessions/${json.id}`)).json.status, 'idle', 'nothing was carried out')
  for (const path of [
    '/v1',
    '/v1/',
    '/v1/nowhere',

    '/v1//sessions',
    '/v1/sessionsfoo',
    '/v1/Sessions',
    '/v1x/sessions',
    '/sessions',
    '/',
  ]) {
    isProblem(t, await rawRequest(port, { path }), 404, 'SG_ERR_NOT_FOUND', path)
    const headers = { 'content-type': 'text/plain' }
    const posted = await rawRequest(port, { method: 'POST', path, headers, body: '{' })
    isProblem(t, posted, 404, 'SG_ERR_NOT_FOUND', `POST ${path}`)
  }
  for (const path of ['/v1/%zz', `/v1/sessions/%`, '/v1/sessions/%ff%fe', `/v1/sessions/${json.id}/files/%c0%ae`])
    isProblem(t, await rawRequest(port, { path }), 400, 'SG_ERR_BAD_REQUEST', path)
  for (const id of ['x'.repeat(513), '__proto__', 'constructor', '%00', '..', '.', '%2e%2e%2f', json.id.toUpperCase()])
    t.equal((await rawRequest(port, { path: `/v1/sessions/${id}` })).status, 404, `an id ${id.slice(0, 20)}`)
})

t.test('HEAD answers what GET would, without a body', async (t) => {
  const { call, port } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  for (const path of [
    '/v1/sessions',
    `/v1/sessions/${json.id}`,
    `/v1/sessions/${json.id}/events`,
    '/v1/openapi.json',
  ]) {
    const headers = { accept: 'text/event-stream' }
    const answer = await rawRequest(port, { method: 'HEAD', path, headers })
    t.match(answer, { status: 200, text: '', headers: { 'content-length': /^[1-9]/ } }, path)
  }
  t.match(await rawRequest(port, { method: 'HEAD', path: '/v1/sessions/nowhere' }), { status: 404, text: '' })
})

t.test('DELETE accepts a JSON content type without a body', async (t) => {
  const { port, call } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const path = `/v1/sessions/${json.id}`
  isProblem(
    t,
    await rawRequest(port, { method: 'DELETE', path, headers: JSON_TYPE, body: '{' }),
    400,
    'SG_ERR_INVALID_JSON',
  )
  const deleted = await rawRequest(port, { method: 'DELETE', path, headers: JSON_TYPE })
  t.match(deleted, { status: 200, json: { id: json.id, status: 'closed' } })
  isProblem(t, await rawRequest(port, { method: 'DELETE', path, headers: JSON_TYPE }), 404, 'SG_ERR_SESSION_NOT_FOUND')
})

t.test('an empty basePath serves the gateway at the root', async (t) => {
  for (const basePath of ['', '/']) {
    const { port } = await buildServer(t, { basePath })
    const headers = JSON_TYPE
    const body = JSON.stringify({ cwd: SOME_CWD })
    const created = await rawRequest(port, { method: 'POST', path: '/sessions', headers, body })
    t.match(created, { status: 201, headers: { location: `/sessions/${created.json.id}` } })
    isProblem(t, await rawRequest(port, { path: '/nowhere' }), 404, 'SG_ERR_NOT_FOUND')
  }
})

t.test('the id of a request does not tell how many there were before it, to whoever is let in or not', async (t) => {
  const { call } = await buildServer(t, { authenticate: ({ headers }) => headers.caller })
  const paths = ['/sessions/x', '/nowhere', '/queue', '/sessions/%E0%A4%A']
  const asked = [{}, { caller: 'ann' }].flatMap((headers) => paths.map((path) => call('GET', path, undefined, headers)))
  const ids = (await Promise.all(asked)).map(({ json }) => json.instance)
  for (const id of ids) t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.equal(new Set(ids).size, ids.length, 'and it is found in no line of another request')
})
