import t, { type Test } from 'tap'
import type { PermissionMode } from '../../../schemas/permissions.js'
import { ACP_MODES, script, startAcp } from '../../fixtures/scripted-acp.js'

const start = (t: Test, options: Parameters<typeof startAcp>[1] = {}) => startAcp(t, { modes: ACP_MODES, ...options })

t.test('who answers in which mode', async (t) => {
  const steps = script(
    { tool: 'write', input: { path: 'a' }, kind: 'edit', ask: true },
    { tool: 'shell', input: { command: 'ls' }, ask: true },
    { tell: 'mode' },
  )
  const outcome: Record<string, unknown> = {}
  for (const mode of Object.keys(ACP_MODES) as PermissionMode[]) {
    const { runner, host } = await start(t, { config: { permissionMode: mode } })
    host.answer = () => ({ behavior: 'deny' })
    const end = await host.turn(runner, steps)
    const ran = host
      .of('user_message')
      .map(({ message }) => !(message.content as { is_error?: boolean }[])[0]?.is_error)
    outcome[mode] = { asked: host.asks.map(({ toolName }) => toolName), ran, mode: end.result }
    await runner.close()
  }
  t.strictSame(outcome, {
    default: { asked: ['write', 'shell'], ran: [false, false], mode: '"ask"' },
    acceptEdits: { asked: ['shell'], ran: [true, false], mode: '"edit"' },
    bypassPermissions: { asked: [], ran: [true, true], mode: '"free"' },
    dontAsk: { asked: [], ran: [false, false], mode: '"ask"' },
    plan: { asked: [], ran: [false, false], mode: '"plan"' },
  })
})

t.test('what was asked for before plan mode is not done in it, whoever allows it', async (t) => {
  const { runner, host } = await start(t)
  let allow = () => {}
  host.answer = () =>
    new Promise((resolve) => {
      allow = () => resolve({ behavior: 'allow' })
    })
  const end = host.next('turn_completed')
  runner.send(script({ tool: 'write', input: { path: 'a' }, kind: 'edit', ask: true }, { text: 'well' }))
  await host.asked()
  await runner.setPermissionMode!('plan')
  allow()
  await end
  t.match(host.of('user_message')[0]?.message.content, [{ type: 'tool_result', tool_use_id: 'call-1', is_error: true }])
})

t.test('to leave plan mode is for a person to allow', async (t) => {
  const { runner, host } = await start(t, { config: { permissionMode: 'plan' } })
  host.answer = () => ({ behavior: 'allow' })
  await host.turn(runner, script({ tool: 'exit', input: {}, kind: 'switch_mode', ask: true }, { mode: 'edit' }))
  t.equal(host.asks.length, 1)
  t.match(host.of('permission_mode_changed'), [{ mode: 'acceptEdits' }])
})

t.test('a mode or a model that the agent chooses by itself is told as an option, too', async (t) => {
  const { runner, host } = await start(t, { config: { permissionMode: 'plan' } })
  await host.turn(runner, script({ chooses: { mode: 'edit', model: 'large' } }, { chooses: {} }))
  t.match(host.of('permission_mode_changed'), [{ mode: 'acceptEdits' }])
  t.equal(host.of('permission_mode_changed').length, 1)
  t.strictSame(host.of('model_changed'), [{ type: 'model_changed', model: 'large' }])
  t.match(runner.snapshot!().state, { permissionMode: 'acceptEdits', model: 'large' })
  await host.turn(runner, script({ text: 'said' }, { chooses: { mode: 'free' } }))
  t.match(host.of('assistant_message').at(-1)?.message, { model: 'large' })
  t.match(runner.snapshot!().state, { permissionMode: 'acceptEdits' }, 'nobody is asked when the gateway says so alone')
})

t.test('an agent that goes to a mode that nobody chose is brought back', async (t) => {
  for (const mode of ['free', 'its own']) {
    const { runner, host } = await start(t, { config: { permissionMode: 'plan' } })
    host.answer = () => ({ behavior: 'allow' })
    await host.turn(runner, script({ tool: 'exit', input: {}, kind: 'switch_mode', ask: true }, { chooses: { mode } }))
    t.match(host.of('engine_event').at(-1), { payload: { type: 'mode_brought_back', mode } })
    t.strictSame(host.of('permission_mode_changed'), [])
    t.match(await host.turn(runner, script({ tell: 'mode' })), { result: '"plan"' }, mode)
    await runner.close()
  }
})

t.test('an agent that went to another mode and did not say so is back when its mode is set', async (t) => {
  const { runner, host } = await start(t)
  await host.turn(runner, script({ chooses: { mode: 'plan' }, silently: true }))
  await runner.setPermissionMode!('default')
  t.match(await host.turn(runner, script({ tell: 'mode' })), { result: '"ask"' })
})

t.test('one that does not come back from there is ended with its turn', async (t) => {
  const { runner, host } = await start(t)
  const steps = script(
    { chooses: { mode: 'free' } },
    { chooses: { mode: 'ask' } },
    { chooses: { mode: 'free' } },
    { hang: true },
  )
  t.match(await host.turn(runner, steps), {
    ...{ subtype: 'error_during_execution', isError: true },
    errors: [/^The agent went to its mode free, which nobody chose, and does not come back: /],
  })
  t.ok(runner.isSpent, 'and begins anew with the next message')
})

