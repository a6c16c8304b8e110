import { readFileSync } from 'node:fs'
import { createContext, runInContext } from 'node:vm'
import t from 'tap'

const SOURCE = readFileSync(new URL('../../console/public/push-worker.js', import.meta.url), 'utf8')
const HOME = 'https://gateway.example/agents/v1/console/'

interface Shown {
  title: string
  body: string
  tag?: string
  silent: boolean
  renotify: boolean
  data: { address: string }
}

/** The worker as a browser runs it, as far as it asks for anything. */
function started(windows: { url: string }[] = [], query = '') {
  const listeners = new Map<string, (event: object) => void>()
  const shown: Shown[] = []
  const opened: string[] = []
  const told: unknown[] = []
  const asked: { path: string; body?: unknown; unattended: boolean }[] = []
  const fetch = async (url: URL, { headers, body }: { headers: Record<string, string>; body?: string }) => {
    const unattended = headers['x-unattended'] !== undefined
    asked.push({ path: url.href, unattended, ...(body && { body: JSON.parse(body) }) })
    return { json: async () => ({ publicKey: 'KEY' }) }
  }
  const open = windows.map((window) => ({
    ...window,
    focus: async () => {},
    // of its own realm, as what was cloned would be
    postMessage: (message: unknown) => told.push(structuredClone(message)),
  }))
  const self = {
    location: { href: `${HOME}push-worker.js${query}` },
    addEventListener: (name: string, listener: (event: object) => void) => listeners.set(name, listener),
    registration: {
      showNotification: async (title: string, options: object) => shown.push({ title, ...options } as Shown),
      pushManager: {
        subscribe: async ({ applicationServerKey }: { applicationServerKey: string }) => ({
          toJSON: () => ({ endpoint: `made with ${applicationServerKey}` }),
        }),
      },
    },
    clients: { matchAll: async () => open, openWindow: async (url: string) => opened.push(url) },
    skipWaiting: () => {},
  }
  runInContext(SOURCE, createContext({ self, URL, encodeURIComponent, fetch }))
  const run = async (name: string, event: object) => {
    let work: unknown
    listeners.get(name)!({ ...event, waitUntil: (promise: unknown) => (work = promise) })
    await work
  }
  return {
    listeners,
    shown,
    opened,
    told,
    asked,
    change: (newSubscription: object | null) => run('pushsubscriptionchange', { newSubscription }),
    push: (message: unknown) => run('push', { data: { json: () => JSON.parse(JSON.stringify(message)) } }),
    pushRaw: (json: () => unknown) => run('push', { data: { json } }),
    press: (data: Shown['data']) => run('notificationclick', { notification: { close: () => {}, data } }),
  }
}

const ASKED = {
  id: 'd1',
  type: 'permission_requested',
  sessionId: 'a/../b?#',
  seq: 7,
  title: 'Build needs you',
  body: 'Bash: rm',
  tag: 't1',
  requestId: 'r',
}

t.test('what is told is shown, and the answer takes the place of what was asked', async (t) => {
  const worker = started()
  await worker.push(ASKED)
  await worker.push({ ...ASKED, type: 'permission_resolved', body: 'Allowed' })
  t.match(worker.shown, [
    { title: 'Build needs you', body: 'Bash: rm', tag: 't1', silent: false, renotify: true },
    { body: 'Allowed', tag: 't1', silent: true, renotify: false },
  ])
})

t.test('a press opens the link that came, else the place in the console', async (t) => {
  const worker = started()
  await worker.push(ASKED)
  await worker.push({ ...ASKED, type: 'turn_completed' })
  await worker.push({ ...ASKED, url: 'https://gateway.example/answer/abc' })
  await worker.push({ ...ASKED, url: 'javascript:alert(1)' })
  for (const { data } of worker.shown) await worker.press(data)
  t.strictSame(worker.opened, [
    `${HOME}#/inbox`,
    `${HOME}#/sessions/a%2F..%2Fb%3F%23/7`,
    'https://gateway.example/answer/abc',
    `${HOME}#/inbox`,
  ])
})

t.test('a console that is open goes there, and no other page does', async (t) => {
  const worker = started([{ url: 'https://gateway.example/other' }, { url: `${HOME}#/usage` }])
  await worker.push(ASKED)
  await worker.press(worker.shown[0]!.data)
  t.strictSame(worker.told, [{ go: '#/inbox' }])
  t.strictSame(worker.opened, [])
  const alone = started([{ url: 'https://gateway.example/other' }])
  await alone.push(ASKED)
  await alone.press(alone.shown[0]!.data)
  t.strictSame([alone.opened, alone.told], [[`${HOME}#/inbox`], []])
})

t.test('it takes no request, and a message that is none is shown as one without words', async (t) => {
  const worker = started()
  t.strictSame([...worker.listeners.keys()].sort(), ['install', 'notificationclick', 'push', 'pushsubscriptionchange'])
  await worker.pushRaw(() => {
    throw new SyntaxError('no JSON')
  })
  t.match(worker.shown, [{ title: 'session-gateway', body: '' }])
})

t.test('a browser that subscribes anew by itself is told there what it was told before', async (t) => {
  const given = { toJSON: () => ({ endpoint: 'given' }) }
  const notifications = 'https://gateway.example/agents/v1/notifications'
  const events = ['permission_requested', 'session_error']
  const worker = started([], `?events=${encodeURIComponent(events.join())}`)
  await worker.change(given)
  // some browsers leave it to the page
  await worker.change(null)
  const before = started()
  await before.change(given)
  t.strictSame(
    [...worker.asked, ...before.asked].map(({ path, body, unattended }) => [unattended, path, body]),
    [
      [true, `${notifications}/subscriptions`, { endpoint: 'given', events }],
      [true, `${notifications}/vapid-key`, undefined],
      [true, `${notifications}/subscriptions`, { endpoint: 'made with KEY', events }],
      [true, `${notifications}/subscriptions`, { endpoint: 'given' }],
    ],
  )
})
