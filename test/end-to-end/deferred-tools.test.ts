import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ASK_USER_QUESTION } from '../../schemas/permissions.js'
import { createProviderRunner } from '../../src/engines/provider/index.js'
import type { ExecutionDispatch } from '../../src/executions/dispatch.js'
import { createWorkerServer } from '../../src/server.js'
import { createFileSessionStore } from '../../src/storage/file/session-store.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { callsTo } from '../fixtures/calls.js'
import { script, startModelEndpoint } from '../fixtures/model-endpoint.js'

const deploy = {
  name: 'deploy',
  description: 'Deploys a branch.',
  inputSchema: { type: 'object', properties: { branch: { type: 'string' } }, required: ['branch'] },
}

async function buildWorld(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'deferred-tools-'))
  const model = await startModelEndpoint(t)
  const dispatched: ExecutionDispatch[] = []
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const start = async () => {
    const worker = createWorkerServer({
      allowUnauthenticated: true,
      createEngineRunner: createProviderRunner,
      profiles: [
        {
          name: 'assistant',
          engine: 'provider',
          provider: { id: 'openai-compatible', baseUrl: model.url, model: 'scripted-1' },
        },
      ],
      parking: { store: createFileSessionStore({ dir }) },
      executions: { tools: [deploy], onDispatch: (execution) => void dispatched.push(execution) },
    })
    const { url } = await worker.listen(0)
    t.teardown(() => worker.close())
    const call = callsTo(url)
    const status = async (id: string, expected: string) =>
      until(async () => (await call('GET', `/v1/sessions/${id}`)).json.status === expected, expected)
    return { worker, call, status }
  }
  return { start, model, dispatched, files: () => readdirSync(dir).filter((name) => name.endsWith('.json')) }
}

t.test('a deferred tool call parks, survives a restart and finishes the turn it began in', async (t) => {
  const { start, model, dispatched, files } = await buildWorld(t)
  const before = await start()
  const prompt = script(
    { text: 'I deploy it.', tools: [{ tool: 'deploy', input: { branch: 'main' }, id: 'call-1' }] },
    { text: 'It is deployed.' },
  )
  const { json: created } = await before.call('POST', '/v1/sessions', { cwd: SOME_CWD, prompt })
  await before.status(created.id, 'parked')
  t.match(dispatched, [{ sessionId: created.id, toolName: 'deploy', input: { branch: 'main' } }])
  const told = (await before.call('GET', `/v1/sessions/${created.id}/events`)).json
  await before.worker.close()
  t.equal(files().length, 1)

  const after = await start()
  t.match((await after.call('GET', `/v1/sessions/${created.id}`)).json, {
    status: 'parked',
    lastSeq: told.lastSeq,
    parked: { executions: [{ executionId: dispatched[0]!.executionId, toolName: 'deploy' }] },
  })
  const result = { status: 'ok', output: { type: 'json', value: { url: 'https://x.example' } } }
  const answer = await after.call('POST', dispatched[0]!.resultPath, result)
  t.same(answer.json, { applied: true, sessionId: created.id })
  await after.status(created.id, 'idle')
  const log = (await after.call('GET', `/v1/sessions/${created.id}/events`)).json
  t.same(log.events.slice(0, told.events.length), told.events, 'the same log goes on')
  t.match(
    log.events.filter(({ type }: { type: string }) => type === 'turn_completed'),
    [{ subtype: 'success', result: 'It is deployed.', numTurns: 2 }],
    'one turn, told once',
  )
  t.equal(model.requests.length, 2, 'the model was asked once before the park and once after')
  t.match(model.requests[1]!.body.messages.at(-1), { role: 'tool', content: '{"url":"https://x.example"}' })
  t.equal(dispatched.length, 1)
  await until(() => files().length === 0, 'the checkpoint')
  t.same((await after.call('POST', dispatched[0]!.resultPath, result)).json.applied, false)
})

