import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import t from 'tap'
import { buildServer } from '../fixtures/build.js'
import { headerOf, isProblem } from '../fixtures/problem.js'

const authenticate = ({ headers }: { headers: { authorization?: string | undefined } }) => headers.authorization && {}
const LET_IN = { authorization: 'Bearer x' }
const PAGE = ['/docs', '/docs/page.js', '/docs/page.css', '/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css']
const DOCUMENTS = ['/openapi.json', '/asyncapi.json']

t.test('who writes a client reads the documents and their page without credentials, and nothing else', async (t) => {
  const { call } = await buildServer(t, { authenticate })
  for (const path of [...PAGE, ...DOCUMENTS]) {
    t.equal((await call('GET', path)).status, 200, path)
    t.equal((await call('HEAD', path)).status, 200, path)
    isProblem(t, await call('POST', path), 405, 'SG_ERR_METHOD_NOT_ALLOWED', path)
  }
  for (const path of ['/docs/', '/docs/index.css', '/docs/../sessions', '/docs/%2e%2e/sessions', '/sessions'])
    isProblem(t, await call('GET', path), 401, 'SG_ERR_UNAUTHENTICATED', path)
})

t.test('an operator keeps them for callers who are let in, or does without the page', async (t) => {
  const kept = await buildServer(t, { authenticate, docs: 'authenticated' })
  for (const path of [...PAGE, ...DOCUMENTS]) {
    isProblem(t, await kept.call('GET', path), 401, 'SG_ERR_UNAUTHENTICATED', path)
    t.equal((await kept.call('GET', path, undefined, LET_IN)).status, 200, path)
  }
  const without = await buildServer(t, { authenticate, docs: false })
  for (const path of PAGE)
    isProblem(t, await without.call('GET', path, undefined, LET_IN), 404, 'SG_ERR_NOT_FOUND', path)
  for (const path of DOCUMENTS) {
    isProblem(t, await without.call('GET', path), 401, 'SG_ERR_UNAUTHENTICATED', path)
    t.equal((await without.call('GET', path, undefined, LET_IN)).status, 200, path)
  }
})

t.test('the page loads nothing from anywhere else', async (t) => {
  const { call } = await buildServer(t, { queue: {} })
  const page = await call('GET', '/docs')
  const policy = headerOf(page, 'content-security-policy') ?? ''
  t.match(policy, /default-src 'none'/)
  t.notMatch(policy, /unsafe|https?:|\*/)
  const loaded = [...page.text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url]) => url)
  t.same(loaded.sort(), [
    'asyncapi.json',
    'docs/page.css',
    'docs/page.js',
    'docs/swagger-ui-bundle.js',
    'docs/swagger-ui.css',
  ])
  t.notMatch(page.text, /<script>|style=|onload=/)
  for (const words of ['/v1/sessions/{id}/ws', '/v1/queue/ws', 'tool_call_request', 'queue_attached'])
    t.ok(page.text.includes(words), words)
})

const CHROMIUM = '/usr/bin/chromium'
t.test('a browser renders it under its policy', { skip: !existsSync(CHROMIUM) && `no ${CHROMIUM}` }, async (t) => {
  const { api } = await buildServer(t, { queue: {} })
  const flags = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--enable-logging=stderr',
    `--user-data-dir=${t.testdir()}`,
  ]
  const child = spawn(CHROMIUM, [...flags, '--virtual-time-budget=60000', '--dump-dom', `${api}/docs`])
  let dom = ''
  let log = ''
  child.stdout.on('data', (data) => {
    dom += data
  })
  child.stderr.on('data', (data) => {
    log += data
  })
  await new Promise((resolve) => child.on('close', resolve))
  t.match(dom, /operations-sessions-createSession|Create a session/)
  t.notMatch(log, /Content Security Policy|Refused to/, log)
})
