import { existsSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { until } from '../fixtures/build.js'
import { startDaemon } from '../fixtures/daemon-process.js'
import { leashOf, processesOf, whenGone, whenStopped } from '../fixtures/processes.js'

const AGENT = fileURLToPath(new URL('../fixtures/scripted-acp-agent.mjs', import.meta.url))
const CONFIG = {
  agents: [{ name: 'scripted', command: process.execPath, args: [AGENT], modes: { default: 'ask' } }],
  profiles: [{ name: 'demo', engine: 'cli', agent: 'scripted' }],
  shutdownTimeoutMs: 2_000,
}

/** A daemon with an agent at work, and with a tool of it that hides in a process group of its own. */
async function atWork(t: Test) {
  const { daemon, cwd, createSession } = await startDaemon(t, CONFIG)
  const witness = join(cwd, 'witness')
  await createSession(JSON.stringify([{ witness }, { hang: true }]))
  const files = [witness, `${witness}.tool`]
  const sizes = () => files.map((file) => (existsSync(file) ? statSync(file).size : 0))
  /** Waits until agent and tool have both done more than they had. */
  const worksOn = async () => {
    const before = sizes()
    await until(() => sizes().every((size, index) => size > before[index]! + 5))
  }
  await worksOn()
  const pid = daemon.child.pid!
  return { daemon, pid, cwd, sizes, worksOn, leash: await leashOf(pid), agents: () => processesOf(undefined, pid) }
}

/** What a process has open beside what every process of Node has. */
const opened = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const link = readlinkSync(`/proc/${pid}/fd/${fd}`)
      return /^(anon_inode|pipe):|^\/dev\/null$|^\/proc\//.test(link) ? [] : [link]
    } catch {
      return []
    }
  })

t.test('beside a daemon that works', async (t) => {
  const other = await atWork(t)

  await t.test('no agent works while its daemon is stopped, nor after that was killed', async (t) => {
    const { daemon, pid, leash, agents, sizes, worksOn } = await atWork(t)
    const theirs = opened(pid)
    t.ok(
      theirs.some((link) => link.endsWith('session-gateway.db')),
      'the daemon has its database open',
    )
    const shared = () => opened(leash).filter((link) => theirs.includes(link))
    await until(() => opened(leash).every((link) => link.startsWith('socket:')))
    t.strictSame(shared(), [], 'nor its sockets')

    const working = agents()
    t.equal(working.length, 2)
    daemon.child.kill('SIGSTOP')
    for (const agent of working) await whenStopped(agent)
    const stoppedAt = sizes()
    await other.worksOn()
    t.strictSame(sizes(), stoppedAt)
    daemon.child.kill('SIGCONT')
    await worksOn()

    const last = agents()
    daemon.child.kill('SIGKILL')
    for (const gone of [...last, leash]) await whenGone(gone)
    t.strictSame(agents(), [])
    const killedAt = sizes()
    await other.worksOn()
    t.strictSame(sizes(), killedAt)
  })
})

t.test('an orderly stop leaves nothing, also when a service tells every process of it', async (t) => {
  const { daemon, leash, agents } = await atWork(t)
  const all = agents()
  process.kill(leash, 'SIGTERM')
  daemon.child.kill('SIGTERM')
  t.same(await daemon.exited, { code: 0, signal: null })
  for (const pid of [...all, leash]) await whenGone(pid)
  t.strictSame(agents(), [])
})
