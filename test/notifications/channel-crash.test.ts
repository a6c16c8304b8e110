import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { InboxItem, SessionNotification } from '../../schemas/notifications.js'
import { until } from '../fixtures/build.js'
import { DEMO, runDaemon } from '../fixtures/daemon-process.js'
import { ASKS } from '../fixtures/demo.js'
import { SocketFollower, StreamFollower } from '../fixtures/feed-followers.js'
import { rounds } from '../fixtures/rounds.js'
import { type Heard, ToldChannels, tagOfRequest } from '../fixtures/told-channels.js'

const ROUNDS = rounds(4, 100)
const CLIENTS = 3
const AFTER_MS = { own: 500, phone: 900, team: 1_500 }
const REMINDED = Object.keys(AFTER_MS) as (keyof typeof AFTER_MS)[]

// biome-ignore lint/suspicious/noExplicitAny: whatever the daemon answers
type Json = any

t.test(
  `what a daemon that is killed ${ROUNDS} times owes its channels and followers, each has in the end`,
  async (t) => {
    const told = await ToldChannels.start(t, Math.random)
    const cwd = t.testdir({ work: {} })
    const all = ['permission_requested', 'turn_completed', 'session_error', 'session_closed']
    const config = {
      listen: { port: 0 },
      allowUnauthenticated: true,
      allowedCwdRoots: ['work'],
      profiles: [DEMO],
      webhookPolicy: { allowedHosts: [told.push.host] },
      notifications: {
        publicUrl: 'https://gateway.example',
        answerLinks: true,
        retention: { maxCount: 1_000_000 },
        ...{ attempts: 10, retryDelayMs: 5 },
        channels: [
          { format: 'webhook', name: 'own', url: told.url('own'), secret: 'a secret of many letters', events: all },
          { format: 'slack', url: told.url('slack'), events: ['permission_requested'] },
          { format: 'ntfy', name: 'phone', url: told.url('phone'), events: ['permission_requested'] },
          { format: 'webhook', name: 'team', url: told.url('team'), secret: 'another of many letters', events: [] },
          { format: 'web_push', name: 'browser', subject: 'mailto:ops@example.com' },
        ],
        reminders: REMINDED.map((channel) => ({ afterMs: AFTER_MS[channel], channel })),
      },
      log: { level: 'warn', pretty: false },
    }
    writeFileSync(join(cwd, 'gateway.json'), JSON.stringify(config), { mode: 0o600 })

    const faults: string[] = []
    let url = ''
    const call = async (method: string, path: string, body?: object): Promise<{ status: number; json: Json }> => {
      const answer = await fetch(url + path, {
        method,
        ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      })
      if (answer.status >= 500 && answer.status !== 503) faults.push(`${method} ${path}: ${answer.status}`)
      return { status: answer.status, json: await answer.json() }
    }
    const start = async () => {
      told.life++
      const daemon = runDaemon(t, ['--log-level', 'info'], { cwd })
      url = String((await daemon.logged('listening')).url)
      return daemon
    }

    /** When an answer, or an end, was confirmed, by session; of a request, or of all. */
    const over = new Map<string, number>()
    const oneOf = <T>(items: readonly T[]): T | undefined => items[Math.floor(Math.random() * items.length)]
    const create = (prompt: string, approvalTimeoutMs: number) => async () => {
      const { status, json } = await call('POST', '/sessions', { cwd: join(cwd, 'work'), prompt, approvalTimeoutMs })
      if (status !== 201) faults.push(`POST /sessions: ${status} ${JSON.stringify(json)}`)
      return String(json.id)
    }
    /** At least one, however slow the machine is: its engine is loaded by then. */
    const askFirst = async () => {
      const id = await create(ASKS, 0)()
      const isAsked = ({ type }: { type: string }) => type === 'permission_requested'
      await until(
        async () => (await call('GET', `/sessions/${id}/events`)).json.events.some(isAsked),
        'the first request of a life',
      )
    }
    const waiting = async () => oneOf((await call('GET', '/inbox?limit=100')).json as InboxItem[])
    const answerOne = async () => {
      const item = await waiting()
      if (!item) return
      const whose = { sessionId: item.session.id, requestId: item.request.id }
      const isBulk = Math.random() < 0.5
      const { status, json } = isBulk
        ? await call('POST', '/inbox/answers', { answers: [{ ...whose, behavior: 'deny' }] })
        : await call('POST', `/sessions/${whose.sessionId}/permissions/${whose.requestId}`, { behavior: 'allow' })
      if (status === 200 && (!isBulk || json.results[0].resolved)) over.set(whose.requestId, Date.now())
    }
    const answerByLink = async () => {
      const link = oneOf(told.links.slice(-20))
      if (link === undefined) return
      const { pathname, search } = new URL(link)
      const [claims = ''] = new URL(link).searchParams.get('token')!.split('.')
      const [, requestId] = JSON.parse(Buffer.from(claims, 'base64url').toString())
      const answer = await fetch(new URL(pathname + search, url), {
        method: 'POST',
        body: new URLSearchParams({ behavior: 'allow' }),
      })
      const page = await answer.text()
      if (answer.status >= 500 && answer.status !== 503) faults.push(`a link answers ${answer.status}: ${page}`)
      if (answer.status === 200) over.set(requestId, Date.now())
    }
    const remove = async () => {
      const item = Math.random() < 0.3 ? await waiting() : undefined
      if (!item) return
      const { status } = await call('DELETE', `/sessions/${item.session.id}`)
      if (status === 200) over.set(item.request.id, Date.now())
    }
    const run = async () => {
      const actions: (() => Promise<unknown>)[] = [
        create(ASKS, 0),
        create(ASKS, 0),
        create(ASKS, 60_000),
        create('a question', 0),
      ]
      actions.push(create('hello', 0), answerOne, answerOne, answerByLink, remove)
      try {
        for (;;) await oneOf(actions)!()
      } catch (error) {
        // what fetch says of a connection that was cut off
        if (!(error instanceof TypeError && /fetch failed|terminated/.test(error.message))) throw error
      }
    }

    const browser = told.push.subscribe()
    told.hearPush(browser)
    const followers = [new SocketFollower(), new StreamFollower()]
    const found = () => [...faults, ...told.faults, ...told.push.faults, ...followers.flatMap(({ faults }) => faults)]
    for (let round = 1; round <= ROUNDS; round++) {
      const daemon = await start()
      if (round === 1)
        t.equal(
          (await call('POST', '/notifications/subscriptions', browser.request)).status,
          201,
          'a browser subscribes',
        )
      const following = followers.map((follower) => follower.follow(url))
      await askFirst()
      const clients = Array.from({ length: CLIENTS }, run)
      await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 500))
      daemon.child.kill('SIGKILL')
      await Promise.all([...clients, daemon.exited, ...following])
      for (const { msg, err } of daemon.lines())
        if (/given up|no target/.test(String(msg))) faults.push(`${msg} ${JSON.stringify(err)}`)
      t.same(found(), [], `round ${round}`)
      if (found().length > 0) return
    }

    const daemon = await start()
    const following = followers.map((follower) => follower.follow(url))
    await askFirst()
    const feed: SessionNotification[] = []
    const readOn = async () => {
      for (;;) {
        const after = feed.at(-1)?.id ?? followers[0]!.first!
        const { json } = await call('GET', `/notifications?after=${encodeURIComponent(after)}`)
        if (json.length === 0) return
        feed.push(...json)
      }
    }
    await readOn()
    const asked = () => feed.filter(({ type }) => type === 'permission_requested')
    t.ok(asked().length >= ROUNDS, `${asked().length} requests of ${feed.length} notifications`)

    await t.test('every channel has every request, under one id', async (t) => {
      const missing = () => {
        const taken = told.taken()
        return asked().flatMap((one) =>
          Object.entries(told.firstOf(one)).flatMap(([channel, id]) =>
            taken.has(`${channel} ${id}`) ? [] : `${channel} ${id}`,
          ),
        )
      }
      await until(() => missing().length === 0, 'every request at every channel').catch(() => t.same(missing(), []))
      const ids = new Map<string, Set<unknown>>()
      for (const { channel, delivery, id } of told.heard)
        if (channel === 'own') ids.set(delivery, (ids.get(delivery) ?? new Set()).add(id))
      t.same(
        [...ids].filter(([, { size }]) => size > 1),
        [],
        'made again it is the same',
      )
      await readOn()
      const known = new Set(feed.map(({ id }) => id))
      t.same(
        told.heard.filter(({ id }) => id !== undefined && !known.has(id)),
        [],
        'and nothing is told that was not kept',
      )
    })

    await t.test('who waits is reminded of by each channel once, and who was answered before is not', async (t) => {
      const items = (await call('GET', '/inbox?limit=200')).json as InboxItem[]
      const open = new Set(items.map(({ request }) => request.id))
      const reminderOf = ({ sessionId, request }: SessionNotification, channel: string) => {
        const id = `${sessionId}:${request!.id}:${REMINDED.indexOf(channel as 'own') + 1}`
        return `${channel} ${channel === 'phone' ? `${tagOfRequest(sessionId, request!.id)} Still waiting` : id}`
      }
      const missing = () => {
        const taken = told.taken()
        const waits = asked().filter(({ request }) => open.has(request!.id))
        return waits.flatMap((one) =>
          REMINDED.map((channel) => reminderOf(one, channel)).filter((key) => !taken.has(key)),
        )
      }
      t.ok(open.size > 0, `${open.size} wait`)
      await until(() => missing().length === 0, 'every reminder').catch(() => t.same(missing(), []))
      const early: string[] = []
      const taken = told.taken()
      for (const one of asked())
        for (const channel of REMINDED) {
          const at = over.get(one.request!.id)
          const isOver = at !== undefined && at < one.ts + AFTER_MS[channel]
          if (isOver && taken.has(reminderOf(one, channel))) early.push(reminderOf(one, channel))
        }
      t.same(early, [], 'nobody is reminded of what was answered in time')
      // a process that dies before it has noted the answer of a channel leaves it to the next to tell again, under the same id
      const twice = [...told.taken()].filter(([, heard]) => new Set(heard.map(({ life }) => life)).size < heard.length)
      t.same(twice, [], 'one life of the gateway tells nothing again that was taken')
      t.comment(`${[...told.taken().values()].filter(({ length }) => length > 1).length} were told again after a crash`)
    })

    await t.test('what does not wait any more is shown so where a format replaces', async (t) => {
      const items = (await call('GET', '/inbox?limit=200')).json as InboxItem[]
      const open = new Set(items.map(({ request }) => request.id))
      const stale = () => {
        const last = new Map<string, Heard>()
        for (const one of told.heard) if (one.taken && one.tag !== undefined) last.set(`${one.channel} ${one.tag}`, one)
        return asked().flatMap(({ sessionId, request }) =>
          ['phone', 'browser'].flatMap((channel) => {
            const shown = last.get(`${channel} ${tagOfRequest(sessionId, request!.id)}`)?.type
            const expected = open.has(request!.id) ? 'permission_requested' : 'permission_resolved'
            return shown === expected ? [] : `${channel} shows ${shown} of ${sessionId} ${request!.id}`
          }),
        )
      }
      await until(() => stale().length === 0, 'the last word').catch(() => t.same(stale(), []))
    })

    await t.test('who followed has seen all that is kept, each once', async (t) => {
      await readOn()
      const ids = feed.map(({ id }) => id)
      for (const follower of followers) {
        await until(() => follower.seen.length >= ids.length, 'everything that is kept')
        t.same(
          follower.seen.slice(0, ids.length).map(({ id }) => id),
          ids,
          follower.constructor.name,
        )
      }
      const places = feed.map(({ sessionId, seq }) => `${sessionId}:${seq}`)
      t.equal(new Set(places).size, places.length, 'no event is told twice')
      t.same(found(), [])
    })
    daemon.child.kill('SIGTERM')
    t.match(await daemon.exited, { code: 0 })
    await Promise.all(following)
  },
)
