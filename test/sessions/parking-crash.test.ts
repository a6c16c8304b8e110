import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { callsTo } from '../fixtures/calls.js'
import { forkCompiled } from '../fixtures/compiled.js'
import { each, shuffled } from '../fixtures/many.js'
import { ok } from '../fixtures/parked.js'
import { rounds } from '../fixtures/rounds.js'

const SESSIONS = rounds(150, 1_000)
const AT_ONCE = 40

function buildPlace(t: Test) {
  const dir = join(t.testdir(), 'parked')
  const seenFile = join(t.testdir({ 'seen.txt': '' }), 'seen.txt')
  const start = async () => {
    const child = forkCompiled('test/fixtures/parking-process.ts', [dir, seenFile])
    t.teardown(() => void child.kill('SIGKILL'))
    const [url] = (await once(child, 'message')) as [string]
    const call = callsTo(`${url}/v1`)
    const list = async (): Promise<SessionInfo[]> => {
      const all: SessionInfo[] = []
      for (let path: string | undefined = '/sessions?limit=200'; path; ) {
        const { json, headers } = await call('GET', path)
        all.push(...json)
        path = /<\/v1([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
      }
      return all
    }
    return {
      list,
      deliver: (id: string) => call('POST', `/executions/${id}-e/result`, ok),
      create: () => call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' }),
      events: async (id: string): Promise<SessionEvent[]> => (await call('GET', `/sessions/${id}/events`)).json.events,
      kill: async () => {
        child.kill('SIGKILL')
        await once(child, 'exit')
      },
    }
  }
  type Gateway = Awaited<ReturnType<typeof start>>
  const park = async (gateway: Gateway) => {
    await each(Array.from({ length: SESSIONS }), AT_ONCE, () => gateway.create())
    let parked: SessionInfo[] = []
    await until(async () => {
      parked = (await gateway.list()).filter(({ status }) => status === 'parked')
      return parked.length === SESSIONS
    })
    return parked
  }
  return {
    start,
    park,
    seen: () => readFileSync(seenFile, 'utf8').split('\n').slice(0, -1),
    forgetSeen: () => writeFileSync(seenFile, ''),
    records: () => readdirSync(dir).filter((name) => name.endsWith('.json')),
  }
}

t.test(`killed with ${SESSIONS} sessions parked: all wake with their results, and their logs go on`, async (t) => {
  const { start, park, seen, records } = buildPlace(t)
  const first = await start()
  const before = await park(first)
  const sample = shuffled(before).slice(0, 20)
  const logs = new Map<string, SessionEvent[]>()
  for (const { id } of sample) logs.set(id, await first.events(id))
  await first.kill()

  const second = await start()
  const lasting = ({ id, lastSeq, status, title, createdAt, parked }: SessionInfo) => ({
    ...{ id, lastSeq, status, title, createdAt, parked },
  })
  // of those that were created in the same millisecond nobody knows any more which came first
  const byAge = (a: SessionInfo, b: SessionInfo) => b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1)
  const adopted = await second.list()
  t.same(adopted.toSorted(byAge).map(lasting), before.toSorted(byAge).map(lasting), 'the same sessions')
  t.same(
    adopted.map(({ createdAt }) => createdAt),
    before.map(({ createdAt }) => createdAt),
    'newest first',
  )
  const wrong: unknown[] = []
  await each(shuffled(before), AT_ONCE, async ({ id }) => {
    const { status, json } = await second.deliver(id)
    if (status !== 200 || json.applied !== true || json.sessionId !== id) wrong.push({ id, status, json })
  })
  t.same(wrong, [])
  let after: SessionInfo[] = []
  await until(async () => {
    after = await second.list()
    return after.every(({ status }) => status === 'idle')
  })
  const lastSeqs = new Map(before.map(({ id, lastSeq }) => [id, lastSeq]))
  t.ok(after.every(({ id, lastSeq }) => lastSeq > lastSeqs.get(id)!))
  t.equal(seen().length, SESSIONS)
  t.equal(new Set(seen()).size, SESSIONS, 'each result was seen once')
  for (const [id, events] of logs) {
    const log = await second.events(id)
    t.same(log.slice(0, events.length), events)
    t.same(
      log.map(({ seq }) => seq),
      log.map((_, index) => index + 1),
    )
  }
  await until(() => records().length === 0, 'the checkpoints')
})

t.test('killed while results come in: none that was confirmed is lost', async (t) => {
  const { start, park, seen } = buildPlace(t)
  const first = await start()
  const sessions = await park(first)
  const confirmed = new Set<string>()
  let killed: Promise<void> | undefined
  await each(shuffled(sessions), AT_ONCE, async ({ id }) => {
    if (killed) return
    const answer = await first.deliver(id).catch(() => undefined)
    if (answer?.json.applied) confirmed.add(id)
    if (confirmed.size >= SESSIONS / 2) killed ??= first.kill()
  })
  await killed
  const seenBefore = new Set(seen())

  const second = await start()
  // nothing is delivered again: what was confirmed is the gateway's to carry on with
  await until(async () => (await second.list()).every(({ status }) => status === 'parked' || status === 'idle'))
  await until(() => [...confirmed].every((id) => seen().includes(`${id}-e`)), 'every confirmed result')
  const wrong: unknown[] = []
  await each(sessions, AT_ONCE, async ({ id }) => {
    const { status, json } = await second.deliver(id)
    const fresh = !seenBefore.has(`${id}-e`) && !confirmed.has(id)
    if (!fresh && status === 200 && json.applied) wrong.push({ id, status, json })
    if (fresh && status !== 200) wrong.push({ id, status, json })
  })
  t.same(wrong, [])
  await until(() => new Set(seen()).size === SESSIONS, 'every result')
  const counts = new Map<string, number>()
  for (const line of seen()) counts.set(line, (counts.get(line) ?? 0) + 1)
  t.ok([...counts.values()].every((count) => count <= 2))
  const twice = [...counts.values()].filter((count) => count === 2).length
  t.ok(twice <= 2 * AT_ONCE, `${twice} were seen twice: those that no checkpoint had confirmed`)
})
