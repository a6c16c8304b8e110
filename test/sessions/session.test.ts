import t from 'tap'
import type { PermissionMode } from '../../schemas/permissions.js'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildSession } from '../fixtures/session-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test('times never go backwards, however much is told when a session ends', async (t) => {
  const clock = new VirtualClock()
  const { session, runner, registry, id, events } = await buildSession(t, { prompt: 'go' }, { clock })
  for (let n = 0; n < 3; n++)
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: `u${n}`, input: { path: 'a' } })
  await until(() => session.status === 'awaiting_approval')
  let now = clock.now()
  clock.now = () => ++now
  await registry.end(id)
  const told = await events()
  t.equal(told.at(-1)?.type, 'session_closed')
  const times = told.map(({ ts }) => ts)
  t.same(
    times,
    [...times].sort((a, b) => a - b),
  )
})

t.test('the status follows the state from the start to the end', async (t) => {
  const { session, runner, events } = await buildSession(t, { prompt: 'go' })
  t.equal(session.status, 'running')
  const answer = runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: { path: 'a' } })
  t.equal(session.status, 'awaiting_approval')
  const [request] = session.clients.attachedFrame({}).pendingPermissions
  session.resolvePermission(request!.id, { behavior: 'allow' })
  t.equal(session.status, 'running')
  t.same(await answer, { behavior: 'allow', updatedInput: { path: 'a' } })
  runner.complete({ numTurns: 3, totalCostUsd: 0.5 })
  t.equal(session.status, 'idle')
  t.match(session.info(), { numTurns: 3, cost: 0.5, pendingPermissions: 0 })
  await session.close('client')
  t.equal(session.status, 'closed')
  t.ok(runner.closed)
  const shown = (await events()).flatMap((event) => (event.type === 'status_changed' ? [event.status] : []))
  t.same(shown, ['running', 'awaiting_approval', 'running', 'idle', 'closed'])
})

t.test('a session without a prompt waits idle', async (t) => {
  const { session, types } = await buildSession(t)
  t.equal(session.status, 'idle')
  t.same(await types(), ['system_init', 'status_changed'])
})

t.test('a turn that ends while an approval is pending does not stay running', async (t) => {
  const { session, runner } = await buildSession(t, { prompt: 'go' })
  void runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: {} })
  runner.complete()
  t.equal(session.status, 'awaiting_approval')
  await session.interrupt()
  t.equal(session.status, 'idle')
})

t.test('messages that come during a turn wait for it, in order', async (t) => {
  const { session, runner } = await buildSession(t, { prompt: 'one' })
  await session.handle({ type: 'user_message', text: 'two', id: 'a' })
  await session.handle({ type: 'user_message', text: 'three' })
  t.same(
    runner.sent.map(({ text }) => text),
    ['one'],
  )
  runner.complete()
  t.equal(session.status, 'running', 'no idle moment while something waits')
  await until(() => runner.sent.length === 2)
  t.same(runner.sent[1], { text: 'two', commandId: 'a' })
  runner.complete()
  await until(() => runner.sent.length === 3)
})

t.test('whenBusy: interrupt comes next, reject is refused', async (t) => {
  const { session, runner, events } = await buildSession(t, { prompt: 'one' })
  await t.rejects(session.handle({ type: 'user_message', text: 'no', whenBusy: 'reject' }), {
    code: 'SG_ERR_SESSION_BUSY',
  })
  await session.handle({ type: 'user_message', text: 'later' })
  await session.handle({ type: 'user_message', text: 'now', whenBusy: 'interrupt' })
  await until(() => runner.sent.length === 2)
  t.equal(runner.sent[1]?.text, 'now')
  t.match(
    (await events()).find(({ type }) => type === 'turn_completed'),
    { subtype: 'interrupted' },
  )
  runner.complete()
  await until(() => runner.sent.length === 3)
  t.equal(runner.sent[2]?.text, 'later')
})

t.test('an approval that nobody gives in time is a deny', async (t) => {
  const { session, runner, clock, events } = await buildSession(t, { prompt: 'go', approvalTimeoutMs: 1_000 })
  const decision = runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: {} })
  t.equal(session.clients.attachedFrame({}).pendingPermissions[0]?.expiresAt, clock.now() + 1_000)
  await clock.advance(999)
  t.equal(session.status, 'awaiting_approval')
  await clock.advance(1)
  t.match(await decision, { behavior: 'deny' })
  t.match(
    (await events()).find(({ type }) => type === 'permission_resolved'),
    { resolvedBy: 'timeout', behavior: 'deny' },
  )
})

