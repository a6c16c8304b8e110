import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { callsTo } from '../fixtures/calls.js'
import { each, shuffled } from '../fixtures/many.js'
import { AGENTS, CLAUDE_SDK } from './installed.js'
import { script, startVendors } from './vendors.js'

const GATEWAY = fileURLToPath(new URL('../fixtures/claude-gateway.ts', import.meta.url))
const SESSIONS = 10
/** Each is a process of two hundred megabytes. */
const AT_ONCE = 2

async function buildPlace(t: Test) {
  const vendors = await startVendors(t)
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'claude-crash-')))
  const cwd = join(home, 'work')
  const dir = join(home, 'parked')
  for (const folder of [cwd, join(home, 'claude')]) mkdirSync(folder)
  const env = { PATH: process.env.PATH!, HOME: home, ...AGENTS.claude.env(home, vendors.url) }
  const start = async () => {
    const child = fork(GATEWAY, [JSON.stringify({ dir, claudeSdk: CLAUDE_SDK, env })])
    t.teardown(() => void child.kill('SIGKILL'))
    const [url] = (await once(child, 'message')) as [string]
    const call = callsTo(`${url}/v1`)
    return {
      create: async (prompt: string): Promise<SessionInfo> =>
        (await call('POST', '/sessions', { cwd, prompt, permissionMode: 'default' })).json,
      deliver: (executionId: string, value: string) =>
        call('POST', `/executions/${executionId}/result`, { status: 'ok', output: { type: 'text', value } }),
      /** Asks now and then, until it has come to that. */
      status: async (id: string, wanted: string): Promise<SessionInfo> => {
        for (;;) {
          const { json } = await call('GET', `/sessions/${id}`)
          if (json.status === wanted) return json
          if (json.status === 'failed') throw new Error(json.statusDetail)
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      },
      events: async (id: string): Promise<SessionEvent[]> => (await call('GET', `/sessions/${id}/events`)).json.events,
      kill: async () => {
        child.kill('SIGKILL')
        await once(child, 'exit')
      },
    }
  }
  return { vendors, start, records: () => readdirSync(dir).filter((name) => name.endsWith('.json')) }
}

t.test(
  `killed with ${SESSIONS} sessions of the real claude parked: all wake with their results`,
  { skip: AGENTS.claude.missing ?? false },
  async (t) => {
    const { vendors, start, records } = await buildPlace(t)
    const first = await start()
    const before: { info: SessionInfo; events: SessionEvent[] }[] = []
    await each(
      Array.from({ length: SESSIONS }, (_, index) => index),
      AT_ONCE,
      async (index) => {
        const call = { tool: 'mcp__session-gateway__deploy', input: { branch: `branch-${index}` } }
        const { id } = await first.create(script(call, { text: `Finished ${index}.` }))
        const info = await first.status(id, 'parked')
        before.push({ info, events: await first.events(id) })
      },
    )
    t.equal(vendors.calls(), SESSIONS)
    await first.kill()
    t.equal(records().length, SESSIONS)

    const second = await start()
    await each(shuffled(before), AT_ONCE, async ({ info, events }) => {
      const { id } = info
      const executionId = info.parked!.executions[0]!.executionId
      const { json } = await second.deliver(executionId, `result of ${id}`)
      t.same(json, { applied: true, sessionId: id })
      const after = await second.status(id, 'idle')
      t.ok(after.lastSeq > info.lastSeq)
      const log = await second.events(id)
      t.same(log.slice(0, events.length), events, 'the same log goes on')
      t.ok(log.every(({ seq }, at) => at === 0 || seq > log[at - 1]!.seq))
      const ends = log.flatMap((event) => (event.type === 'turn_completed' ? [event] : []))
      t.match(ends, [{ subtype: 'success', result: /^Finished \d\.$/, usage: { inputTokens: 2000 } }])
      t.equal((await second.deliver(executionId, 'again')).json.applied, false)
    })
    t.equal(vendors.calls(), 2 * SESSIONS, 'no model was asked twice for the same')
    for (const { info } of before) {
      const seen = vendors.asked.filter(({ body }) => body.includes(`result of ${info.id}`))
      t.equal(seen.length, 1, 'each result was seen once')
      t.equal(seen[0]!.body.split(`result of ${info.id}`).length, 2)
    }
    while (records().length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  },
)
