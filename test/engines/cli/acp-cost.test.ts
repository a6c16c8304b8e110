import { chmodSync, mkdtempSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { SessionCost } from '../../../src/engines/cli/acp/cost.js'
import { cliEngine } from '../../../src/engines/cli/index.js'
import { processesOf, whenGone } from '../../fixtures/processes.js'
import { ScriptedHost } from '../../fixtures/scripted-host.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'

/** A later process of the same agent, which goes on with its session. */
const successor = (cost: SessionCost) => new SessionCost(JSON.parse(JSON.stringify(cost.state)))

t.test('what the agent’s session had cost is not counted again by each process that goes on with it', (t) => {
  let cost = new SessionCost({ costUsd: 0, agentCostUsd: 0 })
  for (let turn = 1; turn <= 5; turn++) {
    cost.told(turn * 0.25, false)
    t.equal(cost.totalUsd, turn * 0.25)
    cost = successor(cost)
  }
  t.end()
})

t.test('a session that goes on with somebody else’s counts what it cost itself', (t) => {
  const known = new SessionCost({ costUsd: 0 })
  known.startFrom(2)
  known.told(2.5, false)
  t.equal(known.totalUsd, 0.5)
  const replayed = new SessionCost({ costUsd: 0 })
  replayed.told(2, true)
  replayed.told(2.5, false)
  t.equal(replayed.totalUsd, 0.5)
  const unknown = new SessionCost({ costUsd: 0 })
  unknown.told(2.5, false)
  unknown.told(3, false)
  t.equal(unknown.totalUsd, 0.5, 'never more than it cost')
  t.end()
})

t.test('an agent that counts anew in each process is added up', (t) => {
  const first = new SessionCost({ costUsd: 0, agentCostUsd: 0 })
  first.told(0.5, false)
  const second = successor(first)
  second.told(0.25, false)
  t.equal(second.totalUsd, 0.75)
  t.end()
})

t.test('a cost that an earlier version wrote down is where it goes on from', (t) => {
  const cost = new SessionCost({ costUsd: 1.5 })
  cost.told(2, false)
  cost.told(2.25, false)
  t.equal(cost.totalUsd, 1.75)
  t.end()
})

t.test('who is closed while it asks what a session had cost leaves nobody behind who asks on', async (t) => {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acp-cost-')))
  const agent = fileURLToPath(new URL('../../fixtures/scripted-acp-agent.mjs', import.meta.url))
  const command = join(cwd, 'opencode')
  // it never says what it had cost
  writeFileSync(command, `#!/bin/sh\n[ "$1" = export ] && exec sleep 600\nexec '${process.execPath}' '${agent}'\n`)
  chmodSync(command, 0o700)
  const sessionId = crypto.randomUUID()
  const env = { PATH: process.env.PATH }
  const runner = await cliEngine({ agents: [{ name: 'opencode', command }], env, clock: new VirtualClock() })({
    ...{ sessionId, config: { cwd, resume: 'earlier' } },
    profile: { name: 'p', engine: 'cli', agent: 'opencode' },
    bridge: { execute: () => Promise.reject(new Error('not here')) },
  })
  const starting = runner.start(new ScriptedHost()).catch(() => {})
  while (processesOf(sessionId).length < 2) await sleep(10)
  const asking = processesOf(sessionId)
  await runner.close()
  for (const pid of asking) await whenGone(pid)
  await starting
  t.strictSame(processesOf(sessionId), [])
})

t.test('a text that cannot be an argument is asked about as an id, and harms nobody', async (t) => {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acp-cost-')))
  const agent = fileURLToPath(new URL('../../fixtures/scripted-acp-agent.mjs', import.meta.url))
  const command = join(cwd, 'opencode')
  writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${agent}'\n`)
  chmodSync(command, 0o700)
  for (const resume of ['no\0id', 'x'.repeat(200_000)]) {
    const runner = await cliEngine({ agents: [{ name: 'opencode', command }], env: { PATH: process.env.PATH } })({
      ...{ sessionId: crypto.randomUUID(), config: { cwd, resume } },
      profile: { name: 'p', engine: 'cli', agent: 'opencode' },
      bridge: { execute: () => Promise.reject(new Error('not here')) },
    })
    await t.resolves(runner.start(new ScriptedHost()), 'what it means is the agent’s to say')
    await runner.close()
  }
})

t.test('what a session had cost is asked where nobody else writes, and nothing of that place is trusted', async (t) => {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acp-cost-')))
  const agent = fileURLToPath(new URL('../../fixtures/scripted-acp-agent.mjs', import.meta.url))
  const command = join(cwd, 'opencode')
  const asked = `[ "$1" = export ] && { pwd; echo "$OPENCODE_PURE"; } > ${cwd}/asked && echo '"cost": 2' && exit`
  writeFileSync(command, `#!/bin/sh\n${asked}\nexec '${process.execPath}' '${agent}'\n`)
  chmodSync(command, 0o700)
  const runner = await cliEngine({ agents: [{ name: 'opencode', command }], env: { PATH: process.env.PATH } })({
    ...{ sessionId: crypto.randomUUID(), config: { cwd, resume: 'earlier' } },
    profile: { name: 'p', engine: 'cli', agent: 'opencode', trustWorkspace: true },
    bridge: { execute: () => Promise.reject(new Error('not here')) },
  })
  t.teardown(() => runner.close())
  await runner.start(new ScriptedHost())
  const [place, pure] = readFileSync(join(cwd, 'asked'), 'utf8').split('\n')
  t.equal(statSync(place!).mode & 0o777, 0o700)
  t.equal(pure, '1')
})
