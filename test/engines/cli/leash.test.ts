import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Leash } from '../../../src/engines/cli/leash.js'
import { leashProgram } from '../../../src/engines/cli/leash-program.js'
import { endOrphans } from '../../../src/engines/cli/markers.js'
import { tried } from '../../../src/lib/tried.js'
import { forkCompiled } from '../../fixtures/compiled.js'
import { isRunning, isStopped, leashOf, whenGone, whenStopped } from '../../fixtures/processes.js'

/** An agent that ignores its end, and what it starts: in its group and apart, with its environment and without, its child and nobody's. */
const HIDING = `trap "" TERM HUP
  sleep 600 & child=$!
  setsid sleep 600 & apart=$!
  env -i setsid sh -c 'sleep 600' & unmarked=$!
  orphan=$(env -i sh -c 'sleep 600 >/dev/null 2>&1 & echo $!')
  echo $$ $child $apart $unmarked $orphan
  while :; do sleep 1; done`

/** A gateway with an agent that runs the script, and the processes that this tells of. */
async function build(t: Test, script: string) {
  const gateway = forkCompiled('test/fixtures/leashed.ts', [script])
  t.teardown(() => void gateway.kill('SIGKILL'))
  const [pids] = (await once(gateway, 'message')) as [number[]]
  return { gateway, pids }
}

t.test('an agent whose gateway is killed does not work on, nor do its tools, wherever they hide', async (t) => {
  const { gateway, pids } = await build(t, HIDING)
  t.equal(pids.length, 5)
  gateway.kill('SIGKILL')
  for (const pid of pids) await whenGone(pid)
})

t.test('nor where the next gateway, which looks for orphans, is quicker than what was beside the first', async (t) => {
  const { gateway, pids } = await build(t, HIDING)
  const leash = await leashOf(gateway.pid!)
  process.kill(leash, 'SIGSTOP')
  await whenStopped(leash)
  gateway.kill('SIGKILL')
  await whenGone(gateway.pid!)
  await endOrphans()
  for (const pid of pids) await whenGone(pid)
  process.kill(leash, 'SIGCONT')
  await whenGone(leash)
})

t.test('the same when the gateway leaves in a hurry', async (t) => {
  const { gateway, pids } = await build(t, 'setsid sleep 600 & echo $$ $!; wait')
  gateway.kill('SIGTERM')
  for (const pid of pids) await whenGone(pid)
})

t.test('while a gateway is stopped nothing of it works; what its agents had stopped themselves stays so', async (t) => {
  const { gateway, pids } = await build(
    t,
    `setsid sleep 600 & apart=$!
    env -i setsid sh -c 'sleep 600' & unmarked=$!
    sleep 600 & paused=$!
    kill -STOP $paused
    echo $paused $$ $apart $unmarked
    while :; do sleep 1; done`,
  )
  const [paused, ...working] = pids
  await whenStopped(paused!)
  const other = await build(t, 'echo $$; while :; do sleep 1; done')
  for (const pid of working) t.notOk(isStopped(pid))
  for (let round = 0; round < 2; round++) {
    gateway.kill('SIGSTOP')
    for (const pid of working) await whenStopped(pid)
    t.notOk(isStopped(other.pids[0]!), 'of another gateway')
    gateway.kill('SIGCONT')
    for (const pid of working) await whenStopped(pid, false)
    t.ok(isStopped(paused!))
  }
  gateway.kill('SIGSTOP')
  for (const pid of working) await whenStopped(pid)
  gateway.kill('SIGKILL')
  for (const pid of pids) await whenGone(pid)
  t.notOk(isStopped(other.pids[0]!))
})

t.test(
  'one that dies is started anew while there are agents, and lets go what the one before had stopped',
  async (t) => {
    const { gateway, pids } = await build(t, 'setsid sleep 600 & echo $$ $!; wait')
    const first = await leashOf(gateway.pid!)
    gateway.kill('SIGSTOP')
    for (const pid of pids) await whenStopped(pid)
    process.kill(first, 'SIGKILL')
    gateway.kill('SIGCONT')
    await whenGone(first)
    for (const pid of pids) await whenStopped(pid, false)
    const second = await leashOf(gateway.pid!)
    t.not(second, first)
    gateway.kill('SIGKILL')
    for (const pid of [...pids, second]) await whenGone(pid)
  },
)

