import type { RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import { whenAborted } from '../../../lib/aborted.js'
import type { RunnerHost } from '../../runner.js'
import type { AgentRow } from '../agent-table.js'
import type { GrantedTools } from './granted.js'
import { answerTo, CANCELLED, canAllow } from './permissions.js'
import type { SessionMode } from './session-mode.js'
import { inputOf, type ToolCalls } from './tool-calls.js'
import type { AcpTranslator } from './translate.js'
import type { Turn } from './turn.js'

interface AgentAsksParts {
  row: AgentRow
  calls: ToolCalls
  translator: AcpTranslator
  mode: SessionMode
  granted: GrantedTools
  /** The one in progress. */
  turn(): Turn | undefined
  host(): RunnerHost
  interrupt(): void
}

/** What an agent asks before it makes a call: what was granted answers first, then the mode of its session, then a person. */
export class AgentAsks {
  readonly #parts: AgentAsksParts

  constructor(parts: AgentAsksParts) {
    this.#parts = parts
  }

  async answer(request: RequestPermissionRequest, takenBack: AbortSignal): Promise<RequestPermissionResponse> {
    const { calls, translator, mode, granted, host, interrupt } = this.#parts
    const turn = this.#parts.turn()
    turn?.heard()
    if (!turn || turn.signal.aborted) return CANCELLED
    const unasked = AbortSignal.any([takenBack, turn.over])
    const call = calls.learn(request.toolCall, request.options)
    translator.tellCall(call)
    const shown = inputOf(call)
    if (!canAllow(request)) {
      translator.tellUnallowable(call)
      return answerTo(request, { behavior: 'deny' }, shown)
    }
    const { allowsOnce } = this.#parts.row.acp ?? {}
    if (granted.has(call)) {
      call.isAllowed = true
      return answerTo(request, { behavior: 'allow' }, shown, allowsOnce)
    }
    const answer =
      mode.answer(request) ??
      (await Promise.race([
        host().requestPermission(
          {
            toolName: call.name,
            toolUseId: call.id,
            input: shown,
            ...(call.title && { title: call.title }),
          },
          unasked,
        ),
        whenAborted(turn.signal),
      ]))
    // what becomes of the call then the agent tells
    if (!answer || unasked.aborted) return CANCELLED
    // nothing is done in plan mode, whatever was allowed, and whenever it was asked for
    const decision = mode.current === 'plan' ? (mode.answer(request) ?? answer) : answer
    call.isAllowed = decision.behavior === 'allow'
    if (decision.behavior === 'deny') {
      calls.deny(call)
      if (decision.interrupt) interrupt()
    }
    return answerTo(request, decision, shown, allowsOnce)
  }
}