t.test('approvalTimeoutMs: 5 minutes by default, 0 waits without limit', async (t) => {
  const usual = await buildSession(t)
  void usual.runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: {} })
  await usual.clock.advance(300_000)
  t.equal(usual.session.info().pendingPermissions, 0)
  const patient = await buildSession(t, { approvalTimeoutMs: 0 })
  void patient.runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: {} })
  await patient.clock.advance(10 ** 10)
  t.equal(patient.session.info().pendingPermissions, 1)
})

t.test('the first answer wins and the input that runs is the one that was shown', async (t) => {
  const { session, runner } = await buildSession(t)
  const input = { command: 'ls' }
  const decision = runner.host.requestPermission({ toolName: 'Bash', toolUseId: 'u', input })
  input.command = 'rm -rf /'
  const [request] = session.clients.attachedFrame({}).pendingPermissions
  t.same(request?.input, { command: 'ls' })
  session.resolvePermission(request!.id, { behavior: 'allow' })
  t.throws(() => session.resolvePermission(request!.id, { behavior: 'deny' }), { code: 'SG_ERR_PERMISSION_NOT_FOUND' })
  t.same(await decision, { behavior: 'allow', updatedInput: { command: 'ls' } })
})

t.test('an agent that cannot take a changed input: the change is refused and the request stays', async (t) => {
  const { session, runner } = await buildSession(t, {}, { script: { capabilities: { updatedInput: false } } })
  const decision = runner.host.requestPermission({ toolName: 'Bash', toolUseId: 'u', input: { command: 'ls' } })
  const [request] = session.clients.attachedFrame({}).pendingPermissions
  const changed = { behavior: 'allow', updatedInput: { command: 'ls -l' } } as const
  t.throws(() => session.resolvePermission(request!.id, changed), { code: 'SG_ERR_UNSUPPORTED', statusCode: 400 })
  t.equal(session.info().pendingPermissions, 1)
  session.resolvePermission(request!.id, { behavior: 'allow', updatedInput: { command: 'ls' } })
  t.match(await decision, { behavior: 'allow', updatedInput: { command: 'ls' } })
})

t.test('interrupt and close deny what waits, and nothing is asked of an ended session', async (t) => {
  const { session, runner } = await buildSession(t, { prompt: 'go' })
  const first = runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: {} })
  await session.handle({ type: 'interrupt' })
  t.match(await first, { behavior: 'deny' })
  const second = runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: {} })
  const { signal } = runner.host
  await session.close('client')
  t.match(await second, { behavior: 'deny' })
  t.ok(signal.aborted)
  t.match(await runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: {} }), { behavior: 'deny' })
})

const question = { questions: [{ question: 'Which?', header: 'Pick', options: [{ label: 'red' }, { label: 'blue' }] }] }

t.test('questionBehavior: auto takes each first option, deny sends the agent on, ask asks', async (t) => {
  const ask = { toolName: 'AskUserQuestion', toolUseId: 'u', input: question }
  const auto = await buildSession(t, { questionBehavior: 'auto' })
  t.same(await auto.runner.host.requestPermission(ask), {
    behavior: 'allow',
    updatedInput: { ...question, answers: { 'Which?': 'red' } },
  })
  t.match((await auto.events()).at(-1), { type: 'permission_resolved', resolvedBy: 'policy' })
  const deny = await buildSession(t, { questionBehavior: 'deny' })
  t.match(await deny.runner.host.requestPermission(ask), { behavior: 'deny', message: /alone/ })
  const asked = await buildSession(t, { questionBehavior: 'ask' })
  void asked.runner.host.requestPermission(ask)
  t.equal(asked.session.info().pendingPermissions, 1)
  void auto.runner.host.requestPermission({ ...ask, toolName: 'Write' })
  t.equal(auto.session.info().pendingPermissions, 1, 'tools are asked for all the same')
})