t.test('one that did not come back between two turns is told again before the next', async (t) => {
  const { runner, host } = await start(t)
  const late = { sessionUpdate: 'current_mode_update', currentModeId: 'free' }
  const strays = host.next('engine_event')
  await host.turn(runner, script({ chooses: { mode: 'free' }, silently: true }, { stuck: true }, { late }))
  await strays
  // answered after the refusal has been taken
  for (const model of ['large', 'small']) await runner.setModel!(model)
  t.match(await host.turn(runner, script({ tell: 'mode' })), { subtype: 'success', result: '"ask"' })
})

t.test('one that goes astray while its mode is set is brought back to that one', async (t) => {
  const { runner, host } = await start(t)
  const end = host.next('turn_completed')
  runner.send(script({ chooses: { mode: 'free' } }))
  await runner.setPermissionMode!('plan')
  await end
  t.match(host.of('engine_event').at(-1), { payload: { type: 'mode_brought_back', mode: 'free' } })
  // answered after it was brought back
  for (const model of ['large', 'small']) await runner.setModel!(model)
  t.match(await host.turn(runner, script({ tell: 'mode' })), { result: '"plan"' })
})

t.test('one that goes astray as its session opens is brought back before its first turn', async (t) => {
  for (const to of ['free', 'edit']) {
    const { runner, host } = await start(t, { config: { permissionMode: 'plan' }, env: { ACP_STRAYS: to } })
    // answered after what it was told of its mode
    for (const model of ['large', 'small']) await runner.setModel!(model)
    t.match(host.of('system_init'), [{ permissionMode: 'plan' }])
    const isAllowed = to === 'edit'
    t.match(host.of('permission_mode_changed'), isAllowed ? [{ mode: 'acceptEdits' }] : [])
    t.match(await host.turn(runner, script({ tell: 'mode' })), { result: isAllowed ? '"edit"' : '"plan"' }, to)
    await runner.close()
  }
})

t.test('of several ways to allow a call once the one is taken that allows nothing else', async (t) => {
  const { runner, host } = await startAcp(t, { name: 'qwen', modes: ACP_MODES, config: { permissionMode: 'plan' } })
  host.answer = () => ({ behavior: 'allow' })
  const toolCall = { toolCallId: 'call', title: 'Plan:', status: 'pending', kind: 'switch_mode', rawInput: {} }
  const option = (optionId: string, kind: string) => ({ optionId, name: optionId, kind })
  const options = [
    option('restore_previous', 'allow_once'),
    option('proceed_always', 'allow_always'),
    option('proceed_once', 'allow_once'),
    option('cancel', 'reject_once'),
  ]
  const end = await host.turn(runner, script({ asks: { toolCall, options } }, { tell: 'answer' }))
  t.strictSame(JSON.parse(end.result!), { outcome: { outcome: 'selected', optionId: 'proceed_once' } })
  t.equal(host.asks.length, 1)
})

t.test('what an agent says of its options while one is set is not told twice', async (t) => {
  const { runner, host } = await start(t, { env: { ACP_TELLS_CHOICES: '1' } })
  await runner.setPermissionMode!('acceptEdits')
  await runner.setModel!('large')
  t.strictSame(host.of('permission_mode_changed'), [{ type: 'permission_mode_changed', mode: 'acceptEdits' }])
  t.strictSame(host.of('model_changed'), [{ type: 'model_changed', model: 'large' }])
})

t.test('mode and model change while it runs; what the agent refuses is a refusal with its reason', async (t) => {
  const { runner, host } = await start(t)
  await runner.setPermissionMode!('plan')
  await runner.setModel!('large')
  await runner.setModel!(undefined)
  t.match(host.of('permission_mode_changed'), [{ mode: 'plan' }])
  t.strictSame(
    host.of('model_changed').map(({ model }) => model),
    ['large', 'small'],
    'the model is known again',
  )
  await t.rejects(runner.setModel!('nonsense'), {
    code: 'SG_ERR_ENGINE_REFUSED',
    message: /no such value\. The agent offers no model nonsense; it offers small, large\.$/,
  })
  await t.rejects(runner.setPermissionMode!('auto'), { code: 'SG_ERR_PERMISSION_MODE' })
  t.match((await host.turn(runner, script({ tell: 'mode' }))).result, 'plan')
})

t.test('what the agent takes back is not asked any more, and it says itself what becomes of the call', async (t) => {
  const { runner, host } = await start(t)
  host.answer = (_ask, takenBack) =>
    new Promise((resolve) => {
      takenBack!.addEventListener('abort', () => resolve({ behavior: 'deny' }))
    })
  const end = host.next('turn_completed')
  const toolCall = { toolCallId: 'call', title: 'run', status: 'pending', kind: 'execute', rawInput: {} }
  const update = { sessionUpdate: 'tool_call_update', toolCallId: 'call', status: 'completed' }
  const content = [{ type: 'content', content: { type: 'text', text: 'ran all the same' } }]
  const options = [{ optionId: 'once', name: 'Allow', kind: 'allow_once' }]
  runner.send(script({ withdraws: { toolCall, options } }, { raw: { ...update, content } }, { text: 'done' }))
  await host.asked()
  await runner.setModel!('large')
  t.match(await end, { subtype: 'success', result: 'done' })
  t.match(host.of('user_message'), [{ message: { content: [{ tool_use_id: 'call', content: 'ran all the same' }] } }])
})

t.test('a dozen questions in a turn are no leak that Node warns of', async (t) => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const { runner, host } = await start(t)
  host.answer = () => ({ behavior: 'allow' })
  await host.turn(runner, script(...Array(12).fill({ tool: 'shell', input: { command: 'ls' }, ask: true })))
  t.equal(host.asks.length, 12)
  // a warning is told a moment after its cause
  await new Promise(setImmediate)
  t.strictSame(warnings, [])
})
