import type { Message, MessageBlock, SessionEvent, SessionEventOf } from '../../../schemas/events.js'
import type { CutOffTurn } from '../../engines/runner.js'
import type { KeptSnapshot, QueuedMessage } from '../kept/journal.js'
import type { Session } from '../session.js'
import { readPage } from './events-page.js'

/** How much of them is held, in characters of their JSON: no model reads more. */
export const MOST_CHARS = 8 * 1024 * 1024

/**
 * The turns that the log has and the engine that goes on from a snapshot would not know of. A snapshot is written with the end of each
 * turn, so what is read is hardly more than the turn that a crash cut off.
 * @param snapshot from between turns; absent: none was kept yet, and the first turn was cut off
 * @throws SG_ERR_STORE_UNAVAILABLE
 */
export async function cutOffTurns(session: Session, snapshot: KeptSnapshot | undefined): Promise<CutOffTurn[]> {
  const { log, profile, writer } = session
  const known = snapshot ? snapshot.logged : { throughSeq: 0 }
  // without a journal no session outlives its turn's process
  if (!known || profile.info.engine !== 'provider' || !writer || writer.isStale) return []
  const turns = new Turns(known.waiting)
  // also what is not shown yet: a message among that may wait
  for (let afterSeq = known.throughSeq; afterSeq < log.headSeq; )
    afterSeq = await readPage(log, { afterSeq, lastSeq: log.headSeq }, (events, nextAfterSeq) => {
      for (const json of events) turns.take(JSON.parse(json.toString()))
      return nextAfterSeq
    })
  return turns.cutOff(session.queued)
}

interface ToldTurn {
  messages: Message[]
  denied: string[]
  deferred: DeferredCalls
  isOver: boolean
  /** It was interrupted before its engine was given its message. */
  isUnbegun?: true
}

/**
 * Puts together what was said turn by turn. A message is told when it is accepted, which can be long before its turn, and which turn is
 * whose no event tells: they begin in order.
 */
export class Turns {
  readonly #mostChars: number
  readonly #accepted: QueuedMessage[]
  /** `toolUseId` of what was asked, by request. */
  readonly #asked = new Map<string, string>()
  readonly #turns: ToldTurn[] = []
  readonly #held: { from: Message[]; chars: number }[] = []
  #chars = 0

  /** @param waiting messages that were told before the first event that is taken, and not begun */
  constructor(waiting: readonly QueuedMessage[] = [], mostChars = MOST_CHARS) {
    this.#accepted = [...waiting]
    this.#mostChars = mostChars
  }

  take(event: SessionEvent): void {
    if (event.type === 'permission_requested') {
      this.#asked.set(event.request.id, event.request.toolUseId)
      return
    }
    if (event.type === 'permission_resolved') {
      const toolUseId = event.behavior === 'deny' ? this.#asked.get(event.requestId) : undefined
      if (toolUseId !== undefined) this.#current.denied.push(toolUseId)
      return
    }
    if (event.type === 'execution_dispatched') {
      if (event.deferred) this.#begun?.deferred.handedOver(event)
      return
    }
    if (event.type === 'execution_result' || event.type === 'execution_failed') {
      this.#begun?.deferred.came(event)
      return
    }
    if (event.type === 'turn_completed') {
      const turn = this.#current
      turn.isOver = true
      // any other end of a turn that is no error is told by its engine, with a snapshot
      if (!event.isError && turn.messages.length === 0) turn.isUnbegun = true
      return
    }
    const isSaid = event.type === 'user_message' || event.type === 'assistant_message'
    // an engine may leave out whose it is
    if (!isSaid || event.replay || (event.parentToolUseId ?? null) !== null) return
    const { message } = event
    if (event.type === 'assistant_message' || event.synthetic) this.#hold(message)
    else if (typeof message.content === 'string') {
      const { commandId } = event
      this.#accepted.push({ text: message.content, ...(commandId !== undefined && { commandId }) })
    }
  }

