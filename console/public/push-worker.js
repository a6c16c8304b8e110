// Shows what the gateway tells this browser, and opens the place that it is about. It controls no page, and keeps and serves nothing.
// What is to be told its own address says: `?events=`.

/** The console: where this file lies. */
const HOME = new URL('./', self.location.href)

/** Where a press on it leads: the link that the gateway gave, else into the console. */
function addressOf({ type, sessionId, seq, url }) {
  if (typeof url === 'string' && /^https?:\/\//.test(url)) return url
  const hash =
    type === 'permission_requested' ? '#/inbox' : `#/sessions/${encodeURIComponent(sessionId)}/${Number(seq)}`
  return new URL(hash, HOME).href
}

function read(data) {
  try {
    return data.json()
  } catch {
    return {}
  }
}

self.addEventListener('push', (event) => {
  const message = read(event.data)
  const { title = 'session-gateway', body = '', tag, type } = message
  event.waitUntil(
    self.registration.showNotification(String(title), {
      body: String(body),
      icon: new URL('icon-192.png', HOME).href,
      // the next of the same takes its place: an answer that of what was asked
      ...(tag !== undefined && { tag: String(tag) }),
      renotify: tag !== undefined && type === 'permission_requested',
      silent: type === 'permission_resolved',
      data: { address: addressOf(message) },
    }),
  )
})

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  const { address } = event.notification.data
  event.waitUntil(
    self.clients.matchAll({ type: 'window', includeUncontrolled: true }).then(async (windows) => {
      const open = windows.find(({ url }) => url.startsWith(HOME.href))
      if (!open || !address.startsWith(HOME.href)) return self.clients.openWindow(address)
      await open.focus()
      open.postMessage({ go: new URL(address).hash })
    }),
  )
})

// a browser that makes its subscription anew is told there from now on, and not only once somebody opens the console
self.addEventListener('pushsubscriptionchange', (event) => event.waitUntil(renew(event.newSubscription)))

async function renew(given) {
  const at = (path) => new URL(`../notifications/${path}`, HOME)
  const unattended = { 'x-unattended': '1' }
  const made = given ?? (await subscribed(await fetch(at('vapid-key'), { headers: unattended })))
  const events = new URL(self.location.href).searchParams.get('events')?.split(',')
  await fetch(at('subscriptions'), {
    method: 'POST',
    headers: { ...unattended, 'content-type': 'application/json' },
    body: JSON.stringify({ ...made.toJSON(), ...(events && { events }) }),
  })
}

async function subscribed(key) {
  const { publicKey } = await key.json()
  return self.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey })
}

// a new one takes over at once: there is nothing that it could disturb
self.addEventListener('install', () => self.skipWaiting())
