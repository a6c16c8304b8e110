import t, { type Test } from 'tap'
import { ScratchFiles } from '../../src/engines/provider/files.js'
import type { SessionFiles } from '../../src/engines/runner.js'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { isProblem } from '../fixtures/problem.js'
import { rawRequest } from '../fixtures/raw-http.js'

/** A session whose engine keeps these files, whatever their names. */
async function buildFiles(t: Test, contents: ReadonlyMap<string, Uint8Array>) {
  const files: SessionFiles = {
    list: () => [...contents].map(([path, bytes]) => ({ path, bytes: bytes.byteLength, modifiedAt: 1 })),
    read: (path) => contents.get(path),
  }
  const server = await buildServer(t, { script: { files } })
  const { json } = await server.call('POST', '/sessions', { cwd: SOME_CWD })
  const base = `/v1/sessions/${json.id}/files`
  return {
    ...server,
    id: json.id as string,
    base,
    read: (path: string, method = 'GET') => rawRequest(server.port, { method, path: `${base}/${path}` }),
  }
}

/** What a header may not carry is replaced; the name that a browser saves under is given in both forms of RFC 6266. */
const NAMES: [path: string, disposition: string][] = [
  ['report.txt', 'attachment; filename=report.txt'],
  ['a/b/c.html', 'attachment; filename=c.html'],
  ['two words.txt', 'attachment; filename="two words.txt"'],
  ['日本.txt', `attachment; filename="??.txt"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.txt`],
  ['😀.txt', `attachment; filename="??.txt"; filename*=UTF-8''%F0%9F%98%80.txt`],
  ['quote".txt', 'attachment; filename="quote\\".txt"'],
  ['x"; filename=evil.exe', 'attachment; filename="x\\"; filename=evil.exe"'],
  ['semi;colon=1.txt', 'attachment; filename="semi;colon=1.txt"'],
  ['line\r\nset-cookie: a=b', 'attachment; filename="line__set-cookie: a=b"'],
  ['nul\0.txt', 'attachment; filename=nul_.txt'],
  ['tab\t\u007f\u0085.txt', 'attachment; filename=tab___.txt'],
  ['\u202egnp.exe', 'attachment; filename=_gnp.exe'],
  ['back\\slash.txt', 'attachment; filename="back\\\\slash.txt"'],
  ['..\\..\\boot.ini', 'attachment; filename="..\\\\..\\\\boot.ini"'],
  ['100%.txt', 'attachment; filename=100%.txt'],
  ['%2e%2e', `attachment; filename=%2e%2e; filename*=UTF-8''%252e%252e`],
  ['a?b#c', 'attachment; filename="a?b#c"'],
  ['__proto__', 'attachment; filename=__proto__'],
  ['constructor', 'attachment; filename=constructor'],
  [' ', 'attachment; filename=" "'],
  ['x'.repeat(500), `attachment; filename=${'x'.repeat(500)}`],
  ['e\u0301.txt', `attachment; filename="e?.txt"; filename*=UTF-8''e%CC%81.txt`],
]

t.test('files of any name are listed as they are and downloaded as attachments', async (t) => {
  const contents = new Map(NAMES.map(([path]) => [path, Buffer.from(`contents of ${path}`)]))
  const { call, read, id } = await buildFiles(t, contents)
  const { json, headers } = await call('GET', `/sessions/${id}/files`)
  t.match(headers.get('content-type'), 'application/json')
  t.same(
    json.files,
    [...contents].map(([path, bytes]) => ({ path, bytes: bytes.length, modifiedAt: 1 })),
    'bytes, not characters, are counted',
  )
  for (const [path, disposition] of NAMES) {
    const what = encodeURIComponent(path.slice(0, 40))
    const answer = await read(encodeURIComponent(path))
    t.same([answer.status, answer.text], [200, `contents of ${path}`], what)
    t.match(answer.headers, {
      'content-disposition': disposition,
      'content-length': String(contents.get(path)?.length),
      'content-type': 'application/octet-stream',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    })
    t.equal(answer.headers['content-disposition'], disposition, what)
    t.equal(answer.headers['set-cookie'], undefined)
    const head = await read(encodeURIComponent(path), 'HEAD')
    t.same(
      [head.status, head.text, head.headers['content-length']],
      [200, '', answer.headers['content-length']],
      `HEAD ${what}`,
    )
  }
})

t.test('contents arrive byte by byte', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 65_536 }, (_, at) => (at * 31) % 256))
  const shared = new Uint8Array(bytes.buffer, bytes.byteOffset + 100, 1_000)
  const { api, base, url } = await buildFiles(
    t,
    new Map([
      ['all', bytes],
      ['part', shared],
      ['none', Buffer.alloc(0)],
    ]),
  )
  t.ok(api)
  for (const [path, expected] of [
    ['all', bytes],
    ['part', Buffer.from(shared)],
    ['none', Buffer.alloc(0)],
  ] as const) {
    const response = await fetch(`${url}${base}/${path}`)
    t.ok(Buffer.from(await response.arrayBuffer()).equals(expected), path)
    t.equal(response.headers.get('content-length'), String(expected.length))
  }
})

