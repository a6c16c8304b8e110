import t, { type Test } from 'tap'
import { call, chunk, done, script, startAcp } from '../../fixtures/scripted-acp.js'

const start = (t: Test, name?: string) => startAcp(t, { name })

t.test('an answer to a prompt that says nothing of its end is told in a sentence', async (t) => {
  const { runner, host } = await start(t)
  const subtype = 'error_during_execution'
  for (const answer of [null, {}, { stopReason: 7 }])
    t.match(await host.turn(runner, script({ answer })), { subtype, errors: [/^The agent ended the turn without/] })
  const unknown = await host.turn(runner, script({ answer: { stopReason: 'constructor' } }))
  t.match(unknown, { subtype, errors: ['The turn ended with constructor.'] })
  t.match(await host.turn(runner, 'hi'), { subtype: 'success', result: 'pong' })
})

t.test('what an agent says it has used counts where it can be a count', async (t) => {
  const { runner, host } = await start(t)
  const none = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }
  const of = async (token_count: object) =>
    (await host.turn(runner, script({ answer: { stopReason: 'end_turn', _meta: { quota: { token_count } } } }))).usage
  t.strictSame(await of({ input_tokens: '70', output_tokens: -5, cachedReadTokens: null }), none)
  t.strictSame(await of({ input_tokens: 1e300, output_tokens: 5 }), { ...none, outputTokens: 5 })
  const usage = { inputTokens: 'many', outputTokens: 6 }
  await host.turn(runner, script({ raw: chunk('so', { _meta: { usage } }) }, { answer: { stopReason: 'end_turn' } }))
  t.strictSame(host.of('turn_completed').at(-1)?.usage, { ...none, outputTokens: 6 })
})

t.test('what was thought is counted once, whether an agent counts it beside what was said or among it', async (t) => {
  const { runner, host } = await start(t)
  for (const totalTokens of [190, 160]) {
    const usage = { inputTokens: 100, outputTokens: 50, thoughtTokens: 30, cachedReadTokens: 10, totalTokens }
    const end = await host.turn(runner, script({ answer: { stopReason: 'end_turn', usage } }))
    const outputTokens = totalTokens - 110
    t.strictSame(end.usage, { inputTokens: 100, outputTokens, cacheCreationTokens: 0, cacheReadTokens: 10 })
  }
})

t.test('a cost below nothing is none', async (t) => {
  const { runner, host } = await start(t)
  const costs = (amount: number) => ({
    raw: { sessionUpdate: 'usage_update', used: 1, size: 10, cost: { amount, currency: 'USD' } },
  })
  t.equal((await host.turn(runner, script(costs(0.5)))).totalCostUsd, 0.5)
  t.equal((await host.turn(runner, script(costs(-3)))).totalCostUsd, 0.5)
  t.equal((await host.turn(runner, script(costs(0.75)))).totalCostUsd, 0.75)
})

t.test('how full its context is is told where that can be so', async (t) => {
  const { runner, host } = await start(t)
  const counts: [unknown, unknown][] = [
    [1e300, 10],
    [-1, 10],
    [5, 1e300],
    [5, 0],
    [0, 10],
    [25, 10],
  ]
  const told = counts.map(([used, size]) => ({ raw: { sessionUpdate: 'usage_update', used, size } }))
  await host.turn(runner, script(...told, { text: 'so' }))
  t.strictSame(
    host.of('context_usage').map(({ usage }) => usage),
    [
      { totalTokens: 0, maxTokens: 10, percentage: 0 },
      { totalTokens: 25, maxTokens: 10, percentage: 100 },
    ],
  )
})

t.test('an agent that writes a line which nobody could read is told of with that', async (t) => {
  const { runner, host } = await start(t)
  const failed = host.next('session_error')
  runner.send(script({ line: 40 }))
  t.match((await failed).message, /^The agent wrote a line of more than 32 MiB, which is not read\. The agent /)
})

t.test('an agent that goes on and on before its session is open is ended with that', async (t) => {
  const opening = startAcp(t, { env: { ACP_FLOODS: 'Infinity' }, config: { resume: 'earlier' } })
  const message = 'The agent said more than 128 MiB before its session was open, which is not kept.'
  await t.rejects(opening, { code: 'SG_ERR_ENGINE_START', message })
})

t.test('a session goes on however long what its agent replays is: nothing of it is kept', async (t) => {
  const first = await start(t)
  first.runner.send(script({ say: 'done' }))
  await first.host.next('turn_completed')
  const { runner } = await startAcp(t, { restore: first.runner.snapshot!(), env: { ACP_FLOODS: '132' } })
  t.match(runner.snapshot!().state, { sdkSessionId: 'scripted-session' })
})

t.test('an agent that ends as its mode or its model is set is told of with how it ended', async (t) => {
  const { runner, host } = await startAcp(t, { env: { ACP_ENDS_WHEN_SET: '3' } })
  const failed = host.next('session_error')
  const code = 'SG_ERR_ENGINE_REFUSED'
  await t.rejects(runner.setModel!('large'), { code, message: 'The agent exited with code 3.' })
  await failed
})

