import t from 'tap'
import type { ExecutionResult } from '../../src/engines/runner.js'
import { Executions } from '../../src/executions/executions.js'
import { silentLogger } from '../../src/lib/logger.js'
import { DeferredExecutions } from '../../src/sessions/asks/deferred-executions.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

function waiting(many: number) {
  const clock = new VirtualClock()
  const start = clock.now()
  const executions = new Executions({ clock, logger: silentLogger, maxIdLength: 512 })
  const timedOut: [executionId: string, atMs: number][] = []
  let refuses = 0
  executions.serve({
    deliver: async (_sessionId: string, executionId: string, result: ExecutionResult) => {
      if (refuses-- > 0) throw new Error('not now')
      if (result.status === 'failed' && result.reason === 'timeout') timedOut.push([executionId, clock.now() - start])
      return true
    },
    wake: async () => {},
    hasten: async () => {},
  })
  for (let index = 1; index <= many; index++)
    executions.register(`session-${index}`, `execution-${index}`, start + index * 1_000)
  const refuse = (times: number) => {
    refuses = times
  }
  return { clock, executions, timedOut, refuse }
}

t.test('each of many deadlines is kept, and all of them take one timer', async (t) => {
  const { clock, executions, timedOut } = waiting(1_000)
  t.equal(clock.pendingTimers, 1)
  t.same(await executions.submit('execution-3', { status: 'ok' } as ExecutionResult), {
    applied: true,
    sessionId: 'session-3',
  })
  executions.forget('session-4')
  await clock.advance(6_000)
  t.same(
    timedOut,
    [1, 2, 5, 6].map((index) => [`execution-${index}`, index * 1_000]),
  )
  t.equal(clock.pendingTimers, 1)
  await clock.advance(994_000)
  t.equal(timedOut.length, 998)
  t.equal(clock.pendingTimers, 0)
})

t.test('a timeout that cannot be stored comes again, one that was claimed does not', async (t) => {
  const { clock, executions, timedOut, refuse } = waiting(3)
  t.ok(executions.claim('execution-2'))
  t.ok(executions.claim('execution-3'))
  executions.unclaim('execution-3')
  refuse(1)
  await clock.advance(20_000)
  t.same(timedOut, [
    ['execution-3', 3_000],
    ['execution-1', 6_000],
  ])
})

t.test('no deadline is kept once the gateway stops, whatever happens to executions then', async (t) => {
  const { clock, executions, timedOut } = waiting(3)
  executions.close()
  executions.forget('session-1')
  executions.register('session-4', 'execution-4', clock.now() + 1)
  t.equal(clock.pendingTimers, 0)
  await clock.advance(20_000)
  t.same(timedOut, [])
})

t.test('what was waited for takes no less than no time, also where the clock was set back', (t) => {
  const deferred = new DeferredExecutions()
  deferred.add({ executionId: 'e1', toolName: 'slow' }, 5_000)
  const result: ExecutionResult = { status: 'ok', output: { type: 'text', value: 'done' } }
  t.match(deferred.settle('e1', result, 2_000), { type: 'execution_result', durationMs: 0 })
  t.end()
})