t.test('a failed result reaches the model as the output of the tool', async (t) => {
  const { start, model, dispatched } = await buildWorld(t)
  const { call, status } = await start()
  const prompt = script({ tools: [{ tool: 'deploy', input: { branch: 'main' } }] }, { text: 'A pity.' })
  const { json: created } = await call('POST', '/v1/sessions', { cwd: SOME_CWD, prompt })
  await status(created.id, 'parked')
  await call('POST', dispatched[0]!.resultPath, { status: 'failed', reason: 'refused', error: 'Frozen until Monday.' })
  await status(created.id, 'idle')
  t.match(model.requests[1]!.body.messages.at(-1), { role: 'tool', content: /refused.*Frozen until Monday/ })
})

t.test('interrupt ends a turn that is parked, and the next message finds a sound transcript', async (t) => {
  const { start, dispatched } = await buildWorld(t)
  const { call, status } = await start()
  const prompt = script({ tools: [{ tool: 'deploy', input: { branch: 'main' } }] })
  const { json: created } = await call('POST', '/v1/sessions', { cwd: SOME_CWD, prompt })
  await status(created.id, 'parked')
  await call('POST', `/v1/sessions/${created.id}/commands`, { type: 'interrupt' })
  await status(created.id, 'idle')
  t.equal(
    (await call('POST', dispatched[0]!.resultPath, { status: 'ok', output: { type: 'text', value: '' } })).json.applied,
    false,
  )
  await call('POST', `/v1/sessions/${created.id}/commands`, { type: 'user_message', text: script({ text: 'Back.' }) })
  const { json } = await untilTurns(call, created.id, 2)
  t.match(json, [{ subtype: 'interrupted' }, { subtype: 'success', result: 'Back.' }])
})

t.test('a question that nobody is there for is answered over REST after a restart', async (t) => {
  const { start, model } = await buildWorld(t)
  const before = await start()
  const questions = [{ question: 'Which?', header: 'Pick', options: [{ label: 'A' }, { label: 'B' }] }]
  const prompt = script({ tools: [{ tool: ASK_USER_QUESTION, input: { questions } }] }, { text: 'So be it.' })
  const { json: created } = await before.call('POST', '/v1/sessions', { cwd: SOME_CWD, prompt, approvalTimeoutMs: 0 })
  await before.status(created.id, 'parked')
  await before.worker.close()

  const after = await start()
  const { json: parked } = await after.call('GET', `/v1/sessions/${created.id}`)
  t.match(parked, {
    pendingPermissions: 1,
    parked: { permissions: [{ toolName: ASK_USER_QUESTION, input: { questions } }] },
  })
  const [request] = parked.parked.permissions
  const path = `/v1/sessions/${created.id}/permissions/${request.id}`
  const answer = { behavior: 'allow', updatedInput: { questions, answers: { 'Which?': 'B' } } }
  t.equal((await after.call('POST', path, answer)).status, 200)
  t.equal((await after.call('POST', path, answer)).status, 404)
  await after.status(created.id, 'idle')
  t.match(model.requests[1]!.body.messages.at(-1), { role: 'tool', content: /"Which\?":"B"/ })
  const { json: log } = await after.call('GET', `/v1/sessions/${created.id}/events`)
  const told = log.events.map(({ type }: { type: string }) => type)
  t.equal(told.filter((type: string) => type === 'permission_requested').length, 1)
  t.equal(told.filter((type: string) => type === 'permission_resolved').length, 1)
})

type Call = (method: string, path: string) => Promise<{ json: { events: { type: string }[] } }>

async function untilTurns(call: Call, id: string, count: number) {
  let turns: { type: string }[] = []
  await until(async () => {
    const { json } = await call('GET', `/v1/sessions/${id}/events`)
    turns = json.events.filter(({ type }) => type === 'turn_completed')
    return turns.length === count
  })
  return { json: turns }
}