t.test('one that the system refuses to start is started the next time', async (t) => {
  const { execPath } = process
  t.teardown(() => {
    process.execPath = execPath
  })
  // of its own: other tests of this process may have agents
  const leash = new Leash()
  process.execPath = 'a\0b'
  t.equal(await leash.hold(), undefined)
  process.execPath = execPath
  t.ok(await leash.hold())
})

/** The program alone, told of agents by the test. */
function startLeash(list: string, isSuccessor = false) {
  const task = {
    ...{ gateway: process.pid, ownerMark: 'A=B', processMark: 'C=' },
    ...{ everyMs: 10, isSuccessor, list },
  }
  const program = `(${leashProgram.toString()})(${JSON.stringify(task)})`
  return spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'ignore', 'inherit'] })
}

/** Where the kernel would list these processes, with nobody's environment. */
function listOf(t: Test, pids: number[]): string {
  const list = t.testdir({})
  for (const pid of pids) {
    mkdirSync(join(list, `${pid}`))
    symlinkSync(`/proc/${pid}/stat`, join(list, `${pid}`, 'stat'))
  }
  return list
}

t.test('an agent whose environment nobody may read is let go and ended, another process like it is not', async (t) => {
  const [agent, stranger] = [1, 2].map(() => {
    const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
    t.teardown(() => child.kill('SIGKILL'))
    return child.pid!
  })
  process.kill(agent!, 'SIGSTOP')
  await whenStopped(agent!)
  const leash = startLeash(listOf(t, [agent!, stranger!]), true)
  leash.stdin.write(`${JSON.stringify({ began: agent })}\n`)
  await whenStopped(agent!, false)
  leash.stdin.end()
  t.strictSame(await once(leash, 'exit'), [0, null])
  await whenGone(agent!)
  t.ok(isRunning(stranger!))
})

t.test('what an agent left is ended also while it begins another program and shows no environment', async (t) => {
  const [left, bare] = [1, 2].map(() => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' })
    t.teardown(() => child.kill('SIGKILL'))
    return child.pid!
  })
  const list = listOf(t, [left!, bare!])
  writeFileSync(join(list, `${bare}`, 'environ'), '')
  const environment = join(list, `${left}`, 'environ')
  execFileSync('mkfifo', [environment])
  const leash = startLeash(list)
  t.teardown(() => leash.kill('SIGKILL'))
  leash.stdin.write(`${JSON.stringify({ id: 1, mark: 'D' })}\n`)
  // opened once it is read: the first look finds it empty, as the kernel has it meanwhile, and the next one does not
  const seen = await open(environment, 'w')
  writeFileSync(`${environment}-begun`, 'A=B\0C=D\0')
  renameSync(`${environment}-begun`, environment)
  await seen.close()
  await whenGone(left!)
  t.ok(isRunning(bare!))
  leash.stdin.end()
})

t.test('what an agent left in its group is ended with the gateway, also where the agent itself is gone', async (t) => {
  const agent = spawn('/bin/sh', ['-c', 'sleep 600 & echo $!; wait'], { detached: true })
  t.teardown(() => agent.kill('SIGKILL'))
  const left = Number(String((await once(agent.stdout, 'data'))[0]))
  t.teardown(() => void tried(() => process.kill(left, 'SIGKILL')))
  process.kill(agent.pid!, 'SIGSTOP')
  await whenStopped(agent.pid!)
  const list = listOf(t, [agent.pid!, left])
  const leash = startLeash(list, true)
  leash.stdin.write(`${JSON.stringify({ began: agent.pid })}\n`)
  await whenStopped(agent.pid!, false)
  rmSync(join(list, `${agent.pid}`), { recursive: true })
  leash.stdin.end()
  t.strictSame(await once(leash, 'exit'), [0, null])
  await whenGone(left)
})

