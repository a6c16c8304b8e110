import { join } from 'node:path'
import t from 'tap'
import { until } from '../../fixtures/build.js'
import { said, script, sdk, start, stream } from '../../fixtures/claude-engine.js'

t.beforeEach(() => sdk.present())

t.test('a message per block, with the uuid of its deltas, and the usage with the last one', async (t) => {
  const { runner, host } = await start(t)
  await host.turn(
    runner,
    script(
      stream({ type: 'message_start', message: { usage: { input_tokens: 9, output_tokens: 1 } } }),
      stream({ type: 'content_block_start', index: 0 }),
      stream({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'he' } }),
      stream({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'llo' } }),
      said({ type: 'text', text: 'hello' }),
      stream({ type: 'content_block_stop', index: 0 }),
      stream({ type: 'content_block_start', index: 1 }),
      stream({ type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{}' } }),
      said({ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} }),
      stream({ type: 'content_block_stop', index: 1 }),
      stream({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 30 } }),
      {
        type: 'user',
        uuid: 'u',
        parent_tool_use_id: null,
        message: { role: 'user', content: [{ type: 'tool_result' }] },
      },
      { type: 'result' },
    ),
  )
  const [text, tool] = host.of('assistant_message')
  t.notOk(text?.message.usage)
  t.match(tool?.message, { stopReason: 'tool_use', usage: { inputTokens: 9, outputTokens: 30 } })
  t.strictSame(
    host.of('stream_delta').map(({ uuid, blockIndex, delta }) => [uuid, blockIndex, delta]),
    [
      [text?.uuid, 0, { type: 'text', text: 'he' }],
      [text?.uuid, 0, { type: 'text', text: 'llo' }],
      [tool?.uuid, 0, { type: 'tool_input', json: '{}' }],
    ],
  )
  t.not(text?.uuid, tool?.uuid)
  t.match(host.of('user_message'), [{ uuid: 'u', synthetic: true }])
})

t.test('a call is told before it is asked for', async (t) => {
  const { runner, host, query } = await start(t)
  host.answer = ({ input }) => {
    t.equal(host.of('assistant_message').length, 1)
    return { behavior: 'allow', updatedInput: { ...input, more: 1 } }
  }
  await host.turn(
    runner,
    script(
      stream({ type: 'message_start', message: {} }),
      said({ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} }),
      { ask: ['Bash', { command: 'ls' }] },
      { type: 'result' },
    ),
  )
  t.match(host.asks, [{ toolName: 'Bash', toolUseId: 'toolu_1', input: { command: 'ls' }, title: 'May I?' }])
  t.match(query.calls, [{ behavior: 'allow', updatedInput: { command: 'ls', more: 1 } }])
})

t.test('an allow without an input runs what was shown; a deny carries its reason', async (t) => {
  const { runner, host, query } = await start(t)
  host.answer = () => ({ behavior: 'allow' })
  await host.turn(runner, script({ ask: ['Bash', { command: 'ls' }] }, { type: 'result' }))
  host.answer = () => ({ behavior: 'deny', message: 'not now', interrupt: true })
  await host.turn(runner, script({ ask: ['Bash', { command: 'ls' }] }, { type: 'result' }))
  t.match(query.calls, [
    { behavior: 'allow', updatedInput: { command: 'ls' } },
    { behavior: 'deny', message: 'not now', interrupt: true },
  ])
})

t.test(
  'what a person answers reaches the agent without half a character, which its model would refuse ever after',
  async (t) => {
    const { runner, host, query } = await start(t)
    host.answer = () => ({ behavior: 'deny', message: 'no \ud83d' })
    await host.turn(runner, script({ ask: ['Bash', { command: 'ls' }] }, { type: 'result' }))
    host.answer = () => ({ behavior: 'allow', updatedInput: { command: 'ls \ud83d' } })
    await host.turn(runner, script({ ask: ['Bash', { command: 'ls' }] }, { type: 'result' }))
    t.match(query.calls, [{ message: 'no \ufffd' }, { updatedInput: { command: 'ls \ufffd' } }])
  },
)

