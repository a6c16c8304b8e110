import t from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import { createProviderRunner } from '../../src/engines/provider/index.js'
import { createWorkerServer } from '../../src/server.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { callsTo } from '../fixtures/calls.js'
import { attach, type TestClient } from '../fixtures/client.js'
import { script, startModelEndpoint } from '../fixtures/model-endpoint.js'

/** A gateway as an operator sets it up, in front of a vendor's HTTP API. */
async function buildWorld(t: Parameters<typeof startModelEndpoint>[0]) {
  const model = await startModelEndpoint(t)
  const worker = createWorkerServer({
    allowUnauthenticated: true,
    createEngineRunner: createProviderRunner,
    profiles: [
      {
        name: 'assistant',
        engine: 'provider',
        provider: { id: 'openai-compatible', baseUrl: model.url, model: 'scripted-1' },
        session: { capabilities: ['deliver_file'] },
      },
    ],
  })
  const { url } = await worker.listen(0)
  t.teardown(() => worker.close())
  const api = `${url}/v1`
  const call = callsTo(api)
  return { model, api, call, worker }
}

/** What is left of a log once the deltas of finished messages are out of it. */
function lasting(events: SessionEvent[]): SessionEvent[] {
  const finished = new Set(events.flatMap((event) => (event.type === 'assistant_message' ? [event.uuid] : [])))
  return events.filter((event) => event.type !== 'stream_delta' || !finished.has(event.uuid))
}

t.test(
  'a session on a real model API: streamed, asked, allowed over REST, cut off and back, nothing twice',
  async (t) => {
    const { model, api, call } = await buildWorld(t)
    const prompt = script(
      {
        text: 'I shall write a report, word by word, as slowly as it takes.',
        tools: [{ tool: 'fs_write', input: { path: 'report.md', content: '# draft' } }],
      },
      { text: 'Done: it is written.' },
    )
    const created = await call('POST', '/sessions', { cwd: SOME_CWD })
    t.equal(created.status, 201)
    const { id } = created.json

    const first = await attach(t, api, id)
    first.send({ type: 'user_message', text: prompt })
    await first.until(() => first.events.some(({ type }) => type === 'stream_delta'))
    first.socket.terminate()
    const { epoch } = first.attached
    const seenThrough = first.events.at(-1)!.seq

    await until(() => model.requests.length > 0)
    const second: TestClient = await attach(t, api, id, `?afterSeq=${seenThrough}&epoch=${epoch}`)
    t.match(second.attached, { truncated: false, replayingFrom: seenThrough })
    await second.until(
      () =>
        second.attached.pendingPermissions.length > 0 ||
        second.events.some(({ type }) => type === 'permission_requested'),
    )
    const listed = await call('GET', `/sessions/${id}`)
    t.match(listed.json, { status: 'awaiting_approval', pendingPermissions: 1 })
    const asked = second.events.find((event) => event.type === 'permission_requested')
    const request = asked?.type === 'permission_requested' ? asked.request : second.attached.pendingPermissions[0]!
    t.match(request, { toolName: 'fs_write', input: { path: 'report.md' } })
    const answer = { behavior: 'allow', updatedInput: { path: 'report.md', content: '# final' } }
    t.match(await call('POST', `/sessions/${id}/permissions/${request.id}`, answer), {
      status: 200,
      json: { resolved: true },
    })
    t.match(await call('POST', `/sessions/${id}/permissions/${request.id}`, answer), {
      status: 404,
      json: { code: 'SG_ERR_PERMISSION_NOT_FOUND' },
    })
    await second.until(() => second.events.some((event) => event.type === 'status_changed' && event.status === 'idle'))

    const turn = second.events.find((event) => event.type === 'turn_completed')
    t.match(turn, {
      subtype: 'success',
      isError: false,
      result: 'Done: it is written.',
      usage: { inputTokens: Number },
    })
    const info = (await call('GET', `/sessions/${id}`)).json
    t.ok(info.usage.outputTokens > 0)
    t.equal(model.requests.length, 2)

    const file = await fetch(`${api}/sessions/${id}/files/report.md`)
    t.equal(await file.text(), '# final', 'what ran is what was allowed')

    const log = (await call('GET', `/sessions/${id}/events`)).json
    const seen = [...first.events, ...second.events]
    const seqs = seen.map(({ seq }) => seq)
    t.equal(new Set(seqs).size, seqs.length, 'nothing came twice')
    t.same(lasting(seen), log.events, 'nothing is missing')
  },
)

t.test('an interrupt ends the turn and the session goes on', async (t) => {
  const { api, call } = await buildWorld(t)
  const { json } = await call('POST', '/sessions', {
    cwd: SOME_CWD,
    prompt: script({ text: 'thinking about it', hang: true }),
  })
  const client = await attach(t, api, json.id)
  await client.untilEvent('stream_delta')
  client.send({ type: 'interrupt', id: 'stop' })
  await client.untilEvent('turn_completed')
  t.match(
    client.events.find(({ type }) => type === 'turn_completed'),
    { subtype: 'interrupted' },
  )
  await client.until(() => client.frames.some((frame) => frame.type === 'ack' && frame.id === 'stop'))
  client.send({ type: 'user_message', text: 'ping' })
  await client.until(() => client.events.filter(({ type }) => type === 'turn_completed').length === 2)
  t.match(
    client.events.findLast(({ type }) => type === 'turn_completed'),
    { isError: false, result: 'pong' },
  )
})

t.test('an upstream that refuses ends the turn, not the session', async (t) => {
  const { api, call } = await buildWorld(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: script({ status: 401 }) })
  const client = await attach(t, api, json.id)
  await client.untilEvent('turn_completed')
  t.match(
    client.events.find(({ type }) => type === 'turn_completed'),
    { isError: true, errors: [/401/] },
  )
  t.match((await call('GET', `/sessions/${json.id}`)).json, { status: 'idle' })
})
