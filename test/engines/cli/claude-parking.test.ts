import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { PermissionMode } from '../../../schemas/permissions.js'
import { isCertainToAsk } from '../../../src/engines/cli/claude/certain-asks.js'
import { Gate } from '../../../src/engines/cli/claude/gate.js'
import { RETURN_MS } from '../../../src/engines/cli/claude/parked-turn.js'
import type { AnsweredCall } from '../../../src/engines/hosted-tools.js'
import type { PermissionDecision, RunnerSnapshot, SessionRunnerConfig } from '../../../src/engines/runner.js'
import { deferred } from '../../../src/lib/deferred.js'
import { until } from '../../fixtures/build.js'
import { build, DEPLOY, hosted, script, sdk } from '../../fixtures/claude-engine.js'
import { ok } from '../../fixtures/parked.js'
import { ScriptedHost } from '../../fixtures/scripted-host.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'

async function start(t: Test, config: Partial<SessionRunnerConfig> = {}, restore?: RunnerSnapshot) {
  const clock = new VirtualClock()
  const answered: AnsweredCall[] = []
  const hostedTools = hosted(
    () => `e${host.deferred.length + 1}`,
    (call) => void answered.push(call),
  )
  const built = await build(t, { config, hostedTools, clock, ...(restore && { restore }) })
  const { runner, host } = built
  await runner.start(host)
  return { ...built, answered, clock, query: sdk.queries.at(-1)! }
}

const stream = (type: string) => ({ type: 'stream_event', parent_tool_use_id: null, event: { type } })
const calls = (...ids: string[]) => ({
  ...{ type: 'assistant', uuid: 'u', parent_tool_use_id: null },
  message: { role: 'assistant', content: ids.map((id) => ({ type: 'tool_use', id, name: DEPLOY, input: {} })) },
})
const result = (id: string) => ({
  ...{ type: 'user', uuid: 'u', parent_tool_use_id: null },
  message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: '' }] },
})
const hook = (permissionDecision: string, more: object = {}) => ({
  hookSpecificOutput: { permissionDecision, ...more },
})

t.test('a deferred call waits before it is made, and while it does the session can be parked', async (t) => {
  const { runner, host, answered, query } = await start(t)
  t.match(query.options.mcpServers, { 'session-gateway': { alwaysLoad: true } })
  t.equal(runner.capabilities.parking, 'native')
  const end = host.next('turn_completed')
  runner.send(script(calls('toolu_1'), { before: [DEPLOY, { branch: 'x' }] }, result('toolu_1'), { type: 'result' }))
  await until(() => host.deferred.length === 1)
  t.match(host.deferred, [{ executionId: 'e1', toolName: 'deploy', input: { branch: 'x' } }])
  t.equal(host.of('assistant_message').length, 1, 'the call was told')
  await until(() => runner.canPark)
  runner.settleExecution!('e1', ok)
  t.match(await end, { subtype: 'success' })
  t.match(query.calls, [hook('allow')])
  t.same(answered, [{ toolUseId: 'toolu_1', toolName: 'deploy', result: ok }])
  t.notOk(runner.canPark)
})

t.test('parked, it ends at that call; its successor comes to it again and goes on in the same turn', async (t) => {
  const first = await start(t)
  first.runner.send(
    script(
      ...[stream('message_start'), calls('toolu_1', 'toolu_2'), stream('message_stop')],
      ...[{ before: [DEPLOY, {}] }, result('toolu_1'), { type: 'result', result: 'done' }],
    ),
  )
  await until(() => first.runner.canPark)
  const snapshot = first.runner.snapshot!()
  await first.runner.close()
  t.match(first.query.calls, [hook('defer')])
  t.equal(first.host.of('turn_completed').length, 0, 'its turn has not ended')

  const { runner, host, answered, query } = await start(t, {}, snapshot)
  t.match(query.options, { resume: first.query.options.sessionId })
  t.match(host.of('system_init'), [{ tools: ['Bash', 'Write'], sdkSessionId: first.query.options.sessionId }])
  t.match(host.of('user_message'), [{ message: { content: [{ tool_use_id: 'toolu_2', is_error: true }] } }])
  const end = host.next('turn_completed')
  runner.settleExecution!('e1', ok)
  t.match(await end, { subtype: 'success', result: 'done', numTurns: 2, usage: { inputTokens: 100 } })
  t.match(answered, [{ toolUseId: 'toolu_1', result: ok }])
  t.equal(host.deferred.length, 0, 'it was settled before it was deferred again')
  t.equal(query.prompts.length, 0, 'nothing was said to it')
})

