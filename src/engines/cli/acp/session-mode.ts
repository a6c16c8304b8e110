import type { RequestPermissionRequest } from '@agentclientprotocol/sdk'
import type { PermissionMode } from '../../../../schemas/permissions.js'
import type { Clock } from '../../../lib/clock.js'
import type { PermissionDecision, RunnerEvent } from '../../runner.js'
import type { AgentRow } from '../agent-table.js'
import { answered } from '../control.js'
import { reasonOf } from './connection.js'
import { agentModeOf, answerOfMode, modeOfAgent } from './permissions.js'
import type { SessionConfig } from './session-config.js'

export interface SessionModeParts {
  readonly row: AgentRow
  readonly clock: Clock
  tell(event: RunnerEvent): void
  /** The agent acts as nobody here allowed: it is ended, and its turn with it. */
  giveUp(detail: string): void
}

/** The permission mode of a session: ours, in which the agent has to be. */
export class SessionMode {
  readonly #parts: SessionModeParts
  #mode: PermissionMode
  /** The modes that it was brought back from since somebody chose one, or a turn began. */
  readonly #strayed = new Set<string>()
  /** The one that it did not come back from: with the next turn it is told again. */
  #astray: string | undefined

  constructor(mode: PermissionMode, parts: SessionModeParts) {
    this.#mode = mode
    this.#parts = parts
  }

  get current(): PermissionMode {
    return this.#mode
  }

  /** What the mode itself answers; undefined when a person is to be asked. */
  answer(request: RequestPermissionRequest): PermissionDecision | undefined {
    return answerOfMode(this.#mode, agentModeOf(this.#parts.row, this.#mode), request)
  }

  /** @param isAsked somebody says so: the agent is told the mode that it should be in already, too, as it may have left it and not said so */
  async enter(session: SessionConfig, mode: PermissionMode, isAsked = false): Promise<void> {
    const { id } = agentModeOf(this.#parts.row, mode)
    const isNews = id !== session.mode || (isAsked && mode === this.#mode)
    if (id !== undefined && isNews) await session.setMode(id)
    this.#mode = mode
    this.#astray = undefined
    this.#strayed.clear()
  }

  /** To be called before the agent is given its prompt. */
  startTurn(session: SessionConfig): void {
    this.#strayed.clear()
    if (this.#astray !== undefined) void this.#bringBack(session, this.#astray)
  }

  /** The agent says that it is in another one of its own now. @param isOpen false: its mode is still to be set */
  agentIs(id: string, session: SessionConfig | undefined, isOpen: boolean): void {
    if (session?.modeIs(id) && isOpen) this.#follow(session, id)
  }

  /** To be called once it is open: the agent may have gone to another mode since its own was set. */
  opened(session: SessionConfig): void {
    const { id } = agentModeOf(this.#parts.row, this.#mode)
    if (id !== undefined && session.mode !== undefined && session.mode !== id) this.#follow(session, session.mode)
  }

  #follow(session: SessionConfig, id: string): void {
    const mode = modeOfAgent(this.#parts.row, id, this.#mode)
    if (mode === undefined) {
      void this.#bringBack(session, id)
      return
    }
    this.#astray = undefined
    if (mode === this.#mode) return
    this.#mode = mode
    this.#parts.tell({ type: 'permission_mode_changed', mode })
  }

  /** What it does unasked in a mode of its own that nobody chose, nobody here knows. */
  async #bringBack(session: SessionConfig, from: string): Promise<void> {
    const { row, clock, tell, giveUp } = this.#parts
    const idOfOurs = () => agentModeOf(row, this.#mode).id
    let id = idOfOurs()
    // nobody has said what its modes are
    if (id === undefined) return
    tell({ type: 'engine_event', payload: { type: 'mode_brought_back', mode: from } })
    try {
      if (this.#strayed.has(from)) throw new Error('It goes there again and again.')
      this.#strayed.add(from)
      // somebody may choose another one meanwhile, which the agent is told before this
      for (let told: string | undefined; id !== undefined && id !== told; id = idOfOurs()) {
        told = id
        await answered(session.setMode(id), clock)
      }
      this.#astray = undefined
    } catch (error) {
      this.#astray = from
      giveUp(`The agent went to its mode ${from}, which nobody chose, and does not come back: ${reasonOf(error)}`)
    }
  }
}