t.test('requireApiKey: no prompt reaches an engine before it said whose credentials it uses', async (t) => {
  const quiet = await buildGateway(t, { requireApiKey: true, script: { start: () => {} } })
  await quiet.registry.create({ cwd: SOME_CWD, prompt: 'secret work' })
  await until(async () => (await quiet.registry.list())[0]?.status === 'running')
  t.same(quiet.engine.last.sent, [])
  quiet.engine.last.init()
  t.equal(quiet.engine.last.sent.length, 1)

  const personal = await buildGateway(t, { requireApiKey: true, script: { apiKeySource: 'oauth' } })
  const { id } = await personal.registry.create({ cwd: SOME_CWD, prompt: 'secret work' })
  await until(async () => (await personal.registry.get(id))?.status === 'failed')
  t.same(personal.engine.last.sent, [])
  t.match(await personal.registry.get(id), { apiKeySource: 'oauth', statusDetail: /API key/ })
})

t.test('oauth without requireApiKey is noticed once', async (t) => {
  const warnings: string[] = []
  const logger = { info() {}, error() {}, warn: (_fields: object, message: string) => void warnings.push(message) }
  const { registry } = await buildGateway(t, { logger, script: { apiKeySource: 'oauth' } })
  await registry.create({ cwd: SOME_CWD })
  await registry.create({ cwd: SOME_CWD })
  await until(async () => (await registry.list()).every(({ status }) => status === 'idle'))
  t.equal(warnings.length, 1)
  t.match(warnings[0], 'requireApiKey')
})

t.test('an engine that turns to bypassPermissions by itself is stopped where that is disabled', async (t) => {
  const { session, runner } = await buildSession(t, {}, { disableBypassPermissions: true })
  runner.host.emit({ type: 'permission_mode_changed', mode: 'bypassPermissions' })
  t.equal(session.status, 'failed')
})

t.test('a repeated command id is acknowledged and not run twice; a refused one may be tried again', async (t) => {
  const { session, runner } = await buildSession(t, { prompt: 'one' })
  const again = { type: 'user_message', text: 'two', id: 'x' } as const
  await Promise.all([session.handle(again), session.handle(again)])
  await session.handle(again)
  runner.complete()
  await until(() => runner.sent.length === 2)
  runner.complete()
  await until(() => session.status === 'idle')
  t.equal(runner.sent.length, 2)
  const decision = { type: 'permission_decision', id: 'y', requestId: 'none', behavior: 'allow' } as const
  await t.rejects(session.handle(decision), { code: 'SG_ERR_PERMISSION_NOT_FOUND' })
  await t.rejects(session.handle(decision), { code: 'SG_ERR_PERMISSION_NOT_FOUND' })
})

t.test('mode and model change when the engine says so, and messages sent after wait for it', async (t) => {
  const { session, runner } = await buildSession(t)
  const change = session.handle({ type: 'set_permission_mode', mode: 'dontAsk' })
  const message = session.handle({ type: 'user_message', text: 'go' })
  t.same(runner.sent, [])
  await Promise.all([change, message])
  t.equal(session.info().permissionMode, 'dontAsk')
  t.equal(runner.sent.length, 1)
  await session.handle({ type: 'set_model', model: 'other' })
  t.equal(session.info().model, 'other')
  await t.rejects(session.handle({ type: 'set_permission_mode', mode: 'plan' }), { code: 'SG_ERR_PERMISSION_MODE' })
})

t.test('a change that is asked for while the engine starts is made once that has started', async (t) => {
  let started = () => {}
  const capabilities = { permissionModes: ['default'] as PermissionMode[] }
  const script = { capabilities, start: () => new Promise<void>((resolve) => (started = resolve)) }
  const { registry, engine } = await buildGateway(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD })
  const asked = [
    registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' }),
    registry.send(id, { type: 'set_model', model: 'other' }),
  ]
  await new Promise(setImmediate)
  engine.last.init()
  // what an agent has is known once it has started
  engine.last.capabilities.permissionModes.push('dontAsk')
  started()
  await Promise.all(asked)
  t.match(await registry.get(id), { permissionMode: 'dontAsk', model: 'other', status: 'idle' })

  const { id: other } = await registry.create({ cwd: SOME_CWD })
  const refused = registry.send(other, { type: 'set_model', model: 'other' })
  await registry.send(other, { type: 'close' })
  started()
  await t.rejects(refused, { code: 'SG_ERR_SESSION_ENDED' })
})

