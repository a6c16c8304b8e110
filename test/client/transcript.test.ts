import t from 'tap'
import {
  emptyTranscript,
  foldTranscript,
  type MessageItem,
  type ToolPart,
  type Transcript,
} from '../../client/transcript.js'
import type { SessionEvent } from '../../client/types.js'
import { attached, said, typed } from '../fixtures/client-platform.js'
import { NO_USAGE } from '../fixtures/scripted-engine.js'

let seq = 0
const event = <T extends object>(body: T) => ({ ...body, seq: ++seq, ts: seq }) as unknown as SessionEvent
const assistant = (uuid: string, ...content: object[]) =>
  event({ type: 'assistant_message', uuid, parentToolUseId: null, message: { role: 'assistant', content } })
const call = (id: string) => assistant(`m-${id}`, { type: 'tool_use', id, name: 'write', input: { path: id } })
const result = (id: string, isError = false) =>
  event({
    type: 'user_message',
    uuid: `r-${id}`,
    parentToolUseId: null,
    synthetic: true,
    message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'ok', is_error: isError }] },
  })
const asked = (id: string, toolUseId: string) =>
  event({ type: 'permission_requested', request: { id, toolName: 'write', toolUseId, input: {} } })
const answered = (requestId: string, behavior: string) =>
  event({ type: 'permission_resolved', requestId, behavior, resolvedBy: 'client' })
const turn = (subtype = 'success') =>
  event({
    type: 'turn_completed',
    subtype,
    isError: false,
    durationMs: 5,
    numTurns: 1,
    totalCostUsd: 0.5,
    usage: { ...NO_USAGE, inputTokens: 3 },
  })

const tools = (transcript: Transcript): ToolPart[] =>
  transcript.items
    .toArray()
    .flatMap((item) => (item.kind === 'message' ? item.parts.filter((part) => part.type === 'tool') : []))

t.test('a tool call shows its input, who allowed it, and its result', async (t) => {
  let transcript = foldTranscript([call('a')])
  t.match(tools(transcript), [{ id: 'a', name: 'write', input: { path: 'a' }, status: 'running' }])
  transcript = foldTranscript([asked('p', 'a')], transcript)
  t.equal(tools(transcript)[0]?.status, 'awaiting_approval')
  t.match(transcript.waitingFor.permissions, [{ id: 'p' }])
  transcript = foldTranscript([answered('p', 'allow')], transcript)
  t.match(tools(transcript), [{ status: 'running', permission: { behavior: 'allow', resolvedBy: 'client' } }])
  t.strictSame(transcript.waitingFor.permissions, [])
  transcript = foldTranscript([result('a')], transcript)
  t.match(tools(transcript), [{ status: 'succeeded', result: 'ok' }])
  t.strictSame(transcript.openToolCalls, [])
  t.equal(transcript.items.length, 1, 'the result stands with its call')
})

t.test('a call that was allowed with another input shows both, and who said so', async (t) => {
  const updatedInput = { path: 'b' }
  const by = { principal: 'ada', channel: 'link' }
  const before = [call('a'), asked('p', 'a')]
  const allowed = event({
    ...{ type: 'permission_resolved', requestId: 'p', behavior: 'allow' },
    ...{ resolvedBy: 'client', by, updatedInput },
  })
  const [tool] = tools(foldTranscript([...before, allowed]))
  t.match(tool, { input: { path: 'a' }, permission: { behavior: 'allow', by, updatedInput } })
})

t.test('a call ends as denied, failed or abandoned when it does', async (t) => {
  const transcript = foldTranscript([
    asked('early', 'a'),
    call('a'),
    call('b'),
    call('c'),
    answered('early', 'deny'),
    result('a', true),
    result('b', true),
    turn('interrupted'),
  ])
  t.strictSame(
    tools(transcript).map(({ status }) => status),
    ['denied', 'failed', 'abandoned'],
  )
  t.match(transcript, { usage: { inputTokens: 3 }, numTurns: 1, totalCostUsd: 0.5 })
})

t.test('what is in progress when the session ends is abandoned', async (t) => {
  const dispatched = (executionId: string) => event({ type: 'execution_dispatched', executionId, toolName: 'deploy' })
  const transcript = foldTranscript([
    call('a'),
    call('b'),
    asked('p', 'b'),
    dispatched('x'),
    dispatched('y'),
    event({ type: 'execution_result', executionId: 'x', output: { type: 'text', value: 'done' } }),
    event({ type: 'session_closed', reason: 'error' }),
  ])
  t.strictSame(
    tools(transcript).map(({ status }) => status),
    ['abandoned', 'abandoned'],
  )
  t.match(
    transcript.items.toArray().filter(({ kind }) => kind === 'execution'),
    [{ status: 'succeeded' }, { status: 'abandoned' }],
  )
  t.strictSame(transcript.openToolCalls, [])
})

t.test('the plan is the last that the agent told, and nothing else changes with it', async (t) => {
  const planned = (...statuses: string[]) =>
    event({ type: 'plan_updated', entries: statuses.map((status, step) => ({ content: `step ${step}`, status })) })
  const before = foldTranscript([call('a')])
  t.strictSame(before.plan, [])
  const first = foldTranscript([planned('in_progress', 'pending')], before)
  t.strictSame(first.plan, [
    { content: 'step 0', status: 'in_progress' },
    { content: 'step 1', status: 'pending' },
  ])
  t.equal(first.items, before.items, 'it is no item')
  const replay = [planned('completed', 'in_progress'), result('a'), turn()]
  const later = foldTranscript(replay, first)
  t.strictSame(
    later.plan.map(({ status }) => status),
    ['completed', 'in_progress'],
    'a turn does not end it',
  )
  t.equal(foldTranscript(replay, later), later)
  t.equal(foldTranscript([turn()], later).plan, later.plan)
  t.strictSame(foldTranscript([planned()], later).plan, [], 'an agent that has none any more')
  const snapshot = attached({ truncated: true, replayingFrom: seq })
  t.strictSame(foldTranscript([{ type: 'gap', snapshot }], later).plan, [], 'no snapshot has it')
})

