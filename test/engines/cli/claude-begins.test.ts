import t from 'tap'
import { ENDING_MS } from '../../../src/engines/cli/claude/opening.js'
import type { RunnerSnapshot, SessionRunnerConfig } from '../../../src/engines/runner.js'
import { until } from '../../fixtures/build.js'
import { build, script, sdk, start } from '../../fixtures/claude-engine.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'

t.beforeEach(() => sdk.present())

t.test('what cannot stand on a command line is refused before anything is started, and as a choice, too', async (t) => {
  const long = 'é'.repeat(65_530)
  const refused: [Partial<SessionRunnerConfig>, string?][] = [
    [{ model: 'a\0b' }],
    [{ resume: 'a\0b' }],
    [{ resume: long }],
    [{ allowedTools: ['Read', 'a\0b'] }],
    [{ allowedTools: [long.slice(1), 'Read'] }],
    [{ disallowedTools: ['a\0b'] }],
    [{ disallowedTools: Array.from({ length: 20_000 }, (_, index) => `Bash(${index})`) }],
    [{ mcpServers: { m: { command: long } } }, process.execPath],
  ]
  for (const [config, command] of refused) {
    const field = Object.keys(config)[0]!
    const before = sdk.queries.length
    const refusal = { code: 'SG_ERR_VALIDATION', errors: [{ path: field }] }
    await t.rejects(build(t, { config, ...(command && { command }) }), refusal, field)
    t.equal(sdk.queries.length, before)
  }
  // the SDK's own binary is told of them otherwise
  const { runner, query } = await start(t, { config: { mcpServers: { m: { command: long } }, allowedTools: ['Read'] } })
  const { calls } = query
  const before = calls.length
  await t.rejects(runner.setModel!('a\0b'), { code: 'SG_ERR_VALIDATION', errors: [{ path: 'model' }] })
  t.equal(calls.length, before, 'it was told of nothing')
})

t.test('everything the agent could decide by itself is said', async (t) => {
  const config = {
    ...{ model: 'big', allowedTools: ['Read'], disallowedTools: ['Bash'] },
    ...{ maxTurns: 3, maxBudgetUsd: 1.5, mcpServers: { m: { command: 'x' } } },
  }
  const { query, cwd } = await start(t, { config })
  t.match(query.options, {
    ...config,
    cwd,
    permissionMode: 'default',
    settingSources: ['user'],
    systemPrompt: { type: 'preset', preset: 'claude_code' },
    sessionId: /^[0-9a-f-]{36}$/,
    mcpServersDelivery: 'initialize',
  })
  t.notOk('allowDangerouslySkipPermissions' in query.options)
})

t.test('what a server is given stands on no command line, whichever SDK is installed', async (t) => {
  const env = { CLAUDE_PROCESS: '1', CLAUDE_IS_OLD: '1' }
  const mcpServers = { m: { type: 'http' as const, url: 'http://m', headers: { authorization: 'Bearer secret' } } }
  await t.rejects(start(t, { config: { env, mcpServers } }), {
    code: 'SG_ERR_ENGINE_START',
    message: /SDK is too old.*npm i @anthropic-ai\/claude-agent-sdk@latest/,
  })
  await start(t, { config: { env } })
})

t.test('tells what it is before anything is asked of a model, once', async (t) => {
  const { runner, host, query } = await start(t)
  t.match(host.events, [
    {
      type: 'system_init',
      model: 'claude-default',
      permissionMode: 'default',
      apiKeySource: 'ANTHROPIC_API_KEY',
      tools: ['Bash', 'Write'],
      skills: ['pdf'],
      slashCommands: ['help'],
      mcpServers: [{ name: 'm', status: 'failed' }],
      agent: 'claude',
      engineVersion: '2.1.329',
    },
    { type: 'capabilities', models: [{ value: 'big', displayName: 'Big' }], commands: [{ name: 'help' }] },
  ])
  t.strictSame(
    query.prompts.map(({ shouldQuery }) => shouldQuery),
    [false],
    'nothing but the message that asks nothing',
  )
  await host.turn(runner, 'hi')
  t.equal(host.of('system_init').length, 1)
  t.equal(host.of('turn_completed').length, 1)
})

t.test('an agent that does not tell its version gets no prompt that it may misunderstand', async (t) => {
  sdk.present({ version: '' })
  const built = await build(t, { command: process.execPath })
  await built.runner.start(built.host)
  t.equal(sdk.queries.at(-1)!.prompts.length, 0)
  t.match(built.host.of('system_init')[0], { permissionMode: 'default', sdkSessionId: /^[0-9a-f-]{36}$/ })
  await built.host.turn(built.runner, 'hi')
  t.match(built.host.of('model_changed'), [{ model: 'claude-default' }], 'what it reports later is told then')
})

t.test('a subscription that is told late is told all the same', async (t) => {
  const { runner, host } = await start(t)
  const late = {
    type: 'system',
    subtype: 'init',
    apiKeySource: 'oauth',
    session_id: 'x',
    model: 'm',
    permissionMode: 'default',
  }
  await host.turn(runner, script(late, { type: 'result' }))
  t.strictSame(
    host.of('system_init').map(({ apiKeySource }) => apiKeySource),
    ['ANTHROPIC_API_KEY', 'oauth'],
  )
})

