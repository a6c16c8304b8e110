import fc from 'fast-check'
import t from 'tap'
import type { AttachItem } from '../../client/attachment.js'
import { emptyTranscript, foldTranscript, type Transcript } from '../../client/transcript.js'
import type { MessageBlock, PermissionRequest, SessionEvent } from '../../client/types.js'
import { NO_USAGE } from '../fixtures/scripted-engine.js'

type Body = SessionEvent extends infer E ? (E extends unknown ? Omit<E, 'seq' | 'ts'> : never) : never

/** What may happen next in a session; the number chooses among what is there to happen to. */
const step = fc.record({
  what: fc.constantFrom(
    'begin',
    'type',
    'type',
    'type',
    'say',
    'result',
    'ask',
    'answer',
    'turn',
    'user',
    'dispatch',
    'settle',
    'file',
    'plan',
    'init',
    'error',
    'unknown',
  ),
  pick: fc.nat(1000),
})

/** A session's events as they happened, typing included. */
function happened(steps: { what: string; pick: number }[]): SessionEvent[] {
  const events: SessionEvent[] = []
  const writing: string[] = []
  const calls: string[] = []
  const asked: PermissionRequest[] = []
  const executions: string[] = []
  let names = 0
  const name = (kind: string) => `${kind}${++names}`
  const tell = (body: Body | { type: string }) =>
    events.push({ ...body, seq: events.length * 2 + 1, ts: events.length } as SessionEvent)
  const one = <T>(from: T[], pick: number): T | undefined => from[pick % from.length]
  const take = <T>(from: T[], pick: number): T | undefined => from.splice(pick % Math.max(1, from.length), 1)[0]

  for (const { what, pick } of steps) {
    const parentToolUseId = pick % 5 === 0 ? 'helper' : null
    switch (what) {
      case 'begin':
        writing.push(name('message'))
        break
      case 'type': {
        const uuid = one(writing, pick)
        const delta =
          pick % 3 === 0
            ? { type: 'tool_input' as const, json: '{"a"' }
            : { type: pick % 3 === 1 ? ('text' as const) : ('thinking' as const), text: `${pick} ` }
        if (uuid) tell({ type: 'stream_delta', uuid, blockIndex: pick % 2, delta, parentToolUseId })
        break
      }
      case 'say': {
        const content: MessageBlock[] = [{ type: 'text', text: `said ${pick}` }]
        for (let count = pick % 3; count > 0; count--) {
          const id = name('call')
          calls.push(id)
          content.push({ type: 'tool_use', id, name: 'tool', input: { pick } })
        }
        if (pick % 7 === 0) content.push({ type: 'of_the_future' } as never)
        const uuid = take(writing, pick) ?? name('message')
        tell({ type: 'assistant_message', uuid, parentToolUseId, message: { role: 'assistant', content } })
        break
      }
      case 'result': {
        const id = pick % 10 === 0 ? 'nobody' : take(calls, pick)
        if (!id) break
        const content: MessageBlock[] = [
          { type: 'tool_result', tool_use_id: id, content: `result ${pick}`, is_error: pick % 4 === 0 },
        ]
        const message = { role: 'user', content }
        tell({ type: 'user_message', uuid: name('message'), parentToolUseId, message, synthetic: true })
        break
      }
      case 'ask': {
        // of a call that is there, or of one that comes later
        const toolUseId = (pick % 4 === 0 ? `call${names + 1}` : one(calls, pick)) ?? 'unknown'
        const request = { id: name('request'), toolName: 'tool', toolUseId, input: {} }
        asked.push(request)
        tell({ type: 'permission_requested', request })
        break
      }
      case 'answer': {
        const request = take(asked, pick)
        const behavior = pick % 2 === 0 ? 'allow' : 'deny'
        if (request) tell({ type: 'permission_resolved', requestId: request.id, behavior, resolvedBy: 'client' })
        break
      }
      case 'turn':
        // what was being written never will be; its typing stays in the log for a while
        writing.length = 0
        tell({
          type: 'turn_completed',
          subtype: pick % 2 ? 'success' : 'interrupted',
          isError: false,
          durationMs: 1,
          numTurns: pick,
          totalCostUsd: pick,
          usage: { ...NO_USAGE, inputTokens: pick },
        })
        break
      case 'user':
        tell({
          type: 'user_message',
          uuid: name('message'),
          parentToolUseId: null,
          message: { role: 'user', content: `ask ${pick}` },
          commandId: name('command'),
        })
        break
      case 'dispatch': {
        const executionId = name('execution')
        executions.push(executionId)
        tell({
          type: 'execution_dispatched',
          executionId,
          toolName: 'far',
          backend: 'remote',
          deferred: pick % 2 === 0,
        })
        break
      }
      case 'settle': {
        const executionId = take(executions, pick)
        if (!executionId) break
        if (pick % 2) tell({ type: 'execution_failed', executionId, reason: 'timeout', error: 'late' })
        else tell({ type: 'execution_result', executionId, output: { type: 'text', value: 'done' } })
        break
      }
      case 'file':
        tell({ type: 'file_delivered', path: `file${pick % 3}`, bytes: pick })
        break
      case 'plan':
        tell({ type: 'plan_updated', entries: [{ content: `step ${pick}`, status: 'pending' }] } as never)
        break
      case 'init':
        tell({ type: 'model_changed', model: `model ${pick}` })
        tell({ type: 'status_changed', status: 'running' })
        break
      case 'error':
        tell({ type: 'session_error', message: `error ${pick}` })
        break
      default:
        tell({ type: 'of_the_future' })
    }
  }
  return events
}