  get #begun() {
    const last = this.#turns.at(-1)
    return last?.isOver ? undefined : last
  }

  get #current() {
    const begun = this.#begun
    if (begun) return begun
    const turn: ToldTurn = { messages: [], denied: [], deferred: new DeferredCalls(), isOver: false }
    this.#turns.push(turn)
    return turn
  }

  /** What was said last tells what has come of it. */
  #hold(message: Message): void {
    const { messages, deferred } = this.#current
    deferred.said(message)
    const { length: chars } = JSON.stringify(message)
    messages.push(message)
    this.#held.push({ from: messages, chars })
    this.#chars += chars
    while (this.#chars > this.#mostChars && this.#held.length > 1) {
      const oldest = this.#held.shift()!
      oldest.from.shift()
      this.#chars -= oldest.chars
    }
  }

  /** @param queued messages that wait still: these go on by themselves */
  cutOff(queued: readonly QueuedMessage[] = []): CutOffTurn[] {
    const begun = [...this.#accepted]
    for (const { text, commandId } of queued) {
      const at = begun.findLastIndex((one) => one.text === text && one.commandId === commandId)
      if (at >= 0) begun.splice(at, 1)
    }
    const turns = this.#turns.flatMap(({ messages: said, denied, deferred, isUnbegun }) => {
      const prompt = begun.shift()?.text
      const messages = [...said, ...deferred.untold]
      const told = { ...(prompt !== undefined && { prompt }), messages, ...(denied.length > 0 && { denied }) }
      return isUnbegun ? [] : [told]
    })
    return [...turns, ...begun.map(({ text }) => ({ prompt: text, messages: [] }))]
  }
}

/**
 * The deferred calls of a turn that was cut off, by what was told of it. Which call an execution is no event tells: they are handed over in
 * the order of the calls, each once those of its tool before it were, or have a result.
 */
class DeferredCalls {
  /** Names of the tools of calls that were neither handed over nor have a result. */
  readonly #open = new Map<string, string>()
  readonly #handedOver = new Map<string, string>()
  /** Results that came, and that their engine did not live to tell. */
  readonly #untold = new Map<string, MessageBlock>()

  said({ content }: Message): void {
    for (const block of typeof content === 'string' ? [] : content) {
      if (block.type === 'tool_use' && 'name' in block) this.#open.set(String(block.id), String(block.name))
      if (block.type !== 'tool_result' || !('tool_use_id' in block)) continue
      const call = String(block.tool_use_id)
      this.#open.delete(call)
      this.#untold.delete(call)
    }
  }

  handedOver({ executionId, toolName }: SessionEventOf<'execution_dispatched'>): void {
    const [call] = [...this.#open].find(([, name]) => name === toolName) ?? []
    if (call === undefined) return
    this.#open.delete(call)
    this.#handedOver.set(executionId, call)
  }

  came(event: SessionEventOf<'execution_result' | 'execution_failed'>): void {
    const call = this.#handedOver.get(event.executionId)
    // nobody brought that one
    const isCutOff = event.type === 'execution_failed' && event.reason === 'interrupted'
    if (call === undefined || isCutOff) return
    this.#untold.set(call, { type: 'tool_result', tool_use_id: call, ...contentOf(event) } as MessageBlock)
  }

  /** What the engine would have told. */
  get untold(): Message[] {
    return [...this.#untold.values()].map((block) => ({ role: 'user', content: [block] }))
  }
}

function contentOf(event: SessionEventOf<'execution_result' | 'execution_failed'>) {
  if (event.type === 'execution_failed') {
    const { reason, error } = event
    return { content: JSON.stringify({ status: 'failed', reason, error }), is_error: true }
  }
  const { output } = event
  return { content: output.type === 'text' ? output.value : (JSON.stringify(output.value) ?? 'null') }
}