t.test('a model that is chosen in a turn is that of the session when it was parked since, too', async (t) => {
  for (const model of ['big', undefined]) {
    const first = await start(t, { model: 'small' })
    first.runner.send(script({ before: [DEPLOY, {}] }, { type: 'result', result: 'done' }))
    await until(() => first.runner.canPark)
    await first.runner.setModel!(model)
    const snapshot = first.runner.snapshot!()
    await first.runner.close()
    const { runner, host, query } = await start(t, { model: 'small' }, snapshot)
    t.equal(query.options.model, model)
    if (model) t.match(host.of('system_init'), [{ model }], 'and nobody is told of another one')
    t.equal((runner.snapshot!().state as { model?: string }).model, model, 'whoever goes on has it')
  }
})

t.test('a turn that ends while its call is written down waits for nothing', async (t) => {
  const host = new ScriptedHost()
  const written = deferred()
  host.deferExecution = (execution) => {
    host.deferred.push(execution)
    return written.promise
  }
  host.waitForExecutions = () => t.fail('it waits')
  const gate = new Gate({
    ...{
      hostedTools: hosted(() => 'e1'),
      restored: undefined,
      onReturned: () => {},
      host: () => host,
      told: async () => {},
    },
    ...{ guard: () => ({}), isPatientAsk: async () => false, isInterrupted: () => false, interrupt: () => {} },
  })
  const call = { tool_name: DEPLOY, tool_input: {}, tool_use_id: 'toolu_1' }
  const passed = gate.before(call, 'toolu_1', new AbortController())
  await until(() => host.deferred.length === 1)
  t.match(gate.held, { toolUseId: 'toolu_1' })
  gate.onTurnEnd()
  t.equal(gate.held, undefined, 'a snapshot has nothing to go on with')
  written.resolve()
  t.match(await passed, hook('defer'))
})

const UNDER_WAY: [what: string, steps: object[]][] = [
  ['the model still speaks', [stream('message_start'), calls('toolu_2')]],
  [
    'another call runs',
    [
      ...[stream('message_start'), calls('toolu_1', 'toolu_2'), stream('message_stop')],
      { before: ['Read', {}, 'toolu_1'] },
    ],
  ],
]
for (const [what, steps] of UNDER_WAY)
  t.test(`nothing is parked while ${what}`, async (t) => {
    const { runner, host } = await start(t)
    runner.send(script(...steps, { before: [DEPLOY, {}, 'toolu_2'] }))
    await until(() => host.deferred.length === 1)
    for (let turn = 0; turn < 20; turn++) {
      await new Promise(setImmediate)
      t.notOk(runner.canPark)
    }
    runner.settleExecution!('e1', ok)
  })

