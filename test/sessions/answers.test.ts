import t from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildParked } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'

const questions = [{ question: 'Which?', header: 'Pick', options: [{ label: 'red' }, { label: 'blue' }] }]
const question = { toolName: 'AskUserQuestion', toolUseId: 'q', input: { questions } }
const write = { toolName: 'Write', toolUseId: 'w', input: { path: 'a' } }
const answers = { 'Which?': 'blue' }

const resolved = (events: SessionEvent[]) =>
  events.filter(
    (event): event is SessionEvent & { type: 'permission_resolved' } => event.type === 'permission_resolved',
  )

async function build(t: Parameters<typeof buildGateway>[0], questionBehavior?: 'auto') {
  const { registry, engine } = await buildGateway(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', ...(questionBehavior && { questionBehavior }) })
  const session = await registry.open(id, UNLIMITED)
  const sink = new FakeSink()
  session.attach(sink, {})
  await until(() => session.status === 'running')
  const log = async () => {
    await until(() => sink.events.at(-1)?.seq === session.log.lastSeq)
    return resolved(sink.events)
  }
  const answer = (updatedInput?: object) => {
    const [request] = session.clients.attachedFrame({}).pendingPermissions
    session.resolvePermission(request!.id, {
      behavior: 'allow',
      ...(updatedInput && { updatedInput: { ...updatedInput } }),
    })
  }
  return { session, host: engine.last.host, log, answer }
}

t.test('a question that is answered with its answers alone keeps its question', async (t) => {
  const { host, log, answer } = await build(t)
  const asked = host.requestPermission(question)
  answer({ answers })
  const updatedInput = { questions, answers }
  t.strictSame(await asked, { behavior: 'allow', updatedInput })
  t.match((await log())[0], { behavior: 'allow', resolvedBy: 'client', updatedInput })
})

t.test('the same while the session is parked', async (t) => {
  const { id, registry, engine, store, events } = await buildParked(t, { request: { approvalTimeoutMs: 0 } })
  void engine.last.host.requestPermission(question)
  await until(async () => (await registry.get(id))?.status === 'parked')
  const [request] = (await store.get(id))!.permissions
  const none = { behavior: 'allow' as const, updatedInput: { answers: ['blue'] } }
  await t.rejects(registry.resolvePermission(id, request!.id, none, UNLIMITED), { code: 'SG_ERR_VALIDATION' })
  await registry.resolvePermission(id, request!.id, { behavior: 'allow', updatedInput: { answers } }, UNLIMITED)
  const updatedInput = { questions, answers }
  t.strictSame(await engine.last.host.requestPermission(question), { behavior: 'allow', updatedInput })
  t.match(resolved(await events()), [{ behavior: 'allow', resolvedBy: 'client', updatedInput }])
})

async function parkedOnApproval(t: Parameters<typeof buildGateway>[0], script: Script = {}) {
  const world = await buildParked(t, { request: { approvalTimeoutMs: 0 }, script })
  const { id, registry, engine } = world
  const ask = () => engine.last.host.requestPermission(write)
  void ask()
  await until(async () => (await registry.get(id))?.status === 'parked')
  const waiting = async () => (await registry.get(id))?.pendingPermissions
  return { ...world, ask, waiting }
}

t.test(
  'what an engine asks again after the interrupt of a parked session is denied, and nobody is asked',
  async (t) => {
    const { id, registry, ask, waiting, events } = await parkedOnApproval(t, { interrupt: () => {} })
    await registry.send(id, { type: 'interrupt' })
    const again = ask()
    t.equal(await waiting(), 0)
    t.match(await again, { behavior: 'deny', interrupt: true })
    const told = (await events()).filter(({ type }) => type.startsWith('permission_')).map(({ type }) => type)
    t.same(told, ['permission_requested', 'permission_resolved'])
  },
)

t.test('what was answered in one turn is no answer in the next one', async (t) => {
  const { id, registry, store, engine, ask, waiting } = await parkedOnApproval(t)
  const [request] = (await store.get(id))!.permissions
  await registry.resolvePermission(id, request!.id, { behavior: 'allow' }, UNLIMITED)
  engine.last.complete()
  await registry.send(id, { type: 'user_message', text: 'again' })
  await until(() => engine.last.sent.length === 1)
  void ask()
  t.equal(await waiting(), 1)
})

t.test('the log tells what ran when it is not what was shown, and only then', async (t) => {
  const { host, log, answer } = await build(t)
  const changed = host.requestPermission(write)
  answer({ content: 'b' })
  t.strictSame(await changed, { behavior: 'allow', updatedInput: { content: 'b' } }, 'of a tool it is the whole input')
  for (const updatedInput of [undefined, { path: 'a' }]) {
    void host.requestPermission(write)
    answer(updatedInput)
  }
  const told = await log()
  t.strictSame(told[0]?.updatedInput, { content: 'b' })
  t.notOk('updatedInput' in told[1]!)
  t.notOk('updatedInput' in told[2]!, 'the same input said again is no change')
})

t.test('what policy answered to a question stands in the log', async (t) => {
  const { host, log } = await build(t, 'auto')
  await host.requestPermission(question)
  t.match(await log(), [{ resolvedBy: 'policy', updatedInput: { questions, answers: { 'Which?': 'red' } } }])
})

t.test('a session tells which agent runs it, the default one too', async (t) => {
  const { registry } = await buildGateway(t, {
    profiles: [
      { name: 'usual' },
      { name: 'other', agent: 'codex' },
      { name: 'model', engine: 'provider', provider: { id: 'x' } },
    ],
  })
  const agentOf = async (profile: string) => (await registry.create({ cwd: SOME_CWD, profile })).agent
  t.strictSame([await agentOf('usual'), await agentOf('other'), await agentOf('model')], ['claude', 'codex', undefined])
})
