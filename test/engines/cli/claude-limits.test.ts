import t, { type Test } from 'tap'
import type { RunnerSnapshot, SessionRunnerConfig } from '../../../src/engines/runner.js'
import { until } from '../../fixtures/build.js'
import { DEPLOY, hosted, script, start as startClaude } from '../../fixtures/claude-engine.js'
import { ok } from '../../fixtures/parked.js'

async function start(t: Test, limits: Partial<SessionRunnerConfig>, restore?: RunnerSnapshot) {
  const { runner, host, query } = await startClaude(t, {
    config: limits,
    hostedTools: hosted(() => 'e1'),
    ...(restore && { restore }),
  })
  const successor = async () => {
    const snapshot = runner.snapshot!()
    await runner.close()
    return start(t, limits, snapshot)
  }
  return { runner, host, successor, query }
}

t.test('a budget is the session’s, however many agents it has had', async (t) => {
  const first = await start(t, { maxBudgetUsd: 1.2 })
  t.equal(first.query.options.maxBudgetUsd, 1.2)
  t.match(await first.host.turn(first.runner, 'hi'), { totalCostUsd: 0.5 })

  const second = await first.successor()
  t.ok(Math.abs((second.query.options.maxBudgetUsd as number) - 0.7) < 1e-9, 'what is left')
  const reached = { type: 'result', subtype: 'error_max_budget_usd', is_error: true, errors: ['maximum budget ($0.7)'] }
  const told = {
    subtype: 'error_max_budget_usd',
    isError: true,
    errors: ['The session reached its budget of 1.2 USD.'],
  }
  await second.host.turn(second.runner, 'hi')
  t.match(await second.host.turn(second.runner, script(reached)), told)

  const third = await second.successor()
  const asked = third.query.prompts.length
  t.match(await third.host.turn(third.runner, 'hi'), { ...told, totalCostUsd: 1.5, usage: { inputTokens: 0 } })
  t.match(await third.host.turn(third.runner, 'hi'), told)
  t.equal(third.query.prompts.length, asked, 'nothing is asked of its model')
})

const stream = (type: string) => ({ type: 'stream_event', parent_tool_use_id: null, event: { type } })
const message = [stream('message_start'), stream('message_stop')]

t.test('a session that has spent its budget asks nothing of its model, in the same agent, too', async (t) => {
  const { runner, host, query } = await start(t, { maxBudgetUsd: 0.9 })
  await host.turn(runner, 'hi')
  t.match(
    await host.turn(runner, script({ type: 'result', total_cost_usd: 0 })),
    { totalCostUsd: 0.5 },
    'as for /clear',
  )
  await host.turn(runner, script({ type: 'result', total_cost_usd: 0.5 }))
  const asked = query.prompts.length
  t.match(await host.turn(runner, 'hi'), { subtype: 'error_max_budget_usd', isError: true, totalCostUsd: 1 })
  t.equal(query.prompts.length, asked)
})

t.test('the calls of a turn are limited over all its parks', async (t) => {
  const first = await start(t, { maxTurns: 2 })
  const waits = [...message, stream('message_start'), { wait: true }, { type: 'result', result: 'went on' }]
  first.runner.send(script(...message, { before: [DEPLOY, {}] }, ...waits))
  await until(() => first.runner.canPark)
  const { runner, host, query } = await first.successor()
  const end = host.next('turn_completed')
  runner.settleExecution!('e1', ok)
  t.match(await end, {
    ...{ subtype: 'error_max_turns', isError: true, errors: ['The turn reached its limit of 2 model calls.'] },
    result: undefined,
  })
  t.equal(query.calls.filter((call) => call === 'interrupt').length, 1, 'the third call is called off')
  t.match(
    await host.turn(runner, script(...message, { type: 'result' })),
    { subtype: 'success' },
    'another turn counts anew',
  )
})

t.test('a turn that was not parked is the agent’s to limit, which knows what it tried again', async (t) => {
  const { runner, host, query } = await start(t, { maxTurns: 1 })
  t.match(await host.turn(runner, script(...message, ...message, { type: 'result' })), { subtype: 'success' })
  t.notOk(query.calls.includes('interrupt'))
})

t.test('what a turn took that was parked counts once, whatever the agent does by itself after it', async (t) => {
  const own = [...message, { type: 'result', origin: { kind: 'task-notification' }, num_turns: 1, result: 'built' }]
  const first = await start(t, { maxTurns: 3 })
  const waits = [{ before: [DEPLOY, {}] }, ...message, { type: 'result', num_turns: 1, result: 'went on' }]
  first.runner.send(script(...message, ...message, ...waits, ...own, ...message, { before: [DEPLOY, {}, 'toolu_2'] }))
  await until(() => first.runner.canPark)
  const { runner, host, successor } = await first.successor()
  runner.settleExecution!('e1', ok)
  await until(() => host.of('turn_completed').length === 2)
  t.match(host.of('turn_completed'), [
    { subtype: 'success', numTurns: 3 },
    { subtype: 'success', result: 'built', durationMs: 12, numTurns: 4 },
  ])
  await until(() => runner.canPark)
  t.match(runner.snapshot!(), { state: { parked: { taken: { steps: 1 } } } })
  await successor()
})