t.test('in plan mode nothing is changed, whatever is allowed', async (t) => {
  const { runner, host, query, cwd } = await start(t, { config: { permissionMode: 'plan' } })
  const denied = async (tool: string, input: object) => {
    await host.turn(runner, script({ before: [tool, input] }, { type: 'result' }))
    return JSON.stringify(query.calls.pop()).includes('"deny"')
  }
  const changing: [string, object][] = [
    ['Write', { file_path: '/x' }],
    ['Edit', { file_path: join(cwd, '.claude/plans/../x.md') }],
    ['NotebookEdit', {}],
    ['mcp__m__do', {}],
    ['Bash', { command: 'touch x' }],
    ['Bash', { command: 'ls; touch x' }],
    ['Bash', { command: 'ls > x' }],
    ['Bash', { command: 'ls $(touch x)' }],
    ['Bash', { command: 'ls `touch x`' }],
    ['Bash', { command: 'ls\ntouch x' }],
    ['Bash', { command: 'cat a | tee b' }],
    ['Bash', { command: 'ls && touch x' }],
    ['Bash', { command: 'find . -delete' }],
    ['Bash', { command: 'find . -"del"ete' }],
    ['Bash', { command: 'find *' }],
    // a file of the repository's can be named -delete
    ['Bash', { command: "find . ''-d*" }],
    ['Bash', { command: 'find . "-"delet?' }],
    ['Bash', { command: "find . 'a'* -name 'b'" }],
    // no pipe
    ['Bash', { command: "find . '| ls ' -d*" }],
    ['Bash', {}],
  ]
  for (const [tool, input] of changing) t.ok(await denied(tool, input), JSON.stringify([tool, input]))
  const looking: [string, object][] = [
    ['Read', { file_path: '/x' }],
    ['ExitPlanMode', {}],
    ['AskUserQuestion', {}],
    ['Write', { file_path: join(cwd, '.claude/plans/a.md') }],
    ['Bash', { command: 'ls -la src' }],
    ['Bash', { command: "find . -name '*.ts' | head -5" }],
    ['Bash', { command: 'find . -name "two words"' }],
    ['Bash', { command: 'find . -name a\'*\'".?"' }],
    ['Bash', { command: 'grep -rn "a b" src | wc -l' }],
  ]
  for (const [tool, input] of looking) t.notOk(await denied(tool, input), JSON.stringify([tool, input]))

  await runner.setPermissionMode!('default')
  t.notOk(await denied('Write', { file_path: '/x' }), 'only in plan mode')
})

t.test(
  'an allow changes nothing in plan mode, neither of what was asked for before nor with another input',
  async (t) => {
    for (const approvalTimeoutMs of [undefined, 0]) {
      const { runner, host, query } = await start(t, {
        config: { ...(approvalTimeoutMs === 0 && { approvalTimeoutMs }) },
      })
      host.answer = async () => {
        await runner.setPermissionMode!('plan')
        return { behavior: 'allow' }
      }
      // one that is sure to ask does so before the hook lets it through
      const how = approvalTimeoutMs === 0 ? 'before' : 'ask'
      await host.turn(runner, script({ [how]: ['Bash', { command: 'touch x' }] }, { type: 'result' }))
      t.equal(host.asks.length, 1)
      t.match(JSON.stringify(query.calls.pop()), /"deny".*plan mode/)
      host.answer = () => ({ behavior: 'allow', updatedInput: { command: 'touch x' } })
      await host.turn(runner, script({ ask: ['Bash', { command: 'ls' }] }, { type: 'result' }))
      t.match(query.calls.pop(), { behavior: 'deny', message: /plan mode/ })
      host.answer = () => ({ behavior: 'allow', updatedInput: { command: 'ls -l' } })
      await host.turn(runner, script({ ask: ['Bash', { command: 'ls' }] }, { type: 'result' }))
      t.match(query.calls.pop(), { behavior: 'allow', updatedInput: { command: 'ls -l' } })
    }
  },
)

t.test('success that is none, and what an interrupt leaves', async (t) => {
  const { runner, host, query } = await start(t)
  t.match(await host.turn(runner, script({ type: 'result', is_error: true, result: 'API Error: 401' })), {
    subtype: 'error_during_execution',
    isError: true,
    errors: ['API Error: 401'],
  })
  t.match(
    await host.turn(
      runner,
      script({ type: 'result', subtype: 'error_max_turns', is_error: true, errors: ['too many'] }),
    ),
    { subtype: 'error_max_turns', isError: true, errors: ['too many'] },
  )
  const begun = host.next('engine_event')
  const end = host.next('turn_completed')
  const failed = { type: 'result', subtype: 'error_during_execution', is_error: true }
  runner.send(script({ type: 'begun' }, { wait: true }, failed))
  await begun
  await runner.interrupt()
  t.match(await end, { subtype: 'interrupted', isError: false })
  t.match(query.calls, ['interrupt'])
})

