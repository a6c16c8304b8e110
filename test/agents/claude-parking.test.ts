import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { cliEngine } from '../../src/engines/cli/index.js'
import type { ExecutionDispatch } from '../../src/executions/dispatch.js'
import { createWorkerServer } from '../../src/server.js'
import { callsTo } from '../fixtures/calls.js'
import { attach } from '../fixtures/client.js'
import { processesOf } from '../fixtures/processes.js'
import { AGENTS, CLAUDE_SDK } from './installed.js'
import { script, startVendors } from './vendors.js'

const { claude } = AGENTS
const DEPLOY = 'mcp__session-gateway__deploy'
const deploy = {
  name: 'deploy',
  description: 'Deploys a branch.',
  inputSchema: { type: 'object', properties: { branch: { type: 'string' } }, required: ['branch'] },
}
const done = { status: 'ok', output: { type: 'json', value: { url: 'https://deployed.example' } } }

async function build(t: Test) {
  const vendors = await startVendors(t)
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'claude-parking-')))
  const cwd = join(home, 'work')
  for (const folder of [cwd, join(home, 'claude')]) mkdirSync(folder)
  const env = { PATH: process.env.PATH!, HOME: home, ...claude.env(home, vendors.url) }
  const dispatched: ExecutionDispatch[] = []
  const worker = createWorkerServer(
    {
      allowUnauthenticated: true,
      profiles: [{ name: 'claude', engine: 'cli', agent: 'claude' }],
      executions: { tools: [deploy], onDispatch: (execution) => void dispatched.push(execution) },
      parking: { parkDelayMs: 0 },
    },
    { createCliRunner: cliEngine({ claudeSdk: CLAUDE_SDK, env, maxConcurrentStarts: 2 }), env: {} },
  )
  t.teardown(() => worker.close())
  const { url } = await worker.listen(0)
  const call = callsTo(url)
  const create = async (body: object): Promise<string> => (await call('POST', '/v1/sessions', { cwd, ...body })).json.id
  const info = async (id: string) => (await call('GET', `/v1/sessions/${id}`)).json
  const events = async (id: string) => (await call('GET', `/v1/sessions/${id}/events`)).json.events
  /** Asks now and then: somebody attached would keep the session from parking. */
  const status = (id: string, wanted: string) =>
    until(async () => {
      const { status, statusDetail } = await info(id)
      if (status === 'failed') throw new Error(statusDetail)
      return status === wanted
    })
  const turns = async (id: string, count: number): Promise<Told[]> => {
    let ends: Told[] = []
    await until(async () => {
      ends = ofType(await events(id), 'turn_completed')
      return ends.length >= count
    })
    return ends
  }
  /** The agent loses what it kept of its sessions. */
  const forget = () => rmSync(join(home, claude.transcripts), { recursive: true })
  return { vendors, cwd, forget, dispatched, call, create, info, events, status, turns, api: `${url}/v1` }
}

/** Waits by looking now and then. */
async function until(condition: () => unknown): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
}

type Told = { seq: number; type: string; [field: string]: unknown }
const ofType = (events: Told[], type: string) => events.filter((event) => event.type === type)
const times = (text: string, part: string) => text.split(part).length - 1

