import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import WebSocket from 'ws'
import type { SessionEvent } from '../../schemas/events.js'
import type { NotificationsFrame, SessionNotification } from '../../schemas/notifications.js'
import { until } from '../fixtures/build.js'
import { CrashLoad } from '../fixtures/crash-load.js'
import { type Call, CrashOracle } from '../fixtures/crash-oracle.js'
import { DEMO, runDaemon } from '../fixtures/daemon-process.js'
import { rounds } from '../fixtures/rounds.js'

const ROUNDS = rounds(3, 100)
const CLIENTS = 4
const TOLD: ReadonlySet<string> = new Set(['permission_requested', 'turn_completed', 'session_error', 'session_closed'])

t.test(`the feed of a daemon that is killed ${ROUNDS} times under load has no hole and no repeat`, async (t) => {
  const cwd = t.testdir({ work: {} })
  const config = {
    listen: { port: 0 },
    allowUnauthenticated: true,
    allowedCwdRoots: ['work'],
    profiles: [DEMO],
    notifications: { retention: { maxCount: 1_000_000 } },
    executions: { tools: [{ name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }] },
    log: { level: 'warn', pretty: false },
  }
  writeFileSync(join(cwd, 'gateway.json'), JSON.stringify(config), { mode: 0o600 })
  const oracle = new CrashOracle(() => Promise.reject(new TypeError('not started')))
  let url = ''
  const start = async () => {
    const daemon = runDaemon(t, ['--log-level', 'info'], { cwd })
    url = String((await daemon.logged('listening')).url)
    const call: Call = async (method, path, body, headers = {}) => {
      const answer = await fetch(url + path, {
        method,
        headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, json: await answer.json(), link: answer.headers.get('link') }
    }
    oracle.call = call
    return daemon
  }

  const seen: SessionNotification[] = []
  const faults: string[] = []
  let first: string | undefined
  let last: string | undefined
  /** Follows until the connection is lost, and knows where it was. */
  const follow = () =>
    new Promise<void>((resolve) => {
      const place = last === undefined ? '' : `?after=${encodeURIComponent(last)}`
      const socket = new WebSocket(`${url.replace('http', 'ws')}/notifications/ws${place}`)
      socket.on('error', () => {})
      socket.on('close', () => resolve())
      socket.on('message', (data) => {
        const frame = JSON.parse(data.toString()) as NotificationsFrame
        if (frame.type === 'notifications_attached') {
          if (frame.truncated) faults.push(`something is missing after ${last}`)
          first ??= frame.after
          last ??= frame.after
        } else if (frame.type === 'notification') {
          const { id } = frame.notification
          if (last !== undefined && id <= last) faults.push(`${id} came after ${last}`)
          last = id
          seen.push(frame.notification)
        }
      })
    })

  for (let round = 1; round <= ROUNDS; round++) {
    const daemon = await start()
    const following = follow()
    await oracle.askAgain()
    const load = new CrashLoad(oracle, { cwd: join(cwd, 'work'), webhook: '' }, Math.random)
    await load.warmUp()
    const clients = Array.from({ length: CLIENTS }, () => load.run())
    await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 500))
    daemon.child.kill('SIGKILL')
    await Promise.all([...clients, daemon.exited, following])
    t.same(faults, [], `round ${round}`)
    if (faults.length > 0) return
  }

  const daemon = await start()
  const following = follow()
  const all: SessionNotification[] = []
  for (let after = first!; ; after = all.at(-1)!.id) {
    const { json } = await oracle.call('GET', `/notifications?after=${encodeURIComponent(after)}`)
    if ((json as unknown as object[]).length === 0) break
    all.push(...(json as unknown as SessionNotification[]))
  }
  await until(() => seen.length >= all.length, 'everything that is kept')
  t.same(
    seen.slice(0, all.length).map(({ id }) => id),
    all.map(({ id }) => id),
    'who followed has seen all that is kept',
  )
  const places = all.map(({ sessionId, seq }) => `${sessionId}:${seq}`)
  t.equal(new Set(places).size, places.length, 'no event is told twice')
  const told = new Set(places)
  let events = 0
  for (const [id, { deleted }] of oracle.sessions) {
    if (deleted !== 'no') continue
    const { status, json } = await oracle.call('GET', `/sessions/${id}/events?limit=1000`)
    if (status !== 200) continue
    for (const { type, seq } of (json as unknown as { events: SessionEvent[] }).events)
      if (TOLD.has(type)) {
        events++
        if (!told.has(`${id}:${seq}`) && !seen.some((one) => one.sessionId === id && one.seq === seq))
          faults.push(`${type} ${seq} of ${id} was not told`)
      }
  }
  t.same(faults, [])
  t.ok(events > ROUNDS, `${events} events of ${oracle.sessions.size} sessions, ${all.length} notifications`)
  daemon.child.kill('SIGTERM')
  t.match(await daemon.exited, { code: 0 })
  await following
})
