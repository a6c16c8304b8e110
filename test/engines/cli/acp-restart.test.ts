import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { cliEngine } from '../../../src/engines/cli/index.js'
import type { WorkerServerOptions } from '../../../src/options.js'
import { createWorkerServer } from '../../../src/server.js'
import { until } from '../../fixtures/build.js'
import { attach } from '../../fixtures/client.js'
import { eventsOf, testStorage } from '../../fixtures/journaled.js'
import { processesOf } from '../../fixtures/processes.js'

const AGENT = fileURLToPath(new URL('../../fixtures/scripted-acp-agent.mjs', import.meta.url))
const LOST = { type: 'engine_event', payload: { type: 'history_lost' } }

/** Gateways on one storage, one after the other. */
function build(t: Test, env: Record<string, string>, options: Partial<WorkerServerOptions> = {}) {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acp-restart-')))
  const storage = testStorage()
  const start = async (more: Record<string, string> = {}) => {
    const how = { command: process.execPath, args: [AGENT], env: { ...env, ...more }, modes: { default: 'ask' } }
    const agents = [{ name: 'scripted', ...how }]
    const worker = createWorkerServer(
      { allowUnauthenticated: true, profiles: [{ name: 'scripted', agent: 'scripted' }], agents, storage, ...options },
      { createCliRunner: cliEngine({ agents }), env: {} },
    )
    t.teardown(() => worker.close())
    const api = `${(await worker.listen(0)).url}/v1`
    const create = async () => {
      const response = await fetch(`${api}/sessions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cwd }),
      })
      return ((await response.json()) as { id: string }).id
    }
    const send = (id: string, text: string) => worker.registry.send(id, { type: 'user_message', text })
    const events = (id: string) => eventsOf(worker, id)
    /** Takes a turn. @returns the log after it */
    const turn = async (id: string, text: string) => {
      const client = await attach(t, api, id)
      await client.untilFrame('synced')
      const ends = () => client.events.filter(({ type }) => type === 'turn_completed').length
      const before = ends()
      client.send({ type: 'user_message', text })
      await client.until(() => ends() > before)
      client.socket.terminate()
      return client.events
    }
    const setModel = (id: string, model?: string) =>
      worker.registry.send(id, { type: 'set_model', ...(model !== undefined && { model }) })
    return {
      create,
      turn,
      close: () => worker.close(),
      get: (id: string) => worker.registry.get(id),
      send,
      setModel,
      events,
    }
  }
  return { start }
}

t.test('a session of an agent that loads its sessions goes on after a restart', async (t) => {
  const { start } = build(t, {})
  const first = await start()
  const id = await first.create()
  await first.turn(id, 'hi')
  await first.close()
  t.strictSame(processesOf(id), [])
  const events = await (await start()).turn(id, JSON.stringify([{ tell: 'request' }]))
  t.match(events.at(-1), { type: 'status_changed', status: 'idle' })
  t.match(
    events.find((event) => event.type === 'turn_completed' && event.numTurns === 2),
    { result: /"sessionId":"scripted-session"/ },
    'it was loaded',
  )
  t.match(
    events.findLast((event) => event.type === 'capabilities'),
    { models: [{ value: 'small' }, { value: 'large' }], commands: [{ name: 'tidy' }] },
    'both what it told before it was loaded and after',
  )
  t.notOk(events.some((event) => 'replay' in event))
  t.notOk(events.some((event) => event.type === 'engine_event'))
})

const executions = { tools: [{ name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }] }

t.test('a tool that is declared takes neither its release nor its restart from such a session', async (t) => {
  const { start } = build(t, {}, { executions, idleReleaseMs: 1 })
  const first = await start()
  const id = await first.create()
  await first.turn(id, 'hi')
  await until(() => processesOf(id).length === 0, 'the agent of the idle session gone')
  t.match(await first.get(id), { status: 'idle' })
  await first.turn(id, 'hi')
  await first.close()
  const events = await (await start()).turn(id, JSON.stringify([{ tell: 'request' }]))
  const { result = '' } = events.findLast((event) => event.type === 'turn_completed') ?? {}
  t.match(JSON.parse(result), { sessionId: 'scripted-session', mcpServers: [{ name: 'session-gateway' }] }, 'loaded')
  t.notOk(events.some((event) => event.type === 'engine_event'))
})

t.test('one whose agent has lost it says so once, and what to do', async (t) => {
  const { start } = build(t, {})
  const first = await start()
  const id = await first.create()
  await first.turn(id, 'hi')
  await first.close()
  const second = await start({ ACP_FORGETS: '1' })
  await t.rejects(second.send(id, 'hi'), { code: 'SG_ERR_AGENT_STATE_GONE' })
  t.match(await second.get(id), { status: 'failed', statusDetail: /Create a new session/ })
  await t.rejects(second.send(id, 'hi'), { code: 'SG_ERR_SESSION_ENDED' })
  t.match(
    (await second.events(id)).filter(({ type }) => type === 'session_error'),
    [{ code: 'SG_ERR_AGENT_STATE_GONE', message: /Create a new session/ }],
  )
})

t.test('one of an agent that loads none is begun anew, and says so', async (t) => {
  const { start } = build(t, { ACP_NO_LOAD: '1' })
  const first = await start()
  const id = await first.create()
  await first.turn(id, 'hi')
  await first.close()
  const second = await start()
  const events = await second.turn(id, 'hi')
  t.match(
    events.filter(({ type }) => type === 'engine_event'),
    [LOST],
  )
  await second.close()
  const again = (await (await start()).turn(id, 'hi')).filter(({ type }) => type === 'engine_event')
  t.match(again, [LOST, LOST], 'each time')
})

t.test('what the agent calls the session is its title, also after a restart, until the host gives one', async (t) => {
  const { start } = build(t, {})
  const first = await start()
  const id = await first.create()
  const title = { raw: { sessionUpdate: 'session_info_update', title: 'A better\nname' } }
  await first.turn(id, JSON.stringify([title, title]))
  t.equal((await first.get(id))?.title, 'A better name')
  const told = (await first.events(id)).filter((event) => event.type === 'engine_event')
  t.match(told, [{ payload: { type: 'title_changed', title: 'A better\nname' } }])
  t.equal(told.length, 1, 'told once')
  await first.close()
  const second = await start()
  t.equal((await second.get(id))?.title, 'A better name')
  await second.turn(id, JSON.stringify([title]))
  t.equal((await second.events(id)).filter((event) => event.type === 'engine_event').length, 1, 'and not again')
})

t.test(
  'no model is the one that the agent chose by itself, also where it loads a session with another one',
  async (t) => {
    const { start } = build(t, {})
    const first = await start()
    const id = await first.create()
    await first.turn(id, 'hi')
    await first.setModel(id, 'large')
    await first.turn(id, 'hi')
    await first.close()
    const second = await start({ ACP_LOADED_MODEL: 'large' })
    await second.turn(id, 'again')
    t.match(await second.get(id), { model: 'large' })
    await second.setModel(id)
    t.match(await second.get(id), { model: 'small' })
    await second.close()
    const third = await start({ ACP_LOADED_MODEL: 'small' })
    await third.turn(id, 'once more')
    t.match(await third.get(id), { model: 'small' })
  },
)
