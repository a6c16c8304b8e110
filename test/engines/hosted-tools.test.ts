import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { withHostedTools } from '../../src/engines/hosted-tools.js'
import type { EngineRunnerContext, Runner, RunnerHost } from '../../src/engines/runner.js'
import { type ToolCallFacts, ToolEndpoint } from '../../src/engines/tool-endpoint.js'
import { systemClock } from '../../src/lib/clock.js'
import { silentLogger } from '../../src/lib/logger.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { eventsOf } from '../fixtures/journaled.js'
import { ok } from '../fixtures/parked.js'

const deploy = {
  name: 'deploy',
  description: 'Deploys a branch.',
  inputSchema: { type: 'object', properties: { branch: { type: 'string' } } },
  timeoutMs: 60_000,
}

/** A gateway with a `cli` profile, whose agent the test plays itself. */
async function buildWorld(t: Test) {
  const dispatched: string[] = []
  const world = await buildGateway(t, {
    profiles: [{ name: 'agent', engine: 'cli', configDir: SOME_CWD }],
    executions: { tools: [deploy], onDispatch: ({ executionId }) => void dispatched.push(executionId) },
  })
  const session = async () => {
    const { id } = await world.registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => world.engine.last.sent.length === 1)
    const runner = world.engine.last
    const server = runner.context.config.mcpServers!['session-gateway']! as {
      url: string
      headers: Record<string, string>
    }
    const connect = async () => {
      const client = new Client({ name: 'agent', version: '1' })
      const transport = new StreamableHTTPClientTransport(new URL(server.url), {
        requestInit: { headers: server.headers },
      })
      await client.connect(transport as never)
      t.teardown(() => client.close())
      return client
    }
    return { id, runner, server, connect }
  }
  return { ...world, executions: world.gateway.executions, dispatched, session }
}

t.test('half a character reaches no agent: some read nothing of what has one in it', async (t) => {
  const { executions, dispatched, session, registry } = await buildWorld(t)
  const { id, runner, connect } = await session()
  runner.complete()
  await registry.send(id, { type: 'user_message', text: 'cut here: \ud83d' })
  await until(() => runner.sent.length === 2)
  t.equal(runner.sent[1]?.text, 'cut here: \ufffd')
  const call = (await connect()).callTool({ name: 'deploy', arguments: {} })
  await until(() => dispatched.length === 1)
  await executions.submit(dispatched[0]!, { status: 'ok', output: { type: 'text', value: '\ude00 and 😀' } })
  t.match(await call, { content: [{ type: 'text', text: '\ufffd and 😀' }] })
})

t.test('an agent with tools says, too, that something goes on beside its turns', async (t) => {
  const { session, registry } = await buildWorld(t)
  const { id, runner } = await session()
  runner.complete()
  let interrupts = 0
  Object.assign(runner, { canRelease: false, interrupt: async () => void interrupts++ })
  await registry.send(id, { type: 'interrupt' })
  t.equal(interrupts, 1)
})

t.test('an agent sees the tools, and a call waits for its result', async (t) => {
  const { executions, dispatched, session, registry, clock } = await buildWorld(t)
  const { id, connect } = await session()
  const client = await connect()
  const { tools } = await client.listTools()
  t.match(tools, [{ name: 'deploy', description: deploy.description, inputSchema: deploy.inputSchema }])
  const call = client.callTool({ name: 'deploy', arguments: { branch: 'main' } })
  await until(() => dispatched.length === 1)
  t.equal((await registry.get(id))?.status, 'running', 'it keeps its process')
  const result = { status: 'ok', output: { type: 'json', value: { url: 'x' } } } as const
  t.same(await executions.submit(dispatched[0]!, result), { applied: true, sessionId: id })
  t.match(await call, { content: [{ type: 'text', text: '{"url":"x"}' }] })

  const late = client.callTool({ name: 'deploy', arguments: {} })
  await until(() => dispatched.length === 2)
  await clock.advance(60_000)
  t.match(await late, { isError: true, content: [{ text: /"reason":"timeout"/ }] })
  t.match(await client.callTool({ name: 'nothing' }), { isError: true })
})

