import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { InboxItem, SessionNotification } from '../../schemas/notifications.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { until } from '../fixtures/build.js'
import { type DaemonProcess, DEMO, runDaemon } from '../fixtures/daemon-process.js'
import { ASKS } from '../fixtures/demo.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

/** There is always a next one, however long this takes. */
const REMINDERS = Array.from({ length: 12 }, (_, n) => ({ afterMs: 1_000 * 2 ** n, channel: 'phone' }))

/** A durable daemon whose channel gets links, and which can be killed and started anew. */
async function world(t: Test, notifications: object = {}) {
  const sink = await WebhookSink.start(t)
  const cwd = t.testdir({ work: {} })
  const configure = (more: object = {}) => {
    const config = {
      listen: { port: 0 },
      allowUnauthenticated: true,
      allowedCwdRoots: ['work'],
      profiles: [DEMO],
      notifications: {
        channels: [{ format: 'webhook', name: 'phone', url: sink.url, events: ['permission_requested'] }],
        publicUrl: 'https://gateway.example',
        answerLinks: true,
        ...notifications,
        ...more,
      },
      log: { level: 'info', pretty: false },
    }
    writeFileSync(join(cwd, 'gateway.json'), JSON.stringify(config), { mode: 0o600 })
  }
  configure()
  let url = ''
  let daemon: DaemonProcess
  const start = async () => {
    daemon = runDaemon(t, [], { cwd })
    url = String((await daemon.logged('listening')).url)
  }
  const stop = async () => {
    daemon.child.kill('SIGKILL')
    await daemon.exited
  }
  await start()
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(url + path, {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
    return { status: answer.status, json: (await answer.json()) as any }
  }
  const statusOf = async (id: string) => ((await call('GET', `/sessions/${id}`)).json as SessionInfo).status
  /** What was told of a session, newest last. */
  const told = (id: string) =>
    sink.received.flatMap(({ body }) =>
      body?.sessionId === id ? (body as SessionNotification & { answerUrl?: string; reminder?: number }) : [],
    )
  /** A session that is parked until somebody answers it. */
  const ask = async () => {
    const session = { cwd: join(cwd, 'work'), prompt: ASKS, approvalTimeoutMs: 0 }
    const { json } = await call('POST', '/sessions', session)
    const id = String(json.id)
    await until(() => told(id).length > 0, 'what the channel is told')
    await until(async () => (await statusOf(id)) === 'parked', 'a parked session')
    const [first] = told(id)
    return { id, requestId: first!.request!.id, link: first!.answerUrl! }
  }
  const at = (link: string) => link.replace('https://gateway.example/v1', url)
  const page = async (link: string, form?: Record<string, string>) => {
    const answer = await fetch(at(link), form ? { method: 'POST', body: new URLSearchParams(form) } : {})
    return { status: answer.status, text: await answer.text() }
  }
  const run = async (...args: string[]) => {
    const command = runDaemon(t, args, { cwd })
    t.match(await command.exited, { code: 0 }, command.stderr)
    return command.stdout + command.stderr
  }
  /** What one waits for was decided. */
  const resolved = async (id: string) => {
    let found: object | undefined
    await until(async () => {
      const { json } = await call('GET', `/sessions/${id}/events?limit=1000`)
      found = json.events.find(({ type }: { type: string }) => type === 'permission_resolved')
      return found
    }, 'an answer that is told')
    return found
  }
  return { configure, start, stop, call, statusOf, told, ask, page, run, resolved, sink, logs: () => daemon.stdout }
}

t.test('a link to a parked session outlives its gateway, and wakes it', async (t) => {
  const { ask, page, start, stop, call, resolved, statusOf } = await world(t)
  const [one, byRest, removed] = await Promise.all([ask(), ask(), ask()])
  await stop()
  await start()
  t.match(await page(one.link), { status: 200, text: /fs_write[\s\S]*Allow/ })
  t.equal(await statusOf(one.id), 'parked', 'who looks wakes nobody')
  t.match(await page(one.link, { behavior: 'allow' }), { status: 200, text: /Allowed/ })
  t.match(await resolved(one.id), { behavior: 'allow', by: { channel: 'link' } })
  await until(async () => (await statusOf(one.id)) === 'idle', 'the end of its turn')
  t.match(await page(one.link, { behavior: 'deny' }), { text: /was allowed by this link, or one like it/ })

  const path = `/sessions/${byRest.id}/permissions/${byRest.requestId}`
  const [link, rest] = await Promise.all([
    page(byRest.link, { behavior: 'deny' }),
    call('POST', path, { behavior: 'allow' }),
  ])
  const isLink = link.status === 200
  t.not(isLink, rest.status === 200, 'one of the two was first')
  t.match(await resolved(byRest.id), { by: { channel: isLink ? 'link' : 'rest' } })
  t.match(await page(byRest.link), { text: isLink ? /was denied/ : /was allowed/ })

  t.equal((await call('DELETE', `/sessions/${removed.id}`)).status, 200)
  for (const form of [undefined, { behavior: 'allow' }]) {
    const { status, text } = await page(removed.link, form)
    t.equal(status, 410)
    t.match(text, /^<!doctype html>[\s\S]*not there any more/i)
  }
  t.same((await call('GET', '/inbox/count')).json, { permissions: 0, questions: 0 })
})

t.test('a link ends with its time, over a restart too, and the request waits on', async (t) => {
  const answerLinkTtlMs = 4_000
  const { ask, page, start, stop, call, told } = await world(t, { answerLinkTtlMs })
  let { id, link, requestId } = await ask()
  // one that is sent when its time is over is sent without
  while (link === undefined) ({ id, link, requestId } = await ask())
  await stop()
  await start()
  // whoever asks for a page again and again is told to wait
  await until(() => Date.now() > told(id)[0]!.ts + answerLinkTtlMs, 'the end of a link')
  t.equal((await page(link)).status, 410)
  t.match(await page(link, { behavior: 'allow' }), { status: 410, text: /^<!doctype html>/i })
  const items = (await call('GET', '/inbox')).json as InboxItem[]
  t.ok(items.some(({ request }) => request.id === requestId))
})

t.test('rotate-keys makes old links void, while the gateway runs and while it does not', async (t) => {
  const { ask, page, run, start, stop, call, told, resolved } = await world(t, { reminders: REMINDERS })
  const running = await ask()
  t.match(await page(running.link), { status: 200 })
  t.match(await run('rotate-keys'), /^ok: \S+ has a new key/)
  for (const form of [undefined, { behavior: 'allow' }]) t.equal((await page(running.link, form)).status, 404)
  const fresh = await ask()
  t.match(await page(fresh.link, { behavior: 'deny' }), { status: 200, text: /Denied/ })

  const stopped = await ask()
  await stop()
  await run('rotate-keys')
  const before = told(stopped.id).length
  await start()
  t.equal((await page(stopped.link)).status, 404)
  t.equal((await page(running.link)).status, 404)
  // what the receiver had answered as the gateway stopped may come once more
  const reminders = () =>
    told(stopped.id)
      .slice(before)
      .filter(({ reminder }) => reminder !== undefined)
  await until(() => reminders().length > 0, 'the next reminder')
  const next = reminders()[0]!
  t.match(next, { request: { id: stopped.requestId }, reminder: Number })
  t.match(await page(next.answerUrl!, { behavior: 'allow' }), { status: 200, text: /Allowed/ })
  t.match(await resolved(stopped.id), { by: { channel: 'link' } })
  t.equal((await call('GET', '/inbox/count')).json.permissions, 1, 'what no link reaches can be answered in the inbox')
})

t.test('rotate-keys says so where there is no database, and makes none', async (t) => {
  const cwd = t.testdir({ 'gateway.json': JSON.stringify({ allowUnauthenticated: true, profiles: [DEMO] }) })
  const command = runDaemon(t, ['rotate-keys'], { cwd })
  t.match(await command.exited, { code: 1 })
  t.match(command.stderr, /session-gateway\.db/)
})

t.test('no output shows what channels are known by', async (t) => {
  const secrets = ['whsec-of-the-phone', 'T0SLACK/B0TOKEN', 'my-secret-topic', 'tk_ntfy_token', 'header-of-the-phone']
  const [secret, slack, topic, token, header] = secrets as [string, string, string, string, string]
  const { configure, ask, page, run, start, stop, sink, call, logs } = await world(t)
  const on = (path: string) => new URL(path, sink.url).href
  sink.answer = ({ path }, response) => void response.writeHead(path === '/phone' ? 204 : 500).end()
  configure({
    attempts: 1,
    channels: [
      { format: 'webhook', name: 'phone', url: on('/phone'), secret, headers: { 'x-key': header } },
      { format: 'slack', url: on(`/services/${slack}`) },
      { format: 'ntfy', url: on(`/${topic}`), headers: { authorization: `Bearer ${token}` } },
    ],
  })
  await stop()
  await start()
  const { link, id, requestId } = await ask()
  await page(link)
  await page(`${link}x`)
  await until(() => logs().match(/given up/g)?.length === 2, 'deliveries that were given up')
  const [told] = (await call('GET', '/notifications?types=permission_requested')).json as SessionNotification[]
  const deliveries = JSON.stringify((await call('GET', `/notifications/${told!.id}/deliveries`)).json)
  t.match(deliveries, /"channel":"slack"/)
  await call('POST', `/sessions/${id}/permissions/${requestId}`, { behavior: 'deny' })
  const shown = {
    log: logs(),
    'print-config': await run('--print-config'),
    check: await run('check'),
    doctor: await run('doctor'),
    rotate: await run('rotate-keys'),
    deliveries,
  }
  const hidden = [...secrets, ...slack.split('/'), new URL(link).searchParams.get('token')!]
  for (const [name, text] of Object.entries(shown))
    t.same(
      hidden.filter((one) => text.includes(one)),
      [],
      name,
    )
  t.match(shown['print-config'], /"name": "phone"/)
})