t.test('a path is the exact name of a file in the list, or nothing', async (t) => {
  const { read } = await buildFiles(
    t,
    new Map([
      ['a/b.txt', Buffer.from('x')],
      ['.hidden', Buffer.from('y')],
    ]),
  )
  for (const path of ['a/b.txt', 'a%2fb.txt', '%61/b%2Etxt', '.hidden', '%2ehidden'])
    t.equal((await read(path)).status, 200, path)
  const nothing = [
    '',
    '.',
    '..',
    'a',
    'a/',
    'a//b.txt',
    'a/./b.txt',
    './a/b.txt',
    '/a/b.txt',
    'a/../a/b.txt',
    'a/b.txt/',
    'a/b.txt%00',
    'a/b.txt%20',
    'A/B.TXT',
    'a%5cb.txt',
    'a%252fb.txt',
    '%2561/b.txt',
    '../../etc/passwd',
    '..%2f..%2f..%2fetc%2fpasswd',
    '%2e%2e/%2e%2e/etc/passwd',
    '%2fetc%2fpasswd',
    '/etc/passwd',
    '..%5c..%5cetc%5cpasswd',
    'file:///etc/passwd',
    '%00',
    '%EF%BC%8E%EF%BC%8E/etc',
    'x'.repeat(8_000),
    'a/'.repeat(4_000),
    '__proto__',
    'constructor',
    'toString',
  ]
  for (const path of nothing) {
    isProblem(t, await read(path), 404, 'SG_ERR_FILE_NOT_FOUND', `GET ${path.slice(0, 60)}`)
    t.match(await read(path, 'HEAD'), { status: 404, text: '' })
  }
  for (const path of ['%', '%2', '%zz', '%ff', '%c0%ae%c0%ae/etc', '%ed%a0%80'])
    isProblem(t, await read(path), 400, 'SG_ERR_BAD_REQUEST', `GET ${path}`)
})

t.test('a session without a filesystem has no files, and an ended one keeps its own', async (t) => {
  const { call } = await buildServer(t, { profiles: [{ name: 'agent', engine: 'cli' }] })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  for (const path of ['/files', '/files/a', '/files/'])
    isProblem(t, await call('GET', `/sessions/${json.id}${path}`), 404, 'SG_ERR_FILES_NOT_FOUND', path)
  const ended = await buildFiles(t, new Map([['kept', Buffer.from('x')]]))
  await ended.call('POST', `/sessions/${ended.id}/commands`, { type: 'close' })
  t.match((await ended.call('GET', `/sessions/${ended.id}/files`)).json, { files: [{ path: 'kept' }] })
  t.equal((await ended.read('kept')).text, 'x')
  await ended.call('DELETE', `/sessions/${ended.id}`)
  isProblem(t, await ended.read('kept'), 404, 'SG_ERR_SESSION_NOT_FOUND')
})

t.test('the scratch files of the provider engine are such files', async (t) => {
  const files = new ScratchFiles(() => 7)
  files.write('日本/概要.txt', '概要')
  const { call, port } = await buildServer(t, { script: { files } })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const listed = (await call('GET', `/sessions/${json.id}/files`)).json.files
  t.same(listed, [{ path: '日本/概要.txt', bytes: 6, modifiedAt: 7 }])
  const answer = await rawRequest(port, { path: `/v1/sessions/${json.id}/files/${encodeURI(listed[0].path)}` })
  t.match(answer, { status: 200, text: '概要', headers: { 'content-length': '6' } })
})

t.test('what an engine throws, or gives that is no file, where it is asked for its files is its failure', async (t) => {
  const failure = () => {
    throw new Error('disk gone')
  }
  const strange = [
    failure,
    async () => failure(),
    () => ({}),
    () => [{ path: 'a', bytes: 1 }],
    () => 'text',
    () => [null],
  ]
  for (const asked of strange) {
    const files = { list: asked, read: asked } as unknown as SessionFiles
    const { call } = await buildServer(t, { script: { files } })
    const { id } = (await call('POST', '/sessions', { cwd: SOME_CWD })).json
    for (const path of ['files', 'files/a']) {
      const { status, json } = await call('GET', `/sessions/${id}/${path}`)
      t.same([status, json.code], [502, 'SG_ERR_ENGINE_FAILED'], `${path} of ${asked}`)
      t.notMatch(JSON.stringify(json), /disk gone/)
    }
  }
})
