import type { Runner, RunnerSnapshot, SessionRunnerConfig } from '../../engines/runner.js'
import type { Clock, Timer } from '../../lib/clock.js'
import type { Admission } from '../admission.js'
import { withChoice } from '../kept/journaled-state.js'
import type { Session } from '../session.js'

/** How long an engine may take to start again, before it is left behind; one agent has to wait for the next minute first. */
const START_LIMIT_MS = 120_000

/** Nobody wants the start any more. */
export class CalledOff extends Error {}

/** Hands the runner to the session. @param givenUp rejects when the start is not waited for any longer */
type Begin = (runner: Runner, config: SessionRunnerConfig, givenUp: Promise<never>) => Promise<void>

/** Starts engines for sessions that had one before: let in again, built again, within a time limit, and called off when need be. */
export class EngineStarter {
  readonly #admission: Admission
  readonly #clock: Clock
  readonly #callOffs = new Map<string, (reason: Error) => void>()

  constructor({ admission, clock }: { admission: Admission; clock: Clock }) {
    this.#admission = admission
    this.#clock = clock
  }

  /** @throws why it could not; the session has no engine then */
  async start(session: Session, snapshot: RunnerSnapshot | undefined, begin: Begin): Promise<void> {
    const admission = this.#admission
    const { info, generation } = session.profile
    let limit: Timer | undefined
    let handedOver = false
    const givenUp = new Promise<never>((_, reject) => {
      this.#callOffs.set(session.id, reject)
      limit = this.#clock.after(START_LIMIT_MS, () => reject(new Error('The engine did not start in time.')))
    })
    try {
      const building = admission.readmit(withChoice(session), info.name, generation).then(async (admitted) => ({
        config: admitted.config,
        runner: await admission.buildRunner(admitted, session.id, session.bridge, snapshot),
      }))
      givenUp.catch(() => {
        if (!handedOver) building.then(({ runner }) => runner.close()).catch(() => {})
      })
      const built = await Promise.race([building, givenUp])
      handedOver = true
      await begin(built.runner, built.config, givenUp)
    } finally {
      limit?.cancel()
      this.#callOffs.delete(session.id)
    }
  }

  callOff(id: string): void {
    this.#callOffs.get(id)?.(new CalledOff('The session is being removed.'))
  }

  callOffAll(): void {
    for (const callOff of this.#callOffs.values()) callOff(new CalledOff('The gateway is shutting down.'))
  }
}
