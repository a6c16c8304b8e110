import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { connectAcp } from '../../../src/engines/cli/acp/connection.js'
import { AgentProcess } from '../../../src/engines/cli/process.js'

t.test('an agent that is read again as its connection breaks harms nobody', async (t) => {
  const script = 'echo unread; echo said >&2; exec sleep 600'
  const agent = new AgentProcess({
    command: '/bin/sh',
    args: ['-c', script],
    cwd: '/',
    env: { PATH: process.env.PATH },
  })
  t.teardown(() => agent.stop(0))
  const { stdin, stdout, stderr } = agent.child
  const connection = connectAcp(agent, { onPermission: () => Promise.reject(), onUpdate: () => {} })
  let isRead = () => {}
  agent.leaveUnread(new Promise((resolve) => (isRead = resolve)))
  await once(stderr, 'data')
  while (stdout.readableLength === 0) await new Promise(setImmediate)
  stdin.destroy()
  await once(stdin, 'close')
  isRead()
  await connection.agent.notify('session/cancel', { sessionId: 's' }).catch(() => {})
  await connection.closed
  await new Promise(setImmediate)
  t.ok(stdout.destroyed)
})

const SAID_ENOUGH = 32 * 1024 ** 2

for (const [what, line] of [
  ['what is no message', `DEBUG ${'x'.repeat(1000)}`],
  [
    'requests',
    JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'terminal/create', params: { output: 'x'.repeat(1000) } }),
  ],
] as const)
  t.test(`an agent that says ${what} without end, and reads nothing, is not read on`, async (t) => {
    const agent = new AgentProcess({
      ...{ command: '/bin/sh', args: ['-c', `exec yes '${line}'`], cwd: '/' },
      env: { PATH: process.env.PATH },
    })
    t.teardown(() => agent.stop(0))
    const connection = connectAcp(agent, { onPermission: () => Promise.reject(), onUpdate: () => {} })
    const stdout = agent.child.stdout as Socket
    while (!stdout.isPaused() && stdout.bytesRead < SAID_ENOUGH) await new Promise(setImmediate)
    t.ok(stdout.isPaused())
    await agent.stop(0)
    await connection.closed
  })
