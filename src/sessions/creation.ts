import type { CreateSessionRequest, SessionInfo } from '../../schemas/sessions.js'
import { letGo } from '../engines/built-runner.js'
import { GatewayError, startError } from '../errors.js'
import { keptWith } from '../idempotency/making.js'
import { newId } from '../lib/new-id.js'
import { Passing } from '../lib/passing.js'
import { PATIENCE_MS, Patience, patiently } from '../lib/patience.js'
import type { PlannedNotification } from '../notifications/planned.js'
import { nameOf, type Principal } from '../principal.js'
import type { Archive } from './kept/archive.js'
import type { Keeping } from './kept/keeping.js'
import { comesAgain } from './life/refusals.js'
import { START_LIMIT_MS } from './life/runner-link.js'
import { type Places, tooMany } from './places.js'
import type { CreateOptions, RegistryOptions } from './registry-options.js'
import { Session } from './session.js'
import type { SessionWorld } from './session-world.js'

const REMOVE_RETRY_MS = 30_000

export interface CreationParts {
  options: RegistryOptions
  world: SessionWorld
  places: Places
  keeping: Keeping
  archive: Archive
  isDraining(): boolean
  register(session: Session, principal: Principal | undefined, told?: PlannedNotification): void
  /** Takes one out that was registered. */
  remove(id: string): void
}

/** Creates sessions, and lets none of those that were refused stay behind. */
export class Creation {
  readonly #parts: CreationParts
  /** Refuses those who wait for an engine to be built. */
  readonly #waiting = new Passing<(refusal: GatewayError) => void>()
  /** Agents' own sessions that are about to be gone on from, once per create. */
  readonly #resuming = new Passing<string>()

  constructor(parts: CreationParts) {
    this.#parts = parts
  }