t.test('what a person is asked for certain is asked before the call, when they may take for ever', async (t) => {
  const { runner, host, query } = await start(t, { approvalTimeoutMs: 0 })
  host.answer = ({ input }) => ({ behavior: 'allow', updatedInput: { ...input, more: 1 } })
  const touch = { command: 'touch x' }
  await host.turn(
    runner,
    script({ before: ['Bash', touch] }, { ask: ['Bash', { ...touch, more: 1 }] }, { type: 'result' }),
  )
  t.match(host.asks, [{ toolName: 'Bash', toolUseId: 'toolu_1', input: touch }])
  t.equal(host.asks.length, 1, 'and not once more after it')
  t.match(query.calls, [hook('allow', { updatedInput: { command: 'touch x', more: 1 } }), { behavior: 'allow' }])

  host.answer = () => ({ behavior: 'deny', message: 'no', interrupt: true })
  query.calls.length = 0
  await host.turn(runner, script({ before: ['Bash', touch] }, { type: 'result' }))
  t.match(query.calls, ['interrupt', hook('deny', { permissionDecisionReason: 'no' })])

  host.answer = () => new Promise(() => {})
  runner.send(script({ before: ['Bash', touch, 'toolu_9'] }))
  await until(() => runner.canPark)
  const snapshot = runner.snapshot!()
  await runner.close()
  t.match(query.calls.at(-1), hook('defer'))
  const next = await start(t, { approvalTimeoutMs: 0 }, snapshot)
  await next.host.asked()
  t.match(next.host.asks, [{ toolUseId: 'toolu_9' }], 'it is asked again')
})

t.test(
  'what a person was asked is theirs to decide after a park, too, whatever mode was chosen while they were',
  async (t) => {
    for (const mode of ['acceptEdits', 'dontAsk'] as const) {
      const config = { approvalTimeoutMs: 0, allowDangerouslySkipPermissions: true }
      const first = await start(t, config)
      const write = { file_path: join(first.cwd, 'x.txt'), content: 'x' }
      first.runner.send(script({ before: ['Write', write] }, { type: 'result', result: 'done' }))
      await until(() => first.runner.canPark)
      await first.runner.setPermissionMode!(mode)
      const snapshot = first.runner.snapshot!()
      await first.runner.close()
      const { runner, host, query } = await start(t, config, snapshot)
      const behavior = mode === 'dontAsk' ? 'allow' : 'deny'
      host.answer = () => ({ behavior })
      const end = host.next('turn_completed')
      t.match(await end, { subtype: 'success' })
      t.match(host.asks, [{ toolUseId: 'toolu_1', toolName: 'Write' }])
      t.match(query.calls, [hook(behavior)])
      t.equal((runner.snapshot!().state as { permissionMode: string }).permissionMode, mode)
    }
  },
)

t.test('a refusal that ends the turn of an agent which is ending itself harms nobody', async (t) => {
  const { runner, host, query } = await start(t, { approvalTimeoutMs: 0 })
  host.answer = () => ({ behavior: 'deny', interrupt: true })
  query.interrupt = () => Promise.reject(new Error('Query closed before response received'))
  await host.turn(runner, script({ before: ['Bash', { command: 'touch x' }] }, { type: 'result' }))
  t.match(query.calls, [hook('deny')])
})

t.test('an ask that the agent makes itself keeps the process', async (t) => {
  const { runner, host } = await start(t, { approvalTimeoutMs: 0 })
  runner.send(script({ before: ['Bash', { command: 'git push' }] }, { ask: ['Bash', { command: 'git push' }] }))
  await host.asked()
  t.notOk(runner.canPark)
})

t.test('a call that the agent has lost ends its turn, and says so', async (t) => {
  const first = await start(t)
  first.runner.send(script({ before: [DEPLOY, {}] }, { type: 'result' }))
  await until(() => first.runner.canPark)
  const snapshot = first.runner.snapshot!()
  await first.runner.close()
  sdk.putOff.clear()
  const { host, clock } = await start(t, {}, snapshot)
  const end = host.next('turn_completed')
  await clock.advance(RETURN_MS)
  t.match(await end, { isError: true, errors: [/no longer knows/] })
})