t.test('where processes are not listed, the groups of the agents that run are ended', async (t) => {
  const script = 'trap "" TERM HUP; sleep 600 & echo $!; while :; do sleep 1; done'
  const agents = [1, 2].map(() =>
    spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] }),
  )
  t.teardown(() => {
    for (const { pid } of agents) tried(() => process.kill(-pid!, 'SIGKILL'))
  })
  const children = await Promise.all(
    agents.map(async ({ stdout }) => Number(String((await once(stdout!.setEncoding('utf8'), 'data'))[0]))),
  )
  const leash = startLeash('/nowhere')
  const [ended, running] = agents.map(({ pid }) => pid!)
  for (const told of [{ began: ended }, { began: running }, { ended }]) leash.stdin.write(`${JSON.stringify(told)}\n`)
  leash.stdin.end()
  t.strictSame(await once(leash, 'exit'), [0, null])
  await whenGone(running!)
  await whenGone(children[1]!)
  t.notOk(isStopped(ended!))
  t.doesNotThrow(() => process.kill(-ended!, 0), 'one that had ended by itself: the number may be of others')
})

t.test('once the lease is over nothing of a gateway works, stopped or not, until it is renewed', async (t) => {
  const { gateway, pids } = await build(t, 'setsid sleep 600 & echo $$ $!; while :; do sleep 1; done')
  const other = await build(t, 'echo $$; while :; do sleep 1; done')
  gateway.send({ lease: 600_000 })
  gateway.send({ lease: 50 })
  for (const pid of pids) await whenStopped(pid)
  gateway.kill('SIGSTOP')
  gateway.kill('SIGCONT')
  gateway.send({ lease: 600_000 })
  for (const pid of pids) await whenStopped(pid, false)
  t.notOk(isStopped(other.pids[0]!), 'of another gateway')
  gateway.send({ lease: 0 })
  for (const pid of pids) await whenStopped(pid)
  gateway.send({})
  for (const pid of pids) await whenStopped(pid, false)
  gateway.send({ lease: 0 })
  for (const pid of pids) await whenStopped(pid)
  gateway.kill('SIGKILL')
  for (const pid of pids) await whenGone(pid)
})

t.test('one that was stopped for longer than its lease leaves its agents stopped until it is renewed', async (t) => {
  const { gateway, pids } = await build(t, 'setsid sleep 600 & echo $$ $!; while :; do sleep 1; done')
  const leash = await leashOf(gateway.pid!)
  gateway.send({ lease: 400 })
  gateway.send({ ask: true })
  await once(gateway, 'message')
  gateway.kill('SIGSTOP')
  for (const pid of pids) await whenStopped(pid)
  await sleep(500) // the lease itself
  gateway.kill('SIGCONT')
  gateway.send({ ask: true })
  await once(gateway, 'message')
  for (const pid of pids) t.ok(isStopped(pid), 'although the gateway works')
  t.equal(await leashOf(gateway.pid!), leash)
  gateway.send({ lease: 600_000 })
  for (const pid of pids) await whenStopped(pid, false)
})

t.test('one that is started anew knows the lease, and who is paused', async (t) => {
  const { gateway, pids } = await build(t, 'setsid sleep 600 & echo $$ $!; while :; do sleep 1; done')
  gateway.send({ pause: true })
  for (const pid of pids) await whenStopped(pid)
  const first = await leashOf(gateway.pid!)
  process.kill(first, 'SIGKILL')
  await whenGone(first)
  t.not(await leashOf(gateway.pid!), first)
  gateway.send({ ask: true })
  await once(gateway, 'message')
  for (const pid of pids) t.ok(isStopped(pid))
  gateway.send({ lease: 0 })
  gateway.send({ pause: false })
  gateway.send({ lease: 600_000 })
  for (const pid of pids) await whenStopped(pid, false)
})
