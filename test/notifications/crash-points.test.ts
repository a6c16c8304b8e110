import t, { type Test } from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { echo } from '../fixtures/journaled.js'
import { lived, mortal } from '../fixtures/mortal-storage.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

const TOLD: ReadonlySet<string> = new Set(['permission_requested', 'turn_completed', 'session_error', 'session_closed'])

/** @returns how many writes there were */
async function dieAt(t: Test, last: number, isDone: boolean): Promise<number> {
  const sink = await WebhookSink.start(t)
  const storage = createMemoryStorage()
  const options = { script: echo(), notifications: { webhook: { url: sink.url } } }
  const { view, dead, operations } = mortal(storage, { last, isDone, parts: ['journal', 'outbox'] })
  const first = await buildGateway(t, { storage: view, ...options })
  const { registry } = first
  let deleted = false
  await lived(first, dead, async (until) => {
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
    await until(async () => (await registry.get(id))?.status === 'idle')
    await registry.send(id, { type: 'user_message', text: 'second' })
    await until(async () => (await registry.get(id))?.numTurns === 2 && (await registry.get(id))?.status === 'idle')
    await registry.close(id, 'client')
    deleted = true
    await until(async () => (await storage.outbox.list()).length === 0)
  })
  const at = `${isDone ? 'after' : 'before'} write ${last}`

  const next = await buildGateway(t, { storage, ...options })
  await until(async () => (await storage.outbox.list()).length === 0, `${at}: an empty outbox`)
  const ids = new Set(sink.received.map(({ headers }) => headers['webhook-id']))
  const [left] = await storage.journal.list()
  if (left) {
    t.notOk(deleted, `${at}: what was deleted stays away`)
    const events = await storage.journal.read(left.id, 0, Number.MAX_SAFE_INTEGER, 1e9)
    for (const { json } of events) {
      const { type, seq } = JSON.parse(String(json)) as SessionEvent
      if (TOLD.has(type)) t.ok(ids.has(`${left.id}:${seq}`), `${at}: ${type} was told`)
    }
  } else if ((await next.registry.list()).length === 0 && sink.received.length > 0) {
    const closed = sink.received.filter(({ body }) => body.type === 'session_closed')
    t.equal(new Set(closed.map(({ headers }) => headers['webhook-id'])).size, 1, `${at}: its end was told`)
    t.match(closed[0]?.body, { reason: 'client', session: { status: 'closed', numTurns: 2 } })
    t.equal(ids.size, 3, `${at}: two turns and an end`)
  }
  await next.gateway.close()
  return operations()
}

t.test(
  'a process that is killed at any write: what is in the log is told, and the end of what was deleted',
  async (t) => {
    const total = await dieAt(t, Number.POSITIVE_INFINITY, true)
    t.ok(total > 8, `${total} writes`)
    for (let last = 1; last <= total; last++) for (const isDone of [false, true]) await dieAt(t, last, isDone)
  },
)