t.test('what the engine cannot do is refused; what it refuses or never answers is said', async (t) => {
  const stiff = await buildSession(
    t,
    {},
    { script: { capabilities: { setModel: false, permissionModes: ['default'] } } },
  )
  await t.rejects(stiff.session.handle({ type: 'set_model' }), { code: 'SG_ERR_UNSUPPORTED' })
  await t.rejects(stiff.session.handle({ type: 'set_permission_mode', mode: 'dontAsk' }), {
    code: 'SG_ERR_UNSUPPORTED',
  })
  const refusing = await buildSession(
    t,
    { prompt: 'x' },
    { script: { interrupt: () => Promise.reject(new Error('not now')) } },
  )
  await t.rejects(refusing.session.handle({ type: 'interrupt' }), { code: 'SG_ERR_ENGINE_REFUSED', message: 'not now' })
  const deaf = await buildSession(t, { prompt: 'x' }, { script: { interrupt: () => new Promise(() => {}) } })
  const silence = deaf.session.handle({ type: 'interrupt' })
  silence.catch(() => {})
  await deaf.clock.advance(30_000)
  await t.rejects(silence, { code: 'SG_ERR_ENGINE_REFUSED', message: /in time/ })
})

t.test('an ended session refuses commands and can still be read', async (t) => {
  const { session, id, registry } = await buildSession(t)
  await session.handle({ type: 'close' })
  await t.rejects(session.handle({ type: 'user_message', text: 'x' }), { code: 'SG_ERR_SESSION_ENDED' })
  t.equal((await registry.get(id))?.status, 'closed')
  const sink = new FakeSink()
  session.attach(sink, {})
  await until(() => sink.closed !== undefined)
  t.match(sink.closed, { code: 1000 })
  t.equal(sink.events.at(-1)?.type, 'session_closed')
})

t.test("tokens add up over turns; turns and cost are the engine's totals", async (t) => {
  const { session, runner } = await buildSession(t)
  const usage = { inputTokens: 10, outputTokens: 2, cacheCreationTokens: 1, cacheReadTokens: 3 }
  runner.complete({ usage, totalCostUsd: 0.1, numTurns: 1 })
  runner.complete({ usage, totalCostUsd: 0.3, numTurns: 4 })
  t.match(session.info(), {
    numTurns: 4,
    cost: 0.3,
    usage: { inputTokens: 20, outputTokens: 4, cacheCreationTokens: 2, cacheReadTokens: 6 },
  })
})

t.test("the title: the host's, else the first prompt's beginning, else the last segment of cwd", async (t) => {
  const titled = await buildSession(t, { title: 'Mine', prompt: 'x' })
  t.equal(titled.session.info().title, 'Mine')
  await titled.registry.rename(titled.id, null, UNLIMITED)
  t.equal(titled.session.info().title, 'x')
  const long = await buildSession(t, { prompt: '🦊'.repeat(100) })
  t.equal(long.session.info().title, '🦊'.repeat(80))
  const { session } = await buildSession(t, { cwd: t.testdir({ project: {} }).concat('/project') })
  t.equal(session.info().title, 'project')
})

t.test('a bridged call goes to the attached clients and the first answer is the result', async (t) => {
  const { session, runner } = await buildSession(t)
  const [one, two] = [new FakeSink(), new FakeSink()]
  const first = session.attach(one, {})
  session.attach(two, {})
  const result = runner.context.bridge.execute({ executionId: 'e1', toolName: 'pick', input: { n: 1 } })
  await until(() => two.frames.some((frame) => frame.type === 'tool_call_request'))
  const output = { type: 'json' as const, value: 7 }
  await session.handle({ type: 'tool_call_result', executionId: 'e1', output }, first)
  t.same(await result, { status: 'ok', output })
  await until(() => two.frames.some((frame) => frame.type === 'tool_call_canceled'))
  t.notOk(one.frames.some((frame) => frame.type === 'tool_call_canceled'))
  await t.rejects(session.handle({ type: 'tool_call_result', executionId: 'e1', output }), {
    code: 'SG_ERR_EXECUTION_NOT_FOUND',
  })
})

t.test('a bridged call waits for a client until its deadline', async (t) => {
  const { session, runner, clock } = await buildSession(t)
  const late = runner.context.bridge.execute({
    executionId: 'e1',
    toolName: 'pick',
    input: {},
    limits: { timeoutMs: 50 },
  })
  const sink = new FakeSink()
  session.attach(sink, {})
  await until(() => sink.frames.some((frame) => frame.type === 'tool_call_request'))
  await clock.advance(50)
  t.match(await late, { status: 'failed', reason: 'timeout' })
  const closed = runner.context.bridge.execute({ executionId: 'e2', toolName: 'pick', input: {} })
  await session.close('client')
  t.match(await closed, { status: 'failed', reason: 'closed' })
})
