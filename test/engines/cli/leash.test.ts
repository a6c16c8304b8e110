import { once } from 'node:events'
import t, { type Test } from 'tap'
import { forkCompiled } from '../../fixtures/compiled.js'
import { whenGone } from '../../fixtures/processes.js'

/** A gateway with an agent that runs the script, and the processes that this tells of. */
async function build(t: Test, script: string) {
  const gateway = forkCompiled('test/fixtures/leashed.ts', [script])
  t.teardown(() => void gateway.kill('SIGKILL'))
  const [pids] = (await once(gateway, 'message')) as [number[]]
  return { gateway, pids }
}

t.test('an agent whose gateway is killed does not work on, nor do its tools, wherever they hide', async (t) => {
  const { gateway, pids } = await build(
    t,
    `trap "" TERM HUP
    sleep 600 & child=$!
    setsid sleep 600 & apart=$!
    env -i setsid sh -c 'sleep 600' & unmarked=$!
    echo $$ $child $apart $unmarked
    while :; do sleep 1; done`,
  )
  t.equal(pids.length, 4)
  gateway.kill('SIGKILL')
  for (const pid of pids) await whenGone(pid)
})

t.test('the same when the gateway leaves in a hurry', async (t) => {
  const { gateway, pids } = await build(t, 'setsid sleep 600 & echo $$ $!; wait')
  gateway.kill('SIGTERM')
  for (const pid of pids) await whenGone(pid)
})