t.test('where the credential comes from', async (t) => {
  const cases: [account: object, source: string][] = [
    [{ apiKeySource: 'apiKeyHelper' }, 'apiKeyHelper'],
    [{ apiKeySource: 'none', tokenSource: 'CLAUDE_CODE_OAUTH_TOKEN', apiProvider: 'firstParty' }, 'oauth'],
    [{ subscriptionType: 'Claude Max', apiProvider: 'firstParty' }, 'oauth'],
    [{ tokenSource: 'claude.ai', apiKeySource: 'ANTHROPIC_API_KEY' }, 'ANTHROPIC_API_KEY'],
    [{ tokenSource: 'ANTHROPIC_AUTH_TOKEN' }, 'auth_token'],
    [{ apiKeySource: 'none', apiProvider: 'bedrock' }, 'bedrock'],
    [{ apiKeySource: 'none', tokenSource: 'none' }, 'none'],
  ]
  for (const [account, source] of cases) {
    sdk.present({ account })
    const { host } = await start(t)
    t.equal(host.of('system_init')[0]?.apiKeySource, source)
  }
})

t.test('an earlier session is resumed or forked, and its history replayed', async (t) => {
  const { host, query } = await start(t, { config: { resume: 'old' } })
  t.match(query.options, { resume: 'old' })
  t.notOk('sessionId' in query.options)
  t.match(host.events.slice(2), [
    { type: 'user_message', replay: true, uuid: 'u1', message: { content: 'said in old' } },
    { type: 'assistant_message', replay: true, uuid: 'a1' },
    { type: 'user_message', replay: true, synthetic: true, uuid: 'u2' },
  ])
  t.equal(host.events.length, 5)
  const fork = await start(t, { config: { resume: 'old', forkSession: true } })
  t.match(fork.query.options, { resume: 'old', forkSession: true, sessionId: /^[0-9a-f-]{36}$/ })
})

t.test('a successor goes on from a snapshot', async (t) => {
  const first = await start(t, { config: { model: 'big' } })
  await first.host.turn(first.runner, 'hi')
  await first.runner.setPermissionMode!('acceptEdits')
  const snapshot = JSON.parse(JSON.stringify(first.runner.snapshot!())) as RunnerSnapshot
  const { runner, host, query } = await start(t, { restore: snapshot })
  t.match(query.options, { resume: first.query.options.sessionId, permissionMode: 'acceptEdits', model: 'big' })
  t.equal(host.of('user_message').length, 0, 'what was said is in the log')
  t.match(await host.turn(runner, 'hi'), { numTurns: 2, totalCostUsd: 1 })
})

t.test('one that was never spoken to has nothing to resume', async (t) => {
  const first = await start(t)
  const { query } = await start(t, {
    restore: first.runner.snapshot!(),
    config: { env: { NO_TRANSCRIPT: '1' } },
  })
  t.notOk('resume' in query.options)
})

t.test('one that was cut off in its first turn is resumed when the agent has begun to write it down', async (t) => {
  const first = await start(t)
  const atStart = first.runner.snapshot!()
  const { query } = await start(t, { restore: atStart })
  t.equal(query.options.resume, first.query.options.sessionId)
})

t.test('what an agent says as it ends instead of starting is told with its end', async (t) => {
  const ends: [string, RegExp][] = [
    ['console.error("no licence"); process.exitCode = 3', /^The agent exited with code 3\. It said: no licence$/],
    [
      'console.error("no memory"); process.kill(process.pid, "SIGKILL")',
      /^The agent was ended by SIGKILL, as the system does when it runs out of memory\./,
    ],
  ]
  for (const [program, message] of ends) {
    const { runner, host } = await build(t, { config: { env: { CLAUDE_DIES: program } } })
    await t.rejects(runner.start(host), { code: 'SG_ERR_ENGINE_START', message })
  }
})

t.test('what the SDK itself says against a start is told as it is, and not what the agent does then', async (t) => {
  const { runner, host } = await build(t, { config: { env: { CLAUDE_REFUSES: 'The mode is not known.' } } })
  await t.rejects(runner.start(host), { code: 'SG_ERR_ENGINE_START', message: 'The mode is not known.' })
})

for (const error of ['', String({})])
  t.test(`one that refuses to start without a word, and lives on, is ended: ${error}`, async (t) => {
    const { runner, host } = await build(t, { config: { env: { CLAUDE_REFUSES: error } } })
    const message = 'The agent refused to start, and gave no reason.'
    await t.rejects(runner.start(host), { code: 'SG_ERR_ENGINE_START', message })
  })

t.test('a command that the agent refuses with an error that is no text is told in words', async (t) => {
  const { runner } = await start(t)
  await t.rejects(runner.setModel!(String({})), {
    code: 'SG_ERR_ENGINE_REFUSED',
    message: 'The agent refused, and gave no reason.',
  })
})

t.test('one that says that it cannot work, and lives on, has a moment to end or to think better of it', async (t) => {
  const clock = new VirtualClock()
  const unable = { is_error: true, subtype: 'error_during_execution', errors: ['Not signed in'] }
  const { runner, host } = await build(t, { config: { env: { CLAUDE_UNABLE: JSON.stringify(unable) } }, clock })
  const refused = t.rejects(runner.start(host), { code: 'SG_ERR_ENGINE_START', message: 'Not signed in.' })
  await until(() => clock.pendingTimers === 3, 'its moment, beside those of every start')
  await clock.advance(ENDING_MS)
  await refused
  const better = await start(t, { config: { env: { CLAUDE_TELLS: JSON.stringify(unable) } } })
  t.match(await better.host.turn(better.runner, 'hi'), { result: 'pong' })
})

t.test('that moment is over with its start', async (t) => {
  const clock = new VirtualClock()
  const unable = JSON.stringify({ is_error: true, errors: ['Not signed in'] })
  const { runner, host } = await build(t, { config: { env: { CLAUDE_UNABLE: unable } }, clock })
  const refused = t.rejects(runner.start(host), { code: 'SG_ERR_ENGINE_START' })
  await until(() => clock.pendingTimers === 3, 'its moment, beside those of every start')
  await runner.close()
  await refused
  await until(() => clock.pendingTimers === 0, 'nothing waits for it')
})
