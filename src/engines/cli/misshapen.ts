import type { AgentSetup } from './launch.js'

/** What an agent says in another shape than it is read in: of the first message of each type, the operator is told. */
export class Misshapen {
  readonly #setup: Pick<AgentSetup, 'sessionId' | 'row' | 'logger'>
  readonly #told = new Set<string | undefined>()

  constructor(setup: Pick<AgentSetup, 'sessionId' | 'row' | 'logger'>) {
    this.#setup = setup
  }

  tell(type: string | undefined, problem: string): void {
    if (this.#told.has(type)) return
    this.#told.add(type)
    const { sessionId, row, logger } = this.#setup
    logger?.warn({ sessionId, agent: row.name, type, problem }, 'the agent said something of the wrong shape')
  }
}
