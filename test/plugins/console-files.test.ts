import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { consoleFiles } from '../../plugins/console-files.js'
import { sendProblem } from '../../plugins/errors.js'
import { buildServer } from '../fixtures/build.js'
import fastify from '../fixtures/host.js'
import { rawRequest } from '../fixtures/raw-http.js'

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types console"

const BUILD = {
  'index.html': '<!doctype html><script type="module" src="./assets/index-abc.js"></script>',
  'sw.js': 'self.onpush = 1',
  'manifest.webmanifest': '{}',
  '.vite': { 'manifest.json': '{}' },
  'unknown.kind': 'x',
  assets: { 'index-abc.js': 'run()', 'index-abc.js.br': 'in br', 'index-abc.js.gz': 'in gzip', 'index-abc.css': 'a{}' },
}

async function serve(t: Test, build: Record<string, string | Record<string, string>> = BUILD) {
  const root = t.testdir({ secret: 'top secret', console: build })
  const app = fastify()
  app.setErrorHandler(sendProblem)
  await app.register(consoleFiles, { folder: join(root, 'console'), prefix: '/v1' })
  await app.listen({ port: 0 })
  t.teardown(() => app.close())
  const { port } = app.server.address() as { port: number }
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    rawRequest(port, { method, path: `/v1${path}`, headers })
  return { get, folder: join(root, 'console') }
}

t.test('the page is looked at anew each time, its parts never again, and both under the strict policy', async (t) => {
  const { get } = await serve(t)
  const page = await get('/console/')
  t.match(page, { status: 200, text: /^<!doctype html>/ })
  t.match(page.headers, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  })
  t.match(await get('/console/', { 'if-none-match': `"other", W/${page.headers.etag}` }), { status: 304, text: '' })
  t.match(await get('/console/index.html'), { status: 200, headers: { etag: page.headers.etag } })
  const part = await get('/console/assets/index-abc.js')
  t.match(part, { status: 200, text: 'run()', headers: { 'cache-control': 'public, max-age=31536000, immutable' } })
  t.equal(part.headers['content-security-policy'], POLICY)
  t.match(await get('/console/sw.js'), { status: 200, headers: { 'cache-control': 'no-cache' } })
  const manifest = await get('/console/manifest.webmanifest')
  t.equal(manifest.headers['content-type'], 'application/manifest+json; charset=utf-8')
})

t.test('what was compressed at the build is sent to who takes it', async (t) => {
  const { get } = await serve(t)
  const path = '/console/assets/index-abc.js'
  for (const [accepted, encoding, text] of [
    ['gzip, deflate, br', 'br', 'in br'],
    ['gzip', 'gzip', 'in gzip'],
    ['gzip;q=0.5, br;q=0', 'gzip', 'in gzip'],
    ['identity', undefined, 'run()'],
    ['br;q=0.0, gzip;q=0', undefined, 'run()'],
  ] as const) {
    const got = await get(path, { 'accept-encoding': accepted })
    t.equal(got.headers['content-encoding'], encoding, accepted)
    t.match(got, { text, headers: { vary: 'Accept-Encoding', 'content-type': 'text/javascript; charset=utf-8' } })
  }
  t.equal((await get('/console/', { 'accept-encoding': 'br' })).headers['content-encoding'], undefined)
  const [plain, small] = [await get(path), await get(path, { 'accept-encoding': 'br' })]
  t.not(plain.headers.etag, small.headers.etag)
})

t.test('no path leads out of the folder, or to what is not part of the application', async (t) => {
  const { get } = await serve(t)
  for (const path of [
    ...['../secret', '%2e%2e/secret', '..%2fsecret', '..%5csecret', 'assets/../../secret', '/etc/passwd', '//secret'],
    ...['.vite/manifest.json', 'assets', 'assets/', 'assets/index-abc.js.br', 'unknown.kind', 'nothing.js', '%00'],
    ...['assets%2findex-abc.js%00', 'constructor', '__proto__'],
  ]) {
    const { status, text } = await get(`/console/${path}`)
    t.equal(status, 404, path)
    t.notMatch(text, 'top secret')
  }
})

t.test('HEAD says what GET would, and the folder is found without its slash', async (t) => {
  const { get } = await serve(t)
  const [head, page] = [await get('/console/', {}, 'HEAD'), await get('/console/')]
  t.match(head, { status: 200, text: '', headers: { etag: page.headers.etag } })
  t.equal(head.headers['content-length'], String(page.text.length))
  t.match(await get('/console'), { status: 308, headers: { location: 'console/' } })
})

t.test('a build while it runs is served, and without one the page says what to do', async (t) => {
  const { get, folder } = await serve(t, {})
  t.match(await get('/console/'), { status: 404, text: /npm run build/, headers: { 'content-type': /^text\/html/ } })
  t.match(await get('/console/assets/index-abc.js'), { status: 404 })
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'assets', 'index-new.js'), 'first')
  writeFileSync(join(folder, 'index.html'), 'first')
  t.match(await get('/console/'), { status: 200, text: 'first' })
  t.match(await get('/console/assets/index-new.js'), { status: 200, text: 'first' })
  rmSync(join(folder, 'assets', 'index-new.js'))
  writeFileSync(join(folder, 'index.html'), 'second one')
  t.match(await get('/console/'), { status: 200, text: 'second one' })
  t.match(await get('/console/assets/index-new.js'), { status: 404 })
})

t.test(
  'a gateway has the console when it was asked for one, and is found at /console where it stands alone',
  async (t) => {
    const without = await buildServer(t)
    t.equal((await without.call('GET', '/console/')).status, 404)
    t.equal((await fetch(`${without.url}/console`)).status, 404)
    const { port, call } = await buildServer(t, { console: true })
    t.match(await rawRequest(port, { path: '/console' }), { status: 308, headers: { location: './v1/console/' } })
    t.match(await rawRequest(port, { path: '/console/' }), { status: 308, headers: { location: '../v1/console/' } })
    const page = await call('GET', '/console/')
    t.match(page.headers.get('content-type'), /^text\/html/, 'built or not')
    t.match(await call('GET', '/console/nothing.js'), { status: 404, json: { code: 'SG_ERR_NOT_FOUND' } })
    t.match(await call('POST', '/console/assets/a.js', {}), { status: 405 })
    t.same((await call('GET', '/console/me')).json, {
      ...{ required: false, authenticated: true, caller: { canManageProfiles: false, isLimited: false } },
      features: { queue: false, profileStore: false, webPush: false },
    })
    t.match(await call('POST', '/console/sessions', { token: 'x' }), { status: 405 }, 'nobody needs to sign in')
  },
)