t.test('a turn goes on whatever decides about the call that it was parked at', async (t) => {
  const first = await start(t, { approvalTimeoutMs: 0 })
  const push = { command: 'npm publish' }
  first.runner.send(
    script(
      ...[{ before: ['Bash', push] }, { ask: ['Bash', push] }, result('toolu_1'), { type: 'result', result: 'done' }],
    ),
  )
  await until(() => first.runner.canPark)
  const snapshot = first.runner.snapshot!()
  await first.runner.close()
  // a rule of the agent's may decide now: it is left to it
  const config = { approvalTimeoutMs: 0, allowedTools: ['Bash(make:*)'] }
  const { runner, host, query, clock } = await start(t, config, snapshot)
  const answer = deferred<PermissionDecision>()
  host.answer = () => answer.promise
  await host.asked()
  await clock.advance(RETURN_MS)
  t.same(query.prompts, [], 'it is not asked whether it has anything left to do')
  const end = host.next('turn_completed')
  answer.resolve({ behavior: 'allow', updatedInput: push })
  t.match(await end, { subtype: 'success', result: 'done' })
  t.match(await host.turn(runner, 'ping'), { subtype: 'success', result: 'pong' })
  t.equal(query.prompts.length, 1, 'nor afterwards')
  t.equal(host.of('turn_completed').length, 2)
})

t.test('an agent that comes to its call after it was asked has lost nothing', async (t) => {
  const first = await start(t)
  first.runner.send(script({ before: [DEPLOY, {}] }, { type: 'result' }))
  await until(() => first.runner.canPark)
  const snapshot = first.runner.snapshot!()
  await first.runner.close()
  const late = [{ wait: true }, { before: [DEPLOY, {}] }, { type: 'result', result: 'done' }]
  sdk.putOff.set(first.query.options.sessionId as string, late)
  const { runner, host, query, clock } = await start(t, {}, snapshot)
  await clock.advance(RETURN_MS)
  const end = host.next('turn_completed')
  runner.settleExecution!('e1', ok)
  await query.interrupt()
  t.match(await end, { subtype: 'success', result: 'done' })
  t.match(await host.turn(runner, 'ping'), { subtype: 'success', result: 'pong' })
  t.equal(query.prompts.length, 2)
  t.equal(host.of('turn_completed').length, 2)
})

t.test('a turn that is interrupted before the agent came to its call again has ended once', async (t) => {
  const first = await start(t)
  first.runner.send(script({ before: [DEPLOY, {}] }, { type: 'result' }))
  await until(() => first.runner.canPark)
  const snapshot = first.runner.snapshot!()
  await first.runner.close()
  sdk.putOff.set(first.query.options.sessionId as string, [{ wait: true }, { type: 'result', is_error: true }])
  const { runner, host, query, clock } = await start(t, {}, snapshot)
  const end = host.next('turn_completed')
  await runner.interrupt()
  t.match(await end, { subtype: 'interrupted', isError: false })
  await clock.advance(RETURN_MS)
  t.match(await host.turn(runner, 'ping'), { subtype: 'success', result: 'pong' })
  t.equal(query.prompts.length, 1)
  t.equal(host.of('turn_completed').length, 2)
})

t.test('what a parked turn took counts for no turn after it', async (t) => {
  const config = { maxTurns: 2 }
  const first = await start(t, config)
  const ofItsOwn = { type: 'result', result: 'told of the background', origin: { kind: 'task-notification' } }
  first.runner.send(
    script(
      ...[stream('message_start'), calls('toolu_1'), stream('message_stop'), { before: [DEPLOY, {}] }],
      ...[result('toolu_1'), { type: 'result' }, stream('message_start'), stream('message_start'), ofItsOwn],
    ),
  )
  await until(() => first.runner.canPark)
  const snapshot = first.runner.snapshot!()
  await first.runner.close()
  const { runner, host } = await start(t, config, snapshot)
  runner.settleExecution!('e1', ok)
  await until(() => host.of('turn_completed').length === 2)
  t.match(host.of('turn_completed'), [
    { subtype: 'success', numTurns: 2 },
    { subtype: 'success', numTurns: 3, durationMs: 12 },
  ])
})