t.test('a compaction that came to nothing is told as such, interrupted or not', async (t) => {
  const { runner, host } = await start(t)
  const status = { type: 'system', subtype: 'status', status: null }
  const failed = { ...status, compact_result: 'failed', compact_error: 'API Error: 500' }
  const ended = { type: 'result', num_turns: 0, result: '' }
  t.match(await host.turn(runner, script({ ...status, compact_result: 'success' }, ended)), { subtype: 'success' })
  t.match(await host.turn(runner, script(failed, ended)), {
    ...{ subtype: 'error_during_execution', isError: true, errors: ['API Error: 500'] },
  })
  const begun = host.next('engine_event')
  const end = host.next('turn_completed')
  runner.send(script({ ...status, status: 'compacting' }, { wait: true }, failed, ended))
  await begun
  await runner.interrupt()
  t.match(await end, { subtype: 'interrupted', isError: false })
  const byItself = script(failed, { type: 'result', result: 'done' })
  t.match(
    await host.turn(runner, byItself),
    { subtype: 'success', result: 'done' },
    'a turn that goes on has its own end',
  )
  t.match(await host.turn(runner, script(ended)), { subtype: 'success' }, 'and nothing of it is left for the next')
  t.match(await host.turn(runner, 'hi'), { subtype: 'success' })
})

t.test('an interrupt that the agent does not take is a refusal with its reason', async (t) => {
  const { runner, host, query } = await start(t)
  const spoke = host.next('assistant_message')
  runner.send(script(said({ type: 'text', text: 'begun' }), { wait: true }, { type: 'result' }))
  await spoke
  const { interrupt } = query as unknown as { interrupt(): Promise<void> }
  Object.assign(query, { interrupt: () => Promise.reject(new Error('Query closed')) })
  await t.rejects(runner.interrupt(), { code: 'SG_ERR_ENGINE_REFUSED', message: 'Query closed' })
  const end = host.next('turn_completed')
  await interrupt.call(query)
  await end
})

t.test('an interrupt that came before the agent began is repeated when it begins', async (t) => {
  const { runner, host, query } = await start(t)
  const end = host.next('turn_completed')
  runner.send(script({ type: 'system', subtype: 'status', status: 'requesting' }, { wait: true }, { type: 'result' }))
  await runner.interrupt()
  await end
  t.strictSame(query.calls, ['interrupt', 'interrupt'])
})

t.test('usage is the turn’s, turns and cost are the session’s, without what an earlier session had cost', async (t) => {
  const { runner, host } = await start(t)
  const first = await host.turn(runner, 'hi')
  t.match(first, { numTurns: 1, totalCostUsd: 0.5, durationMs: 12, result: 'pong' })
  t.strictSame(first.usage, { inputTokens: 100, outputTokens: 20, cacheCreationTokens: 7, cacheReadTokens: 5 })
  const second = await host.turn(runner, 'hi')
  t.match(second, { numTurns: 2, totalCostUsd: 1, usage: first.usage })
  await host.next('context_usage')
})

t.test('a conversation that is cleared is another one of the agent, which counts anew', async (t) => {
  const { runner, host } = await start(t)
  const first = await host.turn(runner, 'hi')
  const init = {
    type: 'system',
    subtype: 'init',
    session_id: 'another',
    apiKeySource: 'none',
    permissionMode: 'default',
  }
  const said = { ...init, model: 'claude-x', cwd: '/', tools: [], mcp_servers: [], slash_commands: [], skills: [] }
  await host.turn(runner, script(said, { type: 'result', num_turns: 0, modelUsage: {}, total_cost_usd: 0 }))
  t.equal(host.of('system_init').at(-1)!.sdkSessionId, 'another')
  t.match(runner.snapshot!(), { state: { sdkSessionId: 'another' } })
  const { modelUsage, cost } = { modelUsage: { some: { inputTokens: 60, outputTokens: 5 } }, cost: 0.25 }
  const next = await host.turn(runner, script({ type: 'result', modelUsage, total_cost_usd: cost }))
  t.match(next, { usage: { inputTokens: 60, outputTokens: 5 }, totalCostUsd: first.totalCostUsd + cost })
})

t.test('a turn of the agent’s own ends nobody else’s', async (t) => {
  const { runner, host } = await start(t)
  const end = await host.turn(
    runner,
    script({ type: 'result', user_message_uuids: ['other'] }, { type: 'result', result: 'mine' }),
  )
  t.equal(end.result, 'mine')
  t.equal(end.usage.inputTokens, 200, 'and its tokens are counted')
  const background = { type: 'result', origin: { kind: 'task-notification' }, result: 'the build is done' }
  t.match(await host.turn(runner, script(background, { type: 'result', result: 'mine, too' })), { result: 'mine, too' })
  t.equal(host.of('turn_completed').length, 2)
})

