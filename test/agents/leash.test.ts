import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { AgentGatewayOptions } from '../fixtures/agent-gateway.js'
import { attach } from '../fixtures/client.js'
import { isRunning, processesOf, whenGone } from '../fixtures/processes.js'
import { AGENTS, type AgentUnderTest, CLAUDE_SDK } from './installed.js'
import { script, startVendors } from './vendors.js'

const GATEWAY = fileURLToPath(new URL('../fixtures/agent-gateway.ts', import.meta.url))

for (const agent of Object.values(AGENTS) as AgentUnderTest[])
  t.test(
    `${agent.name} and its shell end with a gateway that is killed`,
    { skip: agent.missing ?? false },
    async (t) => {
      const vendors = await startVendors(t)
      const home = realpathSync(mkdtempSync(join(tmpdir(), `${agent.name}-leash-`)))
      const cwd = join(home, 'work')
      mkdirSync(cwd)
      for (const [path, text] of Object.entries(agent.files(vendors.url))) {
        mkdirSync(dirname(join(home, path)), { recursive: true })
        writeFileSync(join(home, path), text)
      }
      const options: AgentGatewayOptions = {
        ...{ path: join(home, 'gateway.db'), agent: agent.declaration, claudeSdk: CLAUDE_SDK },
        env: { PATH: process.env.PATH!, HOME: home, ...agent.env(home, vendors.url) },
      }
      const gateway = fork(GATEWAY, [JSON.stringify(options)])
      t.teardown(() => void gateway.kill('SIGKILL'))
      const [url] = (await once(gateway, 'message')) as [string]
      const post = async (path: string, body: object) => {
        const headers = { 'content-type': 'application/json' }
        const response = await fetch(`${url}/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
        return (await response.json()) as { id: string }
      }
      const { id } = await post('/sessions', { cwd })
      const client = await attach(t, `${url}/v1`, id)
      const shell = agent.shell('echo $$ > shell.pid; while :; do sleep 0.2; done')
      client.send({ type: 'user_message', text: script({ text: 'working', ...shell }, { text: 'done' }) })
      await client.untilEvent('permission_requested')
      const asked = client.events.find((event) => event.type === 'permission_requested')
      if (asked?.type !== 'permission_requested') throw new Error('unreachable')
      await post(`/sessions/${id}/permissions/${asked.request.id}`, { behavior: 'allow' })
      const file = join(cwd, 'shell.pid')
      while (!existsSync(file) || readFileSync(file, 'utf8') === '') await sleep(10)
      const working = Number(readFileSync(file, 'utf8'))
      t.ok(isRunning(working))
      const pids = processesOf(id, gateway.pid)
      gateway.kill('SIGKILL')
      const killedAt = performance.now()
      for (const pid of [working, ...pids]) await whenGone(pid)
      t.comment(`gone after ${Math.round(performance.now() - killedAt)} ms`)
      t.strictSame(processesOf(id, gateway.pid), [])
    },
  )