t.test('a result reaches the agent in plan mode, too, when its call was made before', async (t) => {
  const making = (...more: object[]) => [calls('toolu_1'), { before: [DEPLOY, {}] }, ...more, { type: 'result' }]
  const live = await start(t)
  const end = live.host.next('turn_completed')
  live.runner.send(script(...making({ ask: [DEPLOY, {}] })))
  await until(() => live.runner.canPark)
  await live.runner.setPermissionMode!('plan')
  live.runner.settleExecution!('e1', ok)
  await end
  t.match(live.query.calls, [hook('allow'), { behavior: 'allow' }])
  t.equal(live.host.asks.length, 0)

  const first = await start(t)
  first.runner.send(script(...making()))
  await until(() => first.runner.canPark)
  await first.runner.setPermissionMode!('plan')
  const snapshot = first.runner.snapshot!()
  await first.runner.close()
  const { runner, host, answered, query } = await start(t, {}, snapshot)
  runner.settleExecution!('e1', ok)
  await until(() => host.of('turn_completed').length === 1)
  t.match(query.calls, [hook('allow')])
  t.match(answered, [{ toolUseId: 'toolu_1', result: ok }])
  runner.send(script({ before: [DEPLOY, {}, 'toolu_2'] }, { type: 'result' }))
  await until(() => host.of('turn_completed').length === 2)
  t.match(query.calls[1], hook('deny'), 'one that is made in it is refused')
})

t.test('which calls are asked about for certain', async (t) => {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'claude-')))
  const configDir = join(cwd, 'config')
  mkdirSync(configDir)
  const certain = (tool: string, input: object, mode: PermissionMode = 'default', rules: string[] = []) =>
    isCertainToAsk({ tool_name: tool, tool_input: { ...input }, tool_use_id: 'u' }, mode, {
      ...{ cwd, configDir, settingSources: ['user'], rules },
    })
  const asked: [string, object, PermissionMode?][] = [
    ['AskUserQuestion', {}, 'bypassPermissions'],
    ['ExitPlanMode', {}, 'plan'],
    ['Write', { file_path: join(cwd, 'x') }],
    ['NotebookEdit', { notebook_path: 'x' }],
    ['Bash', { command: 'npm test' }],
    ['Bash', { command: 'ls && rm x' }],
    ['Bash', { command: 'echo a > x 2>&1' }],
    ['mcp__m__do', {}, 'acceptEdits'],
    ['WebSearch', {}],
  ]
  for (const [tool, input, mode] of asked) t.ok(await certain(tool, input, mode), JSON.stringify([tool, input]))
  const left: [string, object, PermissionMode?][] = [
    ['AskUserQuestion', {}, 'dontAsk'],
    ['Read', { file_path: '/etc/passwd' }],
    ['Write', { file_path: '/x' }],
    ['Write', { file_path: join(cwd, '.claude/x') }],
    ['Write', { file_path: join(cwd, 'x') }, 'acceptEdits'],
    ['Bash', { command: 'git status' }],
    ['Bash', { command: 'ls | wc -l 2>/dev/null' }],
    ['Bash', { command: 'node --version' }],
    ['Bash', { command: 'npm test' }, 'auto'],
    ['WebFetch', { url: 'https://x.example' }],
  ]
  for (const [tool, input, mode] of left) t.notOk(await certain(tool, input, mode), JSON.stringify([tool, input, mode]))
  const npm = { command: 'npm test' }
  t.notOk(await certain('Bash', npm, 'default', ['Bash(npm test:*)']))
  t.notOk(await certain('mcp__m__do', {}, 'default', ['mcp__m']))
  for (const [settings, expected] of [
    ['{"permissions":{"allow":["Bash(npm:*)"]}}', false],
    ['{"permissions":{"allow":["Read(x)"]}}', true],
    ['{"hooks":{}}', false],
    ['broken', false],
  ] as const) {
    writeFileSync(join(configDir, 'settings.json'), settings)
    t.equal(await certain('Bash', npm), expected, settings)
  }
})