t.test('what it does in the background keeps it, and so does the turn that comes of that', async (t) => {
  const { runner, host, query } = await start(t)
  t.ok(runner.canRelease)
  const tasks = (...running: object[]) => ({ type: 'system', subtype: 'background_tasks_changed', tasks: running })
  await host.turn(runner, script(tasks({}), { type: 'result' }))
  t.notOk(runner.canRelease, 'work goes on')
  await runner.interrupt()
  t.same(query.calls, [], 'that is no turn')

  const begun = [stream({ type: 'message_start' }), stream({ type: 'message_stop' })]
  const own = { type: 'result', is_error: true, origin: { kind: 'task-notification' } }
  const end = await host.turn(
    runner,
    script(tasks({ ambient: true }), { type: 'result' }, ...begun, { wait: true }, own),
  )
  t.match(end, { subtype: 'success' })
  await until(() => !runner.canRelease, 'a turn of its own')
  const ownEnd = host.next('turn_completed')
  await runner.interrupt()
  t.match(await ownEnd, { subtype: 'interrupted', isError: false })
  t.ok(runner.canRelease)
})

t.test('what its predecessor did in the background is no turn of a session that is opened', async (t) => {
  const notified = { num_turns: 0, result: '', origin: { kind: 'task-notification' } }
  const { runner, host } = await start(t, { config: { env: { CLAUDE_TELLS: JSON.stringify(notified) } } })
  t.match(await host.turn(runner, 'hi'), { result: 'pong' })
  t.equal(host.of('turn_completed').length, 1)
})

t.test('mode and model change while it runs; what they became is told', async (t) => {
  const { runner, host } = await start(t)
  await runner.setPermissionMode!('acceptEdits')
  await runner.setModel!('big')
  await host.turn(runner, 'hi')
  await host.turn(runner, script({ type: 'system', subtype: 'status', permissionMode: 'plan' }, { type: 'result' }))
  t.strictSame(
    host.events.flatMap((event) =>
      event.type === 'model_changed' ? [event.model] : event.type === 'permission_mode_changed' ? [event.mode] : [],
    ),
    ['acceptEdits', 'big', 'claude-big', 'plan'],
  )
  await t.rejects(runner.setPermissionMode!('bypassPermissions'), {
    code: 'SG_ERR_ENGINE_REFUSED',
    message: /not launched with that/,
  })
})

t.test('a model that is chosen in a turn stays chosen, whatever the turn began with', async (t) => {
  const { runner, host } = await start(t)
  const begun = host.next('engine_event')
  const end = host.next('turn_completed')
  const said = { session_id: 'x', apiKeySource: 'none', permissionMode: 'default', model: 'claude-default' }
  const late = { type: 'system', subtype: 'init', cwd: '/', ...said }
  runner.send(script({ type: 'begun' }, { wait: true }, late, { type: 'result' }))
  await begun
  await runner.setModel!('big')
  await runner.interrupt()
  await end
  t.match(runner.snapshot!(), { state: { model: 'big' } }, 'whoever goes on has it')
  await host.turn(runner, 'hi')
  t.strictSame(
    host.of('model_changed').map(({ model }) => model),
    ['big', 'claude-big'],
  )
})

t.test('a retry, a limit and whatever else are told; noise is not', async (t) => {
  const { runner, host } = await start(t)
  await host.turn(
    runner,
    script(
      { type: 'system', subtype: 'api_retry', attempt: 1 },
      { type: 'system', subtype: 'session_state_changed' },
      { type: 'command_lifecycle' },
      { type: 'system', subtype: 'status', status: 'requesting' },
      { type: 'system', subtype: 'status', status: 'compacting' },
      { type: 'rate_limit_event', rate_limit_info: { status: 'allowed_warning' } },
      { type: 'result' },
    ),
  )
  t.match(host.of('engine_event'), [{ payload: { subtype: 'api_retry' } }, { payload: { status: 'compacting' } }])
  t.equal(host.of('engine_event').length, 2)
  t.match(host.of('rate_limit'), [{ info: { status: 'allowed_warning' } }])
})

t.test('the death of the agent ends the session', async (t) => {
  const { runner, host } = await start(t)
  const died = host.next('session_error')
  runner.send(script({ die: 'exited with code 143' }))
  t.match(await died, { message: /exited with code 143\.$/, code: 'SG_ERR_ENGINE_FAILED' })
})

t.test('the death of an agent that has a turn behind it is told with how to go on', async (t) => {
  const { runner, host, query } = await start(t)
  await host.turn(runner, 'hi')
  const died = host.next('session_error')
  runner.send(script({ die: 'exited with code 143' }))
  const { message } = await died
  t.match(message, `143. A new session with "resume": "${query.options.sessionId}" goes on from there.`)
})

t.test('close is no death', async (t) => {
  const { runner, host, query } = await start(t)
  await Promise.all([runner.close(), runner.close()])
  t.ok(query.closed)
  t.equal(host.of('session_error').length, 0)
})
