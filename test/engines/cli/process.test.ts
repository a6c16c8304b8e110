import { createHook } from 'node:async_hooks'
import { ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { endOrphans, markerEnv } from '../../../src/engines/cli/markers.js'
import { AgentProcess } from '../../../src/engines/cli/process.js'
import { SpawnSlots } from '../../../src/engines/cli/spawn-slots.js'
import { isRunning, isStopped, whenGone, whenStopped } from '../../fixtures/processes.js'
import { turns } from '../../fixtures/turns.js'

/** A shell that runs the script, as an agent would be run. */
async function run(t: Test, script: string, sessionId = 'session-1') {
  const agent = new AgentProcess({
    ...{ command: '/bin/sh', args: ['-c', script], cwd: '/' },
    env: { PATH: process.env.PATH, ...(await markerEnv(sessionId)) },
  })
  t.teardown(() => agent.stop(0))
  return agent
}

/** The numbers that it prints first. */
async function pidsOf(agent: AgentProcess): Promise<number[]> {
  const [line] = (await once(agent.child.stdout.setEncoding('utf8'), 'data')) as [string]
  return line.trim().split(/\s+/).map(Number)
}

t.test('stop lets the agent end by itself, and takes no longer', async (t) => {
  const agent = await run(t, 'trap "exit 7" TERM; echo $$; while :; do sleep 0.01; done')
  const [pid] = await pidsOf(agent)
  await agent.stop(60_000)
  t.notOk(isRunning(pid!))
  t.match(await agent.exited, { code: 7, signal: null })
})

t.test(
  'what a process said ends with it, and is read, also where something that it left behind could go on',
  async (t) => {
    const agent = await run(t, 'setsid sleep 600 & echo $!; echo last words; exit 7')
    let said = ''
    agent.child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    await once(agent.child.stdout, 'close')
    t.match(await agent.exited, { code: 7 })
    t.match(said, /^\d+\nlast words\n$/)
    await whenGone(Number.parseInt(said, 10))
  },
)

t.test('that end is known also where it cannot be ended', async (t) => {
  const agent = await run(t, 'env -i setsid sleep 600 & echo $!; echo last words; exit 7')
  let said = ''
  agent.child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await once(agent.child.stdout, 'end')
  const left = Number.parseInt(said, 10)
  t.teardown(() => process.kill(left))
  t.match(said, /^\d+\nlast words\n$/)
  t.ok(isRunning(left))
})

t.test('what does not listen is killed after the grace, children and those that left the group included', async (t) => {
  const agent = await run(
    t,
    'trap "" TERM; sleep 600 & a=$!; setsid sleep 600 & echo $$ $a $!; wait; while :; do sleep 1; done',
  )
  const pids = await pidsOf(agent)
  await agent.stop(50)
  for (const pid of pids) await whenGone(pid)
  t.match(await agent.exited, { signal: 'SIGKILL' })
})

t.test('what it started is killed after the grace also where the clock is set back meanwhile', async (t) => {
  const agent = await run(
    t,
    `env -i sh -c 'trap "" TERM; echo $$; while :; do /bin/sleep 0.01; done' & while :; do sleep 0.01; done`,
  )
  const [pid] = await pidsOf(agent)
  const stopped = agent.stop(300)
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  Date.now = () => now() - 3_600_000
  await stopped
  await whenGone(pid!)
})

t.test(
  'children of an agent that died by itself are ended, those of its successor in the session are not',
  async (t) => {
    const other = await run(t, 'sleep 600 & echo $!; wait')
    const [spared] = await pidsOf(other)
    const agent = await run(t, 'sleep 600 & echo $!; exit 3')
    const [orphan] = await pidsOf(agent)
    await agent.exited
    await agent.stop()
    await whenGone(orphan!)
    t.ok(isRunning(spared!))
  },
)

t.test('twenty that are stopped at once do not keep the gateway busy', async (t) => {
  const agents = await Promise.all(Array.from({ length: 20 }, (_, n) => run(t, 'echo $$; sleep 600', `many-${n}`)))
  await Promise.all(agents.map(pidsOf))
  let reads = 0
  const hook = createHook({ init: (_id, type) => void (type.startsWith('FSREQ') && reads++) }).enable()
  await Promise.all(agents.map((agent) => agent.stop()))
  hook.disable()
  t.equal(reads, 0, 'it looks through no list of processes itself')
})

t.test('its last words', async (t) => {
  const agent = await run(t, 'echo something is wrong >&2; exit 3')
  t.equal(await agent.lastWords(), 'The agent exited with code 3. It said: something is wrong')
  const missing = new AgentProcess({ command: '/no/such', args: [], cwd: '/', env: {} })
  t.match(await missing.lastWords(), /could not be started.*ENOENT/)
  await missing.stop()
  const command = join(t.testdir({ agent: '#!/no/such/interpreter\n' }), 'agent')
  chmodSync(command, 0o755)
  const foreign = new AgentProcess({ command, args: [], cwd: '/', env: {} })
  t.match(
    await foreign.lastWords(),
    /could not be started: .*agent is there, but not what it needs to run \(the program/,
  )
  await foreign.stop()
  const nowhere = new AgentProcess({ command, args: [], cwd: '/no/such', env: {} })
  t.match(await nowhere.lastWords(), /ENOENT/, 'not where the directory is what is missing')
  await nowhere.stop()
})

t.test('where the system has no process or no descriptor left it is said what to raise', async (t) => {
  const request = { command: '/no/such', args: [], cwd: '/', env: {} }
  const short = new AgentProcess(request)
  short.child.emit('error', Object.assign(new Error('spawn /no/such EAGAIN'), { code: 'EAGAIN' }))
  t.match(await short.lastWords(), /could not be started: spawn \/no\/such EAGAIN: .*processes.*TasksMax.*maxSessions/)
  await short.stop()
  // as of Node, which then makes no streams
  const begun = { spawn: Reflect.get(ChildProcess.prototype, 'spawn') }
  t.teardown(() => Object.assign(ChildProcess.prototype, begun))
  Object.assign(ChildProcess.prototype, {
    spawn(this: ChildProcess) {
      process.nextTick(() => this.emit('error', Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE' })))
    },
  })
  t.throws(() => new AgentProcess(request), { message: /spawn \/no\/such: .*files open.*LimitNOFILE/ })
})

t.test('its last words are text, whatever terminal it thought that it wrote to', async (t) => {
  const agent = await run(t, String.raw`printf '\033[91m\033[1mError: \033[0mdisk is full\n' >&2; exit 1`)
  t.equal(await agent.lastWords(), 'The agent exited with code 1. It said: Error: disk is full')
})

t.test('of one that speaks no more, and does not end, it is said who ended it', async (t) => {
  const agent = await run(t, 'echo tired >&2; exec >&-; while :; do sleep 0.01; done')
  agent.child.stdout.resume()
  await once(agent.child.stdout, 'end')
  t.equal(
    await agent.lastWords(),
    'The agent closed its standard output, did not end within 3 s, and was ended. It said: tired',
  )
})

t.test(
  'of what wraps an agent, and ends a while after it has closed its output, it is said how it ended',
  async (t) => {
    const agent = await run(t, 'exec >&-; read -r line; exit 7')
    agent.child.stdout.resume()
    await once(agent.child.stdout, 'end')
    const start = setTimeout
    const waits: { run: () => void; ms: number }[] = []
    const timers = t.intercept(globalThis, 'setTimeout', {
      value: (run: () => void, ms: number) => {
        waits.push({ run, ms })
        return start(() => {}, 0)
      },
    })
    const words = agent.lastWords()
    timers.restore()
    for (const { run, ms } of waits) if (ms <= 2_000) run()
    agent.child.stdin.write('removed\n')
    t.equal(await words, 'The agent exited with code 7.')
  },
)

t.test(
  'the end of one that somebody else has ended is told a moment later: its gateway may be about to end, too',
  async (t) => {
    for (const [script, words] of [
      ['kill -TERM $$', 'The agent was ended by SIGTERM.'],
      ["trap 'exit 143' TERM; kill -TERM $$", 'The agent exited with code 143.'],
    ] as const) {
      const agent = await run(t, script)
      agent.child.stdout.resume()
      let isTold = false
      const told = agent.lastWords().then((last) => {
        isTold = true
        return last
      })
      await once(agent.child, 'close')
      await turns(50)
      t.notOk(isTold)
      t.equal(await told, words)
    }
  },
)

t.test('the orphans of a gateway that died are ended at boot, those of a living one are not', async (t) => {
  const living = await run(t, 'sleep 600 & echo $!; wait')
  const [kept] = await pidsOf(living)
  const marker = (await markerEnv('s')).SESSION_GATEWAY_OWNER!
  const [, startTime, ...namespace] = marker.split(':')
  const dead = spawn(process.execPath, ['-e', ''])
  await once(dead, 'exit')
  const owners = {
    ended: `${dead.pid}:${startTime}:${namespace.join(':')}`,
    'pid was taken by another': `${process.pid}:1:${namespace.join(':')}`,
    'another container’s': `${dead.pid}:${startTime}:pid:[1]`,
  }
  const started = Object.entries(owners).map(([what, owner]) => {
    const child = spawn('sleep', ['600'], { env: { ...process.env, SESSION_GATEWAY_OWNER: owner }, stdio: 'ignore' })
    t.teardown(() => child.kill('SIGKILL'))
    return { what, pid: child.pid! }
  })
  await endOrphans()
  for (const { what, pid } of started)
    if (what.startsWith('another')) t.ok(isRunning(pid), what)
    else await whenGone(pid)
  t.ok(isRunning(kept!))
})

t.test('only so many start at the same time, in their order', async (t) => {
  const slots = new SpawnSlots(1)
  const { signal } = new AbortController()
  const order: string[] = []
  const release = await slots.take(signal)
  const gaveUp = new AbortController()
  const second = slots.take(gaveUp.signal)
  const third = slots.take(signal).then((free) => {
    order.push('third')
    return free
  })
  gaveUp.abort(new Error('closed'))
  await t.rejects(second, { message: 'closed' })
  t.strictSame(order, [])
  release()
  release()
  const free = await third
  const fourth = slots.take(signal)
  t.equal(await Promise.race([fourth.then(() => 'started'), Promise.resolve('waits')]), 'waits')
  free()
  await fourth
})

t.test('what is left unread waits in the pipe, and what an agent leaves behind at its end does not', async (t) => {
  const agent = await run(t, 'echo first; read line; echo second; read line; echo third')
  let heard = ''
  const hears = (text: string) =>
    new Promise<void>((resolve) => {
      const check = (piece = '') => {
        heard += piece
        if (!heard.includes(text)) return
        agent.child.stdout.off('data', check)
        resolve()
      }
      agent.child.stdout.on('data', check)
      check()
    })
  agent.child.stdout.setEncoding('utf8')
  await hears('first')
  let goOn = () => {}
  agent.leaveUnread(
    new Promise((resolve) => {
      goOn = resolve
    }),
  )
  t.ok(agent.child.stdout.isPaused())
  agent.child.stdin.write('\n')
  goOn()
  await hears('second')
  agent.leaveUnread(new Promise(() => {}))
  agent.child.stdin.write('\n')
  await hears('third')
  t.match(await agent.exited, { code: 0 })
})

const HIDING = 'trap "" TERM; setsid sleep 600 & apart=$!; sleep 600 & echo $$ $! $apart; while :; do sleep 1; done'

t.test('one that is paused is stopped with all that it started, wherever that hides, others are not', async (t) => {
  const agent = await run(t, HIDING)
  const pids = await pidsOf(agent)
  const other = await run(t, HIDING)
  const others = await pidsOf(other)
  for (let round = 0; round < 2; round++) {
    agent.pause()
    agent.pause()
    for (const pid of pids) await whenStopped(pid)
    for (const pid of others) t.notOk(isStopped(pid))
    other.pause()
    for (const pid of others) await whenStopped(pid)
    agent.resume()
    for (const pid of pids) await whenStopped(pid, false)
    for (const pid of others) t.ok(isStopped(pid), 'each for itself')
    other.resume()
    for (const pid of others) await whenStopped(pid, false)
  }
})

t.test('one that is paused does nothing more when it is ended, whatever it would have done at its end', async (t) => {
  const dir = t.testdir({})
  const agent = await run(
    t,
    `trap "touch ${dir}/done" TERM; setsid sleep 600 & echo $$ $!; while :; do sleep 0.01; done`,
  )
  const pids = await pidsOf(agent)
  agent.pause()
  await agent.stop(60_000)
  for (const pid of pids) await whenGone(pid)
  t.match(await agent.exited, { signal: 'SIGKILL' })
  t.notOk(existsSync(join(dir, 'done')))
})

t.test('what it said is read once it goes on', async (t) => {
  const agent = await run(t, 'echo first; read line; echo second')
  agent.child.stdout.setEncoding('utf8')
  await once(agent.child.stdout, 'data')
  agent.pause()
  t.ok(agent.child.stdout.isPaused())
  agent.child.stdin.write('\n')
  agent.resume()
  t.match(await once(agent.child.stdout, 'data'), ['second\n'])
  t.match(await agent.exited, { code: 0 })
})
