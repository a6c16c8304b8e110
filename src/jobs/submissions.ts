import { CreateJobRequest, type JobInfo } from '../../schemas/jobs.js'
import { GatewayError } from '../errors.js'
import { keptWith, type TakenKey } from '../idempotency/making.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Clock } from '../lib/clock.js'
import { assertMeta, copyOf } from '../lib/json-value.js'
import { newId } from '../lib/new-id.js'
import { Patience, patiently } from '../lib/patience.js'
import { type Checker, compileSchema, validationError } from '../lib/validation.js'
import { nameOf, type Principal, UNLIMITED } from '../principal.js'
import type { Admission } from '../sessions/admission.js'
import type { Homes } from '../sessions/sharing.js'
import type { EgressGuard } from '../webhooks/egress.js'
import { targetProblems } from '../webhooks/target.js'
import type { JobRecord } from './adapter.js'
import type { Claims } from './claims.js'
import type { JobCounters } from './counters.js'
import { newJob } from './job.js'
import type { JobEvents } from './job-events.js'
import type { JobStore } from './job-store.js'
import { handedOut } from './patch.js'
import type { Recount } from './recount.js'
import { ofSession } from './refusals.js'
import type { SharedQueue } from './shared-queue.js'

interface SubmissionsParts {
  clock: Clock
  admission: Pick<Admission, 'examine'>
  /** Judges the webhooks that callers name. */
  guard: EgressGuard
  homes: Homes | undefined
  /** How many jobs may be queued. */
  bound: number
  counters: JobCounters
  recount: Recount
  /** Present when several nodes share the queue. */
  shared: SharedQueue | undefined
  store: JobStore
  events: JobEvents
  /** What is stored was taken up. */
  started: Promise<void>
  isDraining(): boolean
  claims(): Claims
}

export interface Submitter {
  /** Default: one that may do everything. */
  principal?: Principal
  takenKey?: TakenKey | undefined
}

const requestChecker: Checker<CreateJobRequest> = compileSchema(CreateJobRequest)

/** Takes jobs into the queue. */
export class Submissions {
  readonly #parts: SubmissionsParts
  readonly #room: Room
  /** Jobs whose submission is not told yet, and whether it came about. */
  readonly untold = new Map<string, Promise<boolean>>()

  constructor(parts: SubmissionsParts) {
    this.#parts = parts
    const { bound, counters, recount, shared } = parts
    this.#room = new Room({ bound, counters, recount, shared, submitting: this.untold })
  }

  /** As `JobQueue.submit`. */
  async submit(wanted: CreateJobRequest, { principal = UNLIMITED, takenKey }: Submitter): Promise<JobInfo> {
    requestChecker.assert(wanted)
    assertMeta(wanted.meta, 'meta')
    assertMeta(wanted.session.meta, 'session.meta')
    // the host may use its own again
    const request = copyOf({ ...wanted, session: { ...wanted.session } })
    this.#assertOpen()
    // whether there is room is asked last: what is refused for itself is not to come again
    if (request.webhook) {
      const problems = targetProblems(request.webhook, this.#parts.guard, 'webhook')
      if (problems.length > 0) throw validationError(problems)
    }
    const examined = this.#parts.admission.examine(request.session, principal)
    const { profile, cwd } = await examined.catch((refusal) => {
      throw ofSession(refusal)
    })
    await this.#parts.started
    this.#assertOpen()
    await this.#room.count()
    // of those that one count let in together each is one more
    if (this.#room.isFull) await this.#room.count()
    while (this.#room.mayBeFull) await this.#room.countAnew()
    this.#assertOpen()
    this.#room.assert()
    const { name } = profile.info
    const given = { id: newId(), now: this.#parts.clock.now(), profile: name, generation: profile.generation, cwd }
    const home = this.#parts.shared && this.#parts.homes?.of(profile.info)
    const info = newJob(request, { ...given, submittedBy: nameOf(principal), home })
    const record = { info, request: JSON.parse(JSON.stringify(request)) }
    const { clock } = this.#parts
    const submitted = async (isRefused: () => boolean) => {
      const submission = this.#add(record, takenKey && keptWith(takenKey, 'job', info.id), isRefused)
      this.untold.set(info.id, submission)
      const told = () => this.untold.delete(info.id)
      let cameAbout = false
      try {
        cameAbout = await submission
      } finally {
        if (cameAbout) told()
        // a claim that is under way may have it already
        else void this.#parts.claims().inTurn(async () => told())
        this.#parts.claims().wake()
      }
    }
    await patiently(clock, submitted, { patience: new Patience(clock, takenKey?.waitedMs) })
    return handedOut(info)
  }

  /** @returns false when it was refused while it was being stored, and is gone again */
  async #add(record: JobRecord, key: KeptKey | undefined, isRefused: () => boolean): Promise<boolean> {
    await this.#parts.store.add(record, key)
    if (isRefused()) {
      await this.#parts.store.disown(record)
      return false
    }
    this.#parts.store.adopt(record)
    this.#parts.events.emit('job_submitted', record)
    return true
  }

  #assertOpen(): void {
    if (this.#parts.isDraining()) throw new GatewayError('SG_ERR_SHUTTING_DOWN')
  }

  /** Resolves when each one is stored or was refused. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.untold.values())
  }
}

interface RoomOptions extends Pick<SubmissionsParts, 'bound' | 'counters' | 'recount' | 'shared'> {
  /** On their way into the queue. */
  submitting: ReadonlyMap<string, Promise<unknown>>
}

const FULL =
  'As many jobs wait as the queue takes (queue.maxQueuedJobs). Try again once one of them has begun or was canceled.'

/** Whether there is room for one more job in the queue. */
class Room {
  readonly #options: RoomOptions

  constructor(options: RoomOptions) {
    this.#options = options
  }

  /** Counts other nodes' jobs, too, where that was long ago, or where the queue seems full by it: jobs have begun since. */
  async count(): Promise<void> {
    await this.#options.shared?.recount()
    if (this.isFull) await this.countAnew()
  }

  async countAnew(): Promise<void> {
    const { recount, shared, submitting } = this.#options
    await (shared ? shared.recountAll(submitting.values()) : recount.settle())
  }

  /** @throws SG_ERR_TOO_MANY */
  assert(): void {
    if (this.isFull) throw new GatewayError('SG_ERR_TOO_MANY', { detail: FULL })
  }

  get isFull(): boolean {
    const { bound, counters, shared, submitting } = this.#options
    return (shared ?? counters).queued + submitting.size >= bound
  }

  /** Whether the queue may be full by what other nodes have taken in since the last count. */
  get mayBeFull(): boolean {
    const { bound, shared, submitting } = this.#options
    return !this.isFull && (shared?.hasUsedItsPart(bound, submitting.size) ?? false)
  }
}