/** What the log tells a moment after `at` events: how a message was typed leaves it once the message is whole. */
function logAfter(events: SessionEvent[], at: number): SessionEvent[] {
  const past = events.slice(0, at)
  const whole = new Set(past.flatMap((event) => (event.type === 'assistant_message' ? event.uuid : [])))
  return past.filter((event) => event.type !== 'stream_delta' || !whole.has(event.uuid))
}

const plain = (transcript: Transcript) => ({ ...transcript, items: transcript.items.toArray() })

/** Follows live from connection to connection: each begins with what the log has, after what is known, and some of it comes twice. */
function foldLive(events: SessionEvent[], cuts: number[], batch: number): Transcript {
  const ends = [...new Set([...cuts.map((cut) => cut % (events.length + 1)), events.length])].sort((a, b) => a - b)
  let transcript = emptyTranscript
  let offline = 0
  for (const [index, end] of ends.entries()) {
    // a connection replays what was missed, then goes on live up to where it is cut
    const connectedAt = Math.min(end, offline + (index % 3) * 2)
    const replayed = logAfter(events, connectedAt).filter(({ seq }) => seq > transcript.lastSeq - 4)
    const live = events.slice(connectedAt, end)
    const sent: AttachItem[] = [...replayed, ...live]
    for (let from = 0; from < sent.length; from += batch)
      transcript = foldTranscript(sent.slice(from, from + batch), transcript)
    offline = end
  }
  return transcript
}

t.test('folding live over any cuts gives what folding the replay gives', async (t) => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 120 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      fc.integer({ min: 1, max: 9 }),
      (steps, cuts, batch) => {
        const events = happened(steps)
        const replay = foldTranscript(logAfter(events, events.length))
        t.strictSame(plain(foldLive(events, cuts, batch)), { ...plain(replay), lastSeq: events.at(-1)?.seq ?? 0 })
      },
    ),
    { numRuns: 500 },
  )
})

t.test(
  'a fold changes nothing that was given to it, and different continuations do not disturb each other',
  async (t) => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 80 }),
        fc.nat(),
        fc.array(fc.nat(), { maxLength: 3 }),
        (steps, at, order) => {
          const events = happened(steps)
          const cut = at % (events.length + 1)
          const base = foldTranscript(events.slice(0, cut))
          const before = structuredClone(plain(base))
          const rest = events.slice(cut)
          const expected = plain(foldTranscript(rest, base))
          // another continuation, in which the same things are elsewhere
          let other = base
          for (const pick of order) {
            const { seq } = { seq: other.lastSeq + 1 }
            other = foldTranscript(
              [
                { type: 'session_error', message: `${pick}`, seq, ts: 0 },
                ...rest.map((event) => ({ ...event, seq: event.seq + 1000 })),
              ],
              other,
            )
          }
          t.strictSame(plain(base), before)
          t.strictSame(plain(foldTranscript(rest, base)), expected)
          // a copy, as one that was stored
          const copy = { ...base, items: Object.assign(Object.create(Object.getPrototypeOf(base.items)), base.items) }
          t.strictSame(plain(foldTranscript(rest, copy)).items, expected.items)
        },
      ),
      { numRuns: 200 },
    )
  },
)