  /** Whoever waits for an engine is told at once that none comes any more. */
  drain(): void {
    for (const refuse of this.#waiting) refuse(new GatewayError('SG_ERR_SHUTTING_DOWN'))
  }

  /**
   * Creates a session and starts its engine.
   * @returns its SessionInfo; a failure of the engine to start is told by events
   * @throws GatewayError; nothing is registered then
   */
  async create(request: CreateSessionRequest, options: CreateOptions): Promise<SessionInfo> {
    const { places, register } = this.#parts
    const { admission, clock } = this.#parts.options
    if (this.#parts.isDraining()) throw new GatewayError('SG_ERR_SHUTTING_DOWN')
    if (!places.hasRoom && !options.place) await this.#refuseForRoom(request, options)
    places.take(options.place)
    const left: (() => void)[] = []
    const resumes = (id: unknown) => {
      if (typeof id === 'string') left.push(this.#resuming.add(id))
    }
    // nobody has looked at it yet; a host may have another one resumed
    resumes((request as Partial<CreateSessionRequest> | null | undefined)?.resume)
    let session: Session | undefined
    let registered = false
    try {
      const { admitted, leftMs, ...made } = await this.#admit(request, options, resumes)
      // whoever called it off before this has not found it
      options.signal?.throwIfAborted()
      session = made.session
      const { jobId, config } = session
      // nobody waits for the answer to a job's session: it can be seen and ended while its engine is being built
      if (jobId !== undefined) {
        register(session, options.principal, options.told)
        registered = true
        if (config.prompt !== undefined) session.turnDesk.open(config.prompt)
      }
      const building = admission.buildRunner(admitted, session.id, session.bridge)
      const runner = await this.#inTime(building, {
        ...{ isRun: jobId !== undefined, silent: 'The engine was not built in time.' },
        discard: (late) => letGo(late, clock),
      })
      try {
        // a run that was refused comes again: its engine must not have begun by then
        if (jobId !== undefined) await session.durable()
        this.#assertBegins(session)
      } catch (error) {
        await letGo(runner, clock)
        throw error
      }
      if (!registered) register(session, options.principal)
      registered = true
      session.engine.begin(runner)
      // an engine that starts at once has started then, and the answer says so
      // what the engine took to be built is not the storage's
      if (jobId === undefined) await session.durable(new Patience(clock, PATIENCE_MS - leftMs))
      return session.info()
    } catch (error) {
      if (!registered) places.leave()
      else if (session && !session.ended) this.#refuse(session, error)
      throw error
    } finally {
      for (const leave of left) leave()
    }
  }

  /** What is refused whatever room there is is not to come again for that; no code of the host is asked, and nothing built. */
  async #refuseForRoom(request: CreateSessionRequest, { principal, jobId }: CreateOptions): Promise<never> {
    await this.#inTime(this.#parts.options.admission.examineUnchecked(request, principal), {
      isRun: jobId !== undefined,
      silent: 'The file system that cwd is on did not answer in time.',
    })
    throw tooMany()
  }

  /**
   * The session of a request that may be, with its key kept where its journal cannot take that along.
   * @param resumes told from which of an agent's own sessions it goes on
   * @returns leftMs how long whoever waits for it may wait for the storage still
   */
  async #admit(request: CreateSessionRequest, options: CreateOptions, resumes: (id: unknown) => void) {
    const { world } = this.#parts
    const { admission, keepKey, clock } = this.#parts.options
    const isRun = options.jobId !== undefined
    const admitted = await this.#inTime(admission.admit(request, options.principal, options.profile), {
      isRun,
      silent: 'buildRunnerConfig, or the file system that cwd is on, did not answer in time.',
    })
    const { profile, request: asked, config } = admitted
    // the turn of its prompt is what ends a run: there would be none
    if (isRun && config.prompt === undefined)
      throw startError('buildRunnerConfig returned a config without the prompt of the job.')
    resumes(config.resume)
    const { id = newId(), jobId, takenKey } = options
    const key = takenKey && keptWith(takenKey, 'session', id)
    const patience = new Patience(clock, takenKey?.waitedMs)
    if (key && keepKey) await patiently(clock, () => keepKey(key), { patience })
    const { leftMs } = patience
    const createdBy = options.createdBy ?? nameOf(options.principal)
    const home = this.#parts.world.sharing?.homes?.of(profile.info)
    return {
      admitted,
      session: new Session(world, { id, profile, request: asked, config, jobId, createdBy, key, home }),
      leftMs,
    }
  }

  /** Whether a session is about to be opened from an agent's own session of that id; one that is registered says so itself. */
  isResuming(sdkSessionId: string): boolean {
    return [...this.#resuming].includes(sdkSessionId)
  }

  /**
   * Waits for what a host's code has its part in, and not for ever.
   * @param how.isRun of a job: the end of the process does not wait for it
   * @param how.silent told the operator when nothing comes
   * @throws SG_ERR_ENGINE_START · SG_ERR_SHUTTING_DOWN, and what still comes of it is discarded
   */
  #inTime<T>(
    work: Promise<T>,
    { isRun, silent, discard = () => {} }: { isRun: boolean; silent: string; discard?: (late: T) => unknown },
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      let leave = () => {}
      const waitNoMore = () => {
        limit.cancel()
        leave()
      }
      // once: what comes late is discarded once
      const refuse = (refusal: GatewayError) => {
        waitNoMore()
        reject(refusal)
        work.then(discard).catch(() => {})
      }
      const limit = this.#parts.options.clock.after(START_LIMIT_MS, () =>
        refuse(new GatewayError('SG_ERR_ENGINE_START', { cause: new Error(silent) })),
      )
      if (!isRun) leave = this.#waiting.add(refuse)
      if (!isRun && this.#parts.isDraining()) refuse(new GatewayError('SG_ERR_SHUTTING_DOWN'))
      work.then(resolve, reject).finally(waitNoMore)
    })
  }

  /** Nothing may be waited for between this and the beginning. */
  #assertBegins(session: Session): void {
    if (this.#parts.isDraining()) throw new GatewayError('SG_ERR_SHUTTING_DOWN')
    if (session.ended) throw new GatewayError('SG_ERR_SESSION_ENDED', { retryAfterS: 5 })
  }

  #refuse(session: Session, error: unknown): void {
    const { message, code } = error instanceof GatewayError ? error : new GatewayError('SG_ERR_ENGINE_START')
    // of one that nothing was done in and that comes again there is no failure to tell
    if (session.jobId !== undefined && comesAgain(code)) void session.close('server')
    else session.fail(message, code)
    this.#parts.remove(session.id)
    this.#removeRefused(session)
  }

  /** What was written of a session that was refused goes again, as soon as the journal lets it. */
  #removeRefused(session: Session): void {
    const { archive, keeping, options, isDraining } = this.#parts
    archive.hide(session.id)
    keeping.erase(session.id, session).then(
      () => archive.unhide(session.id),
      () => {
        if (!isDraining()) options.retryAfter(REMOVE_RETRY_MS, () => this.#removeRefused(session))
      },
    )
  }
}