t.test('parking the real claude', { skip: claude.missing ?? false }, async (t) => {
  t.test('what the agent kept of a parked session is gone: told once with what to do', async (t) => {
    const { dispatched, call, create, info, events, status, forget } = await build(t)
    const id = await create({ prompt: script({ text: 'I deploy it.', tool: DEPLOY, input: { branch: 'main' } }) })
    await status(id, 'parked')
    forget()
    t.match((await call('POST', dispatched[0]!.resultPath, done)).json, { applied: true })
    await until(async () => (await info(id)).status === 'failed')
    t.match(await info(id), { statusDetail: /Create a new session/ })
    t.match(ofType(await events(id), 'session_error'), [{ code: 'SG_ERR_AGENT_STATE_GONE' }])
  })

  for (const permissionMode of ['default', 'dontAsk'])
    t.test(
      `a deferred call ends the process, and its result goes on in the same turn: ${permissionMode}`,
      async (t) => {
        const { vendors, dispatched, call, create, info, events, status, turns, api } = await build(t)
        const prompt = script(
          { text: 'I deploy it.', tool: DEPLOY, input: { branch: 'main' } },
          { text: 'It is deployed.' },
        )
        const id = await create({ prompt, permissionMode })
        await status(id, 'parked')
        t.strictSame(processesOf(id), [], 'the process is gone')
        t.match(dispatched, [{ sessionId: id, toolName: 'deploy', input: { branch: 'main' } }])
        t.match(await info(id), {
          parked: { executions: [{ executionId: dispatched[0]!.executionId, toolName: 'deploy' }] },
        })
        const before = await events(id)
        t.equal(vendors.calls(), 1)
        const watching = await attach(t, api, id)

        t.same((await call('POST', dispatched[0]!.resultPath, done)).json, { applied: true, sessionId: id })
        await status(id, 'idle')
        t.equal(vendors.calls(), 2, 'once before the park, once after')
        t.equal(times(vendors.asked[1]!.body, 'https://deployed.example'), 1, 'the model saw the result once')
        const after = await events(id)
        t.same(after.slice(0, before.length), before, 'the same log goes on')
        t.ok(after.every(({ seq }: Told, at: number) => at === 0 || seq > after[at - 1].seq))
        const ends = ofType(after, 'turn_completed')
        t.match(ends, [{ subtype: 'success', result: 'It is deployed.', numTurns: 2 }])
        t.match(
          ends[0]?.usage,
          { inputTokens: 2000, outputTokens: 100 },
          'what the turn used before the park is counted',
        )
        const streamed = watching.events.filter(({ type }) => type === 'stream_delta')
        t.ok(streamed.length > 0 && streamed.every(({ seq }) => seq > before.at(-1).seq), 'the answer is streamed')
        t.equal(ofType(after, 'system_init').at(-1)?.sdkSessionId, ofType(after, 'system_init')[0]?.sdkSessionId)
        t.equal((await call('POST', dispatched[0]!.resultPath, done)).json.applied, false)

        await call('POST', `/v1/sessions/${id}/commands`, {
          type: 'user_message',
          text: script({ text: 'Still here.' }),
        })
        t.match((await turns(id, 2))[1], { result: 'Still here.', usage: { inputTokens: 1000 } })
      },
    )

  t.test('with somebody attached the process stays; when they leave, it goes', async (t) => {
    const { vendors, dispatched, call, create, status, api } = await build(t)
    const id = await create({})
    const client = await attach(t, api, id)
    client.send({
      type: 'user_message',
      text: script(
        { tool: DEPLOY, input: { branch: 'one' } },
        { tool: DEPLOY, input: { branch: 'two' } },
        { text: 'Both.' },
      ),
    })
    await until(() => dispatched.length === 1)
    const [agent] = processesOf(id)
    await call('POST', dispatched[0]!.resultPath, done)
    await until(() => dispatched.length === 2)
    // what it ran beside may have ended
    t.equal(processesOf(id)[0], agent)
    client.socket.close()
    await status(id, 'parked')
    t.strictSame(processesOf(id), [])
    await call('POST', dispatched[1]!.resultPath, done)
    await status(id, 'idle')
    t.equal(vendors.calls(), 3)
    t.equal(times(vendors.asked[2]!.body, 'https://deployed.example'), 2, 'each result once')
  })

  t.test('a permission and a question wait without a process, and are answered over REST', async (t) => {
    const { vendors, cwd, call, create, info, events, status } = await build(t)
    const questions = [
      {
        question: 'Which?',
        header: 'Pick',
        multiSelect: false,
        options: [
          { label: 'A', description: 'a' },
          { label: 'B', description: 'b' },
        ],
      },
    ]
    const prompt = script(
      { tool: 'Bash', input: { command: 'touch asked.txt' } },
      { tool: 'AskUserQuestion', input: { questions } },
      { tool: 'Write', input: { file_path: join(cwd, 'written.txt'), content: 'x' } },
      { text: 'So be it.' },
    )
    const id = await create({ prompt, approvalTimeoutMs: 0 })
    const answer = async (toolName: string, body: object) => {
      await status(id, 'parked')
      t.strictSame(processesOf(id), [])
      const { pendingPermissions, parked } = await info(id)
      t.match({ pendingPermissions, parked }, { pendingPermissions: 1, parked: { permissions: [{ toolName }] } })
      const path = `/v1/sessions/${id}/permissions/${parked.permissions[0].id}`
      t.equal((await call('POST', path, body)).status, 200)
      t.equal((await call('POST', path, body)).status, 404)
    }
    await answer('Bash', { behavior: 'allow', updatedInput: { command: 'echo changed > asked.txt' } })
    await answer('AskUserQuestion', { behavior: 'allow', updatedInput: { answers: { 'Which?': 'B' } } })
    t.equal(readFileSync(join(cwd, 'asked.txt'), 'utf8').trim(), 'changed', 'what was allowed has run')
    await answer('Write', { behavior: 'deny', message: 'rather not' })
    await status(id, 'idle')
    t.notOk(existsSync(join(cwd, 'written.txt')))
    t.equal(vendors.calls(), 4)
    t.match(vendors.asked[2]!.body, /Which\?[^}]*B/)
    t.match(vendors.asked[3]!.body, /rather not/)
    const log: Told[] = await events(id)
    t.equal(ofType(log, 'permission_requested').length, 3)
    t.equal(ofType(log, 'permission_resolved').length, 3)
    t.match(ofType(log, 'turn_completed'), [{ subtype: 'success', result: 'So be it.' }])
  })

  t.test('of several calls in one message the first waits; the others are to be made again', async (t) => {
    const { vendors, cwd, dispatched, call, create, events, status } = await build(t)
    const prompt = script(
      {
        tool: 'Bash',
        input: { command: 'pwd' },
        also: [
          { tool: DEPLOY, input: { branch: 'one' } },
          { tool: DEPLOY, input: { branch: 'two' } },
          { tool: 'Bash', input: { command: 'touch later.txt' } },
        ],
      },
      { tool: DEPLOY, input: { branch: 'two' } },
      { text: 'Both.' },
    )
    const id = await create({ prompt })
    await status(id, 'parked')
    t.equal(dispatched.length, 1)
    await call('POST', dispatched[0]!.resultPath, done)
    await status(id, 'parked')
    t.match(dispatched, [{ input: { branch: 'one' } }, { input: { branch: 'two' } }])
    t.notOk(existsSync(join(cwd, 'later.txt')))
    await call('POST', dispatched[1]!.resultPath, done)
    await status(id, 'idle')
    t.equal(times(vendors.asked[2]!.body, 'https://deployed.example'), 2)
    t.equal(times(vendors.asked[2]!.body, 'Call it again'), 2)
    const blocks = (await events(id)).flatMap((event: { message?: { content: { type: string }[] | string } }) =>
      typeof event.message?.content === 'object' ? event.message.content : [],
    )
    const count = (type: string) => blocks.filter((block: { type: string }) => block.type === type).length
    t.equal(count('tool_use'), 5)
    t.equal(count('tool_result'), 5, 'the log tells what became of each')
  })

  t.test('an interrupt ends the turn that is parked, and the session goes on', async (t) => {
    const { dispatched, call, create, status, turns } = await build(t)
    const id = await create({ prompt: script({ tool: DEPLOY, input: { branch: 'main' } }, { text: 'unwanted' }) })
    await status(id, 'parked')
    await call('POST', `/v1/sessions/${id}/commands`, { type: 'interrupt' })
    await status(id, 'idle')
    t.equal((await call('POST', dispatched[0]!.resultPath, done)).json.applied, false)
    await call('POST', `/v1/sessions/${id}/commands`, { type: 'user_message', text: script({ text: 'Back.' }) })
    t.match(await turns(id, 2), [
      { subtype: 'interrupted', isError: false },
      { subtype: 'success', result: 'Back.' },
    ])
  })

  t.test(
    'an interrupt denies what a parked session asks, and ends a call that waits while somebody looks on',
    async (t) => {
      const { cwd, call, create, events, status, turns, dispatched, api } = await build(t)
      const touch = { tool: 'Bash', input: { command: 'touch unwanted.txt' } }
      const asking = await create({ prompt: script(touch, { text: 'unwanted' }), approvalTimeoutMs: 0 })
      await status(asking, 'parked')
      await call('POST', `/v1/sessions/${asking}/commands`, { type: 'interrupt' })
      t.match(await turns(asking, 1), [{ subtype: 'interrupted' }])
      t.match(ofType(await events(asking), 'permission_resolved'), [{ behavior: 'deny' }])
      t.notOk(existsSync(join(cwd, 'unwanted.txt')))

      const waiting = await create({})
      const client = await attach(t, api, waiting)
      client.send({
        type: 'user_message',
        text: script({ tool: DEPLOY, input: { branch: 'x' } }, { text: 'unwanted' }),
      })
      await until(() => dispatched.length === 1)
      client.send({ type: 'interrupt' })
      t.match(await turns(waiting, 1), [{ subtype: 'interrupted' }])
      client.send({ type: 'user_message', text: script({ text: 'Back.' }) })
      t.match((await turns(waiting, 2))[1], { subtype: 'success', result: 'Back.' })
    },
  )
})
