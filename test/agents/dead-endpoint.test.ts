import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { cliEngine } from '../../src/engines/cli/index.js'
import { createWorkerServer } from '../../src/server.js'
import { attach } from '../fixtures/client.js'
import { processesOf } from '../fixtures/processes.js'
import { AGENTS, type AgentUnderTest } from './installed.js'
import { startVendors } from './vendors.js'

/** Nobody listens there. */
const NOWHERE = 'http://127.0.0.1:9'

t.test(
  'gemini, whose model is not there: that is told, an interrupt ends the turn, and the session goes on',
  { skip: AGENTS.gemini.missing ?? false },
  async (t) => {
    const agent: AgentUnderTest = AGENTS.gemini
    const vendors = await startVendors(t)
    const home = realpathSync(mkdtempSync(join(tmpdir(), 'dead-endpoint-')))
    const cwd = join(home, 'work')
    mkdirSync(cwd)
    for (const [path, text] of Object.entries(agent.files(NOWHERE))) {
      mkdirSync(dirname(join(home, path)), { recursive: true })
      writeFileSync(join(home, path), text)
    }
    // As sessions start again each takes up the environment that is then there.
    const env = { PATH: process.env.PATH!, HOME: home, ...agent.env(home, NOWHERE) }
    const worker = createWorkerServer(
      {
        allowUnauthenticated: true,
        profiles: [{ name: 'gemini', engine: 'cli', agent: 'gemini' }],
        agents: [agent.declaration],
      },
      { createCliRunner: cliEngine({ agents: [agent.declaration], env }), env: {} },
    )
    t.teardown(() => worker.close())
    const api = `${(await worker.listen(0)).url}/v1`
    const response = await fetch(`${api}/sessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cwd }),
    })
    const { id } = (await response.json()) as { id: string }
    const client = await attach(t, api, id)
    const ends = () => client.events.filter((event) => event.type === 'turn_completed')
    await client.untilEvent('system_init')
    client.send({ type: 'user_message', text: 'hello' })
    await client.until(({ events }) => JSON.stringify(events).includes('agent_silent'))
    const pids = processesOf(id)
    client.send({ type: 'interrupt' })
    await client.until(() => ends().length === 1)
    t.match(ends(), [{ subtype: 'interrupted', isError: false }])
    t.notOk(
      processesOf(id).some((pid) => pids.includes(pid)),
      'what did not listen is gone',
    )
    Object.assign(env, agent.env(home, vendors.url))
    client.send({ type: 'user_message', text: 'hello again' })
    await client.until(() => ends().length === 2)
    t.match(ends()[1], { subtype: 'success', result: /pong/ })
    t.notOk(client.events.some(({ type }) => type === 'session_error'))
  },
)