for (const [how, giveUp] of [
  ['by its word', (_client: Client, word: AbortController) => word.abort()],
  ['by the end of its connection', (client: Client) => void client.close()],
] as const)
  t.test(`a call that the agent gives up ${how} waits no more, and a later result reaches nobody`, async (t) => {
    const { executions, dispatched, session, ...world } = await buildWorld(t)
    const { id, connect } = await session()
    const client = await connect()
    const word = new AbortController()
    const call = t.rejects(client.callTool({ name: 'deploy' }, undefined, { signal: word.signal }))
    await until(() => dispatched.length === 1)
    const [executionId] = dispatched
    giveUp(client, word)
    await call
    const failed = async () => (await eventsOf(world, id)).filter(({ type }) => type === 'execution_failed')
    await until(async () => (await failed()).length === 1, 'its end')
    t.match(await failed(), [{ executionId, reason: 'withdrawn' }])
    t.same(await executions.submit(executionId!, ok), { applied: false, sessionId: id })
  })

t.test('the end of the gateway takes no call back: another may have its session', async (t) => {
  const endpoint = new ToolEndpoint(silentLogger)
  const waiting: ToolCallFacts[] = []
  const call = (_tool: unknown, _input: unknown, facts: ToolCallFacts) => {
    waiting.push(facts)
    return new Promise<never>(() => {})
  }
  const { url, bearer } = await endpoint.open({ tools: [deploy], call, onListed: () => {} })
  const client = new Client({ name: 'agent', version: '1' })
  const headers = { authorization: `Bearer ${bearer}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }) as never)
  const ended = new Promise((resolve) => {
    client.onerror = resolve
  })
  client.callTool({ name: 'deploy' }).catch(() => {})
  await until(() => waiting.length === 1)
  await endpoint.close()
  await ended
  t.equal(waiting[0]!.takenBack.aborted, false)
  await client.close()
})

t.test('a bearer is one session’s, for as long as it lives, and no browser’s', async (t) => {
  const { session, registry, executions, dispatched } = await buildWorld(t)
  const one = await session()
  const two = await session()
  t.not(one.server.headers.authorization, two.server.headers.authorization)
  const call = (await two.connect()).callTool({ name: 'deploy' })
  await until(() => dispatched.length === 1)
  t.same(await executions.submit(dispatched[0]!, ok), { applied: true, sessionId: two.id })
  await call
  const post = async (headers: Record<string, string>) =>
    (
      await fetch(one.server.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: '{}',
      })
    ).status
  t.equal(await post({}), 401)
  t.equal(await post({ authorization: 'Bearer nope' }), 401)
  t.equal(await post({ ...one.server.headers, origin: 'http://evil.example' }), 403)
  await registry.close(one.id)
  t.equal(await post(one.server.headers), 401, 'the session is gone')
})

t.test('the bearer is written nowhere, and a declared tool is granted', async (t) => {
  const { session, registry } = await buildWorld(t)
  const { id, runner, server } = await session()
  const bearer = server.headers.authorization!.slice('Bearer '.length)
  t.notMatch(JSON.stringify([await registry.get(id), await registry.list()]), bearer)
  const ask = { toolUseId: 'u', input: { branch: 'x' } }
  t.same(await runner.host.requestPermission({ ...ask, toolName: 'mcp__session-gateway__deploy' }), {
    behavior: 'allow',
    updatedInput: ask.input,
  })
  void runner.host.requestPermission({ ...ask, toolName: 'mcp__other__deploy' })
  await until(async () => (await registry.get(id))?.pendingPermissions === 1)
})

t.test('a call that the session does not take waits for nothing', async (t) => {
  const passedOn: string[] = []
  const inner = { start: async () => {}, settleExecution: (id: string) => void passedOn.push(id) } as unknown as Runner
  let call: Parameters<ToolEndpoint['open']>[0]['call'] = () => Promise.reject(new Error('not open'))
  const endpoint = {
    async open(given: Parameters<ToolEndpoint['open']>[0]) {
      call = given.call
      return { url: 'http://gateway.test', bearer: 'b', close() {} }
    },
  } as unknown as ToolEndpoint
  const context = { deferredTools: [deploy], config: { cwd: SOME_CWD } } as unknown as EngineRunnerContext
  const runner = await withHostedTools(async () => inner, endpoint, systemClock)(context)
  let executionId = ''
  const host = {
    async deferExecution(execution: { executionId: string }) {
      executionId = execution.executionId
      throw new Error('The session has ended.')
    },
  } as unknown as RunnerHost
  await runner.start(host)
  await t.rejects(call(deploy, {}, {} as ToolCallFacts), { message: 'The session has ended.' })
  runner.settleExecution?.(executionId, { status: 'failed', reason: 'not_ready', error: 'later' })
  t.same(passedOn, [executionId])
})