t.test('what is being written stands apart until it is whole', async (t) => {
  const start = seq
  let transcript = foldTranscript([typed(start + 1, 'm', 'Hel'), typed(start + 2, 'm', 'lo')])
  t.strictSame(transcript.streaming, [{ uuid: 'm', parts: [{ type: 'text', blockIndex: 0, text: 'Hello' }] }])
  t.equal(transcript.items.length, 0)
  seq += 2
  transcript = foldTranscript(
    [assistant('m', { type: 'thinking', thinking: 'Hm' }, { type: 'text', text: 'Hello.' })],
    transcript,
  )
  t.strictSame(transcript.streaming, [])
  t.match(transcript.items.toArray(), [
    {
      kind: 'message',
      role: 'assistant',
      parts: [
        { type: 'thinking', text: 'Hm' },
        { type: 'text', text: 'Hello.' },
      ],
    },
  ])
})

t.test('a gap starts anew from the snapshot', async (t) => {
  const request = { id: 'p', toolName: 'write', toolUseId: 'x', input: {} }
  const before = foldTranscript([said(1), said(2)])
  const snapshot = attached({ truncated: true, replayingFrom: 7, pendingPermissions: [request] })
  const transcript = foldTranscript([{ type: 'gap', snapshot }, said(8)], before)
  t.match(transcript, { isTruncated: true, status: 'idle', lastSeq: 8, waitingFor: { permissions: [{ id: 'p' }] } })
  t.equal(transcript.items.length, 1)
})

t.test('what an earlier gateway kept of an engine that told nonsense is left out, and the rest is shown', async (t) => {
  const odd: unknown[] = [
    undefined,
    null,
    5,
    'x',
    {},
    [],
    [null],
    [5],
    [{}],
    { content: 5 },
    { content: [null, 5, {}] },
  ]
  const nonsense = odd.flatMap((value) => [
    event({ type: 'system_init', tools: value }),
    event({ type: 'capabilities', models: value }),
    event({ type: 'user_message', message: value }),
    event({ type: 'assistant_message', message: value }),
    event({ type: 'stream_delta', delta: value }),
    event({ type: 'turn_completed', usage: value }),
    event({ type: 'turn_completed', usage: { inputTokens: value } }),
    event({ type: 'plan_updated', entries: value }),
  ])
  const transcript = foldTranscript([said(1), ...nonsense, turn()])
  t.match(transcript.items.at(0), { kind: 'message' })
  t.match(transcript.items.at(-1), { kind: 'turn', subtype: 'success' })
  t.match(transcript.usage, { inputTokens: 8, outputTokens: 0 })
  t.strictSame(foldTranscript([event({ type: 'plan_updated' })]).plan, [])
  const textless = event({ type: 'assistant_message', message: { content: [{ type: 'text' }, { type: 'thinking' }] } })
  t.match(foldTranscript([textless]).items.at(0), { parts: [{ text: '' }, { text: '' }] })
})

t.test('what was seen before changes nothing', async (t) => {
  const transcript = foldTranscript([said(1), said(2)])
  t.equal(foldTranscript([said(1), said(2)], transcript), transcript)
  t.equal(foldTranscript([], transcript), transcript)
})

t.test('what did not change is the same object as before', async (t) => {
  const events = Array.from({ length: 1000 }, (_, index) => said(index + 1))
  const before = foldTranscript(events)
  const after = foldTranscript([said(1001)], before)
  t.equal(after.items.length, 1001)
  t.equal(after.items.at(-1)?.seq, 1001)
  for (let chunk = 0; chunk < 3; chunk++) t.equal(after.items.chunks[chunk], before.items.chunks[chunk])
  for (let index = 0; index < 1000; index++)
    if (after.items.at(index) !== before.items.at(index)) t.fail(`item ${index} was copied`)
  t.equal(after.waitingFor, before.waitingFor)
  t.equal(after.deliverables, before.deliverables)
})

t.test('an event costs the same in a transcript of a hundred thousand', async (t) => {
  const count = 100_000
  seq = 0
  const events: SessionEvent[] = []
  while (events.length < count) {
    const id = `call-${events.length}`
    events.push(call(id), asked(`p-${id}`, id), answered(`p-${id}`, 'allow'), result(id))
  }
  /** Milliseconds of the processor that the events from one to the other take, one by one. */
  const costOf = (transcript: Transcript, from: number, to: number): [Transcript, number] => {
    const start = process.cpuUsage()
    for (let index = from; index < to; index++) transcript = foldTranscript([events[index]!], transcript)
    return [transcript, process.cpuUsage(start).user / 1_000]
  }
  const [some, early] = costOf(emptyTranscript, 0, 20_000)
  const [most] = costOf(some, 20_000, 80_000)
  const [all, late] = costOf(most, 80_000, count)
  t.equal(all.items.length, count / 4)
  t.ok(tools(all).every(({ status }) => status === 'succeeded'))
  // copying the items would take fifty times as long
  t.ok(late < early * 10, `${early.toFixed()} ms for the first, ${late.toFixed()} ms for the last 20,000`)
  const message = all.items.at(0) as MessageItem
  t.equal(message.parts.length, 1)
})