const answered = { answer: { stopReason: 'end_turn' } }
for (const [what, steps, error] of [
  [
    'after what its model had begun to say',
    [{ raw: chunk('Once upon a ') }, { raw: chunk('stream disconnected before completion\n\n') }, answered],
    'stream disconnected before completion',
  ],
  ['without a word', [answered], 'The agent ended the turn without a word: its model may not have answered.'],
  [
    'as a login that is not taken',
    [{ error: '401', code: -32000 }],
    'What the agent is logged in with was not taken: Internal error: 401. Check CODEX_API_KEY or OPENAI_API_KEY, or log in with the agent itself.',
  ],
  [
    'as a login that is not taken, in a sentence',
    [{ error: 'Sign in again.', code: -32000 }],
    'What the agent is logged in with was not taken: Internal error: Sign in again. Check CODEX_API_KEY or OPENAI_API_KEY, or log in with the agent itself.',
  ],
] as const)
  t.test(`a refusal of the vendor that codex tells ${what} is told by itself`, async (t) => {
    const { runner, host } = await start(t, 'codex')
    const end = await host.turn(runner, script(...steps))
    t.match(end, { subtype: 'error_during_execution', isError: true })
    t.strictSame(end.errors, [error])
  })

t.test('a turn that gemini ends well without a whole answer of its model has failed', async (t) => {
  const uncounted = (count: number) => ({
    answer: { stopReason: 'end_turn', _meta: { quota: { token_count: { input_tokens: count, output_tokens: 0 } } } },
  })
  const half = { raw: chunk('half of it ') }
  const { runner, host } = await start(t, 'gemini')
  for (const [steps, errors] of [
    [[half, half, uncounted(0)], ['The answer of the model was cut off each time that the agent asked for it.']],
    [[uncounted(0)], ['The agent ended the turn without a word: its model may not have answered.']],
  ] as const) {
    const end = await host.turn(runner, script(...steps))
    t.match(end, { subtype: 'error_during_execution', isError: true })
    t.strictSame(end.errors, errors)
  }
  for (const steps of [
    [half, uncounted(5)],
    [half, answered],
    // as from an endpoint that tells no tokens
    [half, uncounted(0)],
  ])
    t.match(await host.turn(runner, script(...steps)), { subtype: 'success', result: 'half of it ' })
  for (const command of ['/memory', ' /memory', '\n/memory', '$memory'])
    t.match(await host.turn(runner, `${command} ${script(half, uncounted(0))}`), { subtype: 'success' }, command)
})

t.test(
  'a turn that is interrupted before its model has answered is told as that, whatever the agent calls its end',
  async (t) => {
    const { runner, host } = await start(t, 'opencode')
    const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 }
    const end = host.turn(runner, script({ hang: true, answer: { stopReason: 'end_turn', usage } }))
    await runner.interrupt()
    t.match(await end, { subtype: 'interrupted', isError: false })
  },
)

t.test('a turn that kilo ends well has failed where its model answered nothing that could be read', async (t) => {
  const counted = (outputTokens: number) => ({
    answer: { stopReason: 'end_turn', usage: { inputTokens: 0, outputTokens, totalTokens: outputTokens } },
  })
  const { runner, host } = await start(t, 'kilo')
  t.match(await host.turn(runner, script(counted(0))), {
    subtype: 'error_during_execution',
    errors: ['The agent ended the turn without a word: its model may not have answered.'],
  })
  for (const steps of [
    [counted(5)],
    // as from an endpoint that tells no tokens
    [{ raw: chunk('hello') }, counted(0)],
    [{ raw: call('c1') }, { raw: done('c1', 'listed') }, counted(0)],
  ])
    t.match(await host.turn(runner, script(...steps)), { subtype: 'success' })
  t.match(await host.turn(runner, `/compact ${script(counted(0))}`), { subtype: 'success' }, 'a command of its own')

  const nothing = { answer: { stopReason: 'end_turn' } }
  t.match(await host.turn(runner, `/tidy ${script(nothing)}`), { subtype: 'success' }, 'nobody knows of which')
  const availableCommands = [{ name: 'tidy', description: 'up' }]
  await host.turn(runner, script({ raw: { sessionUpdate: 'available_commands_update', availableCommands } }))
  for (const text of ['/tidy', '/compact', 'tidy /x'])
    t.match(await host.turn(runner, `${text} ${script(nothing)}`), { subtype: 'success' }, text)
  t.match(
    await host.turn(runner, `/untidy ${script(nothing)}`),
    { subtype: 'error_during_execution', errors: [/lists none named untidy.*Begin the message with something else/] },
    'what it takes for a command, and is none, it has dropped',
  )
  const spoken = { raw: chunk('hello') }
  t.match(await host.turn(runner, `/untidy ${script(spoken, nothing)}`), { subtype: 'success' }, 'it has not')
})
