import type { SessionCommand, SessionCommandOf } from '../../../schemas/commands.js'
import type { PermissionMode, ResolvePermissionRequest } from '../../../schemas/permissions.js'
import type { Runner } from '../../engines/runner.js'
import { GatewayError, invalidField, isOf, toError } from '../../errors.js'
import { LazyMap } from '../../lib/lazy-map.js'
import type { Patience } from '../../lib/patience.js'
import { within } from '../../lib/within.js'
import { answeredBy, type Principal } from '../../principal.js'
import { assertPermissionMode } from '../admission.js'
import type { AnswerBearing } from '../asks/permissions.js'
import { chosenWith, chosenWithout } from '../kept/choice.js'
import type { QueuedMessage } from '../kept/journal.js'
import type { Asked, Choice } from '../kept/news.js'
import type { SessionState } from '../session-state.js'
import type { SessionWorld } from '../session-world.js'
import type { Attachment } from './attachment.js'
import type { SessionBridge } from './clients.js'

/** Command ids remembered per session, so that a repeat is acknowledged and not run twice. */
const REMEMBERED_IDS = 1_000
const ENGINE_ANSWER_MS = 30_000

/** Whether an engine that was let go is started again for it. */
const NEEDS_ENGINE: Readonly<Record<SessionCommand['type'], boolean>> = {
  user_message: true,
  permission_decision: false,
  interrupt: false,
  set_permission_mode: true,
  set_model: true,
  tool_call_result: false,
  tool_call_error: false,
  close: false,
  ping: false,
}

/** A session, with what it does for commands. */
interface Commanded extends SessionState {
  accept(asked: Asked, key?: undefined, patience?: Patience): Promise<QueuedMessage | undefined>
  answerPermission(requestId: string, answer: ResolvePermissionRequest, bearing: AnswerBearing): Promise<void>
  interrupt(): Promise<void>
  readonly leaveDesk: { keepSnapshot(): void }
  readonly engine: {
    readonly begun: Promise<void>
    ask(question: () => Promise<void> | undefined): Promise<void>
  }
}

/** Carries out the commands of one session, from sockets and REST alike. */
export class CommandDesk {
  readonly #session: Commanded
  readonly #world: SessionWorld
  #remembered: Map<string, Promise<void>> | undefined
  /** The mode or model change in progress: messages that come after it wait for it. */
  #change: Promise<void> | undefined
  /** The last of each kind: what was asked for later is not undone by an engine that is late. */
  readonly #last = new LazyMap<keyof Choice, Choice>()
  /** Of each kind the last that was refused: an engine that did not answer in time may have it yet, and says so then. */
  readonly #refused = new LazyMap<keyof Choice, { choice: Choice; onHas(): void }>()

  constructor(session: Commanded, world: SessionWorld) {
    this.#session = session
    this.#world = world
  }

  /** Resolves when the command was carried out; a repeated id shares the first one's success. */
  handle(command: SessionCommand, from?: Attachment, principal?: Principal, patience?: Patience): Promise<void> {
    if (command.id === undefined || command.type === 'ping') return this.#run(command, from, principal, patience)
    const { id } = command
    this.#remembered ??= new Map()
    const earlier = this.#remembered.get(id)
    if (earlier) return earlier
    // accepted before the session was last read from the journal
    if (this.#session.messageIds?.includes(id)) return Promise.resolve()
    const outcome = this.#run(command, from, principal, patience)
    this.#remembered.set(id, outcome)
    // what was refused changed nothing and may be tried again under its id
    outcome.catch(() => this.#remembered?.delete(id))
    if (this.#remembered.size > REMEMBERED_IDS) this.#remembered.delete(this.#remembered.keys().next().value!)
    return outcome
  }

  async #run(
    command: SessionCommand,
    from: Attachment | undefined,
    principal: Principal | undefined,
    patience: Patience | undefined,
  ): Promise<void> {
    if (command.type === 'ping') return
    const session = this.#session
    session.concerns++
    // the host itself has none
    const by = principal && answeredBy(principal, from ? 'socket' : 'rest')
    try {
      await this.#runInTurn(command, from, { by, commandId: command.id, patience })
    } finally {
      session.concerns--
      this.#world.sleep.consider(session)
    }
  }

  async #runInTurn(command: SessionCommand, from: Attachment | undefined, bearing: AnswerBearing): Promise<void> {
    const { patience } = bearing
    if (this.#change && command.type === 'user_message') await apart(this.#change, patience)
    const session = this.#session
    if (session.frozen) await apart(this.#world.sleep.unfrozen(session), patience)
    if (session.ended) throw new GatewayError('SG_ERR_SESSION_ENDED')
    if (session.parked) return this.#whileParked(command, bearing)
    // the first one that finds an engine starting waits for it as the one that started it
    if (NEEDS_ENGINE[command.type] && !session.serving)
      await apart(this.#world.sleep.rouse(session).catch(refuseAsSession), patience)
    await this.#carryOut(command, from, bearing)
  }

  /** What is to be remembered is written down before it is done; what only acts on an engine has nothing to be remembered. */
  async #carryOut(command: SessionCommand, from: Attachment | undefined, bearing: AnswerBearing): Promise<void> {
    const session = this.#session
    const { patience } = bearing
    switch (command.type) {
      case 'user_message':
        return this.#say(command, bearing)
      case 'permission_decision':
        return session.answerPermission(command.requestId, answerOf(command), bearing)
      case 'interrupt':
        return this.#ask(() => this.#interrupt())
      case 'set_permission_mode':
        return this.#changing(() => this.#setPermissionMode(command.mode, bearing), patience)
      case 'set_model':
        return this.#changing(() => this.#setModel(command.model, bearing), patience)
      case 'tool_call_result': {
        const { executionId, output, logs } = command
        return this.#settle(executionId, { status: 'ok', output, ...(logs && { logs }) }, from)
      }
      case 'tool_call_error': {
        const { executionId, reason, error, logs } = command
        return this.#settle(executionId, { status: 'failed', reason, error, ...(logs && { logs }) }, from)
      }
      case 'close':
        await session.accept({ type: 'close', ...named(bearing) }, undefined, patience)
        return session.close('client')
      case 'ping':
        return
      default:
        command satisfies never
    }
  }

  /** What can be done to a session that no engine serves. */
  async #whileParked(command: SessionCommand, bearing: AnswerBearing): Promise<void> {
    const { sleep } = this.#world
    switch (command.type) {
      case 'permission_decision':
        return this.#session.answerPermission(command.requestId, answerOf(command), bearing)
      case 'interrupt':
        // an engine may serve it by then
        return this.#ask(() => sleep.interrupt(this.#session))
      case 'close':
        await sleep.remove(this.#session.id, 'client')
        return
      case 'tool_call_result':
      case 'tool_call_error':
        throw new GatewayError('SG_ERR_EXECUTION_NOT_FOUND')
      default:
        throw new GatewayError('SG_ERR_SESSION_PARKED')
    }
  }

  async #say({ text, whenBusy = 'enqueue' }: SessionCommandOf<'user_message'>, bearing: AnswerBearing): Promise<void> {
    const session = this.#session
    const { by, patience } = bearing
    const message = {
      ...({ type: 'message', text } as const),
      ...named(bearing),
      ...(by?.principal !== undefined && { by: by.principal }),
    }
    const isBusy = session.busy || session.messagesComing > 0
    if (isBusy && whenBusy === 'reject') throw new GatewayError('SG_ERR_SESSION_BUSY')
    if (!isBusy || whenBusy === 'enqueue') {
      await session.accept(message, undefined, patience)
      return
    }
    const accepted = await session.accept({ ...message, first: true }, undefined, patience)
    // whoever is told that it was refused sends it again, and it is said twice
    const onRefused = (error: unknown) => {
      if (session.ended) throw error
      this.#world.logger.warn(
        { sessionId: session.id, err: toError(error) },
        'a message waits for a turn that does not end',
      )
    }
    // the turn before it may have ended by itself meanwhile: the one in progress is its own then
    if (accepted && session.inTurn && session.queued?.includes(accepted))
      await this.#ask(() => this.#interrupt()).catch(onRefused)
  }

  /** Of a turn that falls asleep or is being woken nobody can end it before that is over; a message that waits for an engine is not begun. */
  #interrupt(): Promise<void> {
    const session = this.#session
    const { life } = session
    const isOnItsWay = session.frozen || session.parked || (life.is === 'waking' && life.inTurn)
    return isOnItsWay ? this.#world.sleep.interrupt(session) : session.interrupt()
  }

  async #settle(executionId: string, result: Parameters<SessionBridge['settle']>[1], from: Attachment | undefined) {
    if (!this.#session.bridge.settle(executionId, result, from)) throw new GatewayError('SG_ERR_EXECUTION_NOT_FOUND')
  }

  async #setPermissionMode(mode: PermissionMode, bearing: AnswerBearing): Promise<void> {
    const { profile } = this.#session
    assertPermissionMode(mode, profile.info.engine, this.#world.disableBypassPermissions, 'mode')
    const runner = this.#runner()
    if (!runner.setPermissionMode || !runner.capabilities.permissionModes.includes(mode))
      throw invalidField('mode', `the engine of this session cannot switch to ${mode}.`, 'SG_ERR_UNSUPPORTED')
    await this.#choose({ permissionMode: mode }, () => runner.setPermissionMode?.(mode), bearing)
  }

  async #setModel(model: string | undefined, bearing: AnswerBearing): Promise<void> {
    const runner = this.#runner()
    if (!runner.setModel || !runner.capabilities.setModel)
      throw invalidField('model', 'the engine of this session cannot change it.', 'SG_ERR_UNSUPPORTED')
    await this.#choose({ model: model ?? null }, () => runner.setModel?.(model), bearing)
  }

  /**
   * Written down for a later start of the engine, then asked of this one; what this one refuses is taken back. What became of it is written
   * down before it is said: a refusal that a crash forgot would take effect with the next engine.
   */
  async #choose(choice: Choice, change: () => Promise<void> | undefined, bearing: AnswerBearing): Promise<void> {
    const session = this.#session
    const { chosen: before, runner } = session
    const [kind] = Object.keys(choice) as [keyof Choice]
    this.#last.set(kind, choice)
    await session.accept({ type: 'choice', choice, ...named(bearing) }, undefined, bearing.patience)
    let asking: Promise<void> | undefined
    try {
      await this.#ask(() => {
        asking = session.engine.ask(change)
        return asking
      })
    } catch (error) {
      session.chosen = chosenWithout(session.chosen, choice, before)
      session.forgetCommand(bearing.commandId)
      session.touch()
      const isStill = () => choice === this.#last.get(kind) && session.runner === runner
      this.#refused.set(kind, { choice, onHas: () => isStill() && this.#take(choice, bearing) })
      asking?.then(
        () => isStill() && this.#onTaken(choice, bearing),
        () => {},
      )
      await session.durable(bearing.patience).catch(() => {})
      throw error
    }
    this.#onTaken(choice, bearing)
    await session.durable(bearing.patience).catch(() => {})
  }

  /** An agent that answers too late has it told: the engine has given up on its answer by then. */
  onHas(has: Choice): void {
    const [kind] = Object.keys(has) as [keyof Choice]
    const refused = this.#refused.get(kind)
    if (refused?.choice[kind] !== has[kind]) return
    this.#refused.delete(kind)
    refused?.onHas()
  }

  #onTaken(choice: Choice, bearing: AnswerBearing): void {
    this.#take(choice, bearing)
    this.#session.leaveDesk.keepSnapshot()
  }

  /** A snapshot that was taken meanwhile may have been taken before, and one in the middle of what the engine tells still is. */
  #take(choice: Choice, { commandId }: AnswerBearing): void {
    const session = this.#session
    session.chosen = chosenWith(session.chosen, choice)
    session.rememberCommand(commandId)
    session.touch()
  }

  #runner(): Runner {
    const { runner } = this.#session
    if (!runner) throw new GatewayError('SG_ERR_SESSION_ENDED')
    return runner
  }

  /** Runs changes one after the other; an engine that is being built or starting yet can neither make one nor say which it could. */
  #changing(change: () => Promise<void>, patience: Patience | undefined): Promise<void> {
    const session = this.#session
    const built = () =>
      new Promise<void>((resolve) => {
        session.onBuilt = resolve
      })
    const begun = async () => {
      if (session.life.is === 'building') await this.#ask(built)
      // the engine may have gone while the one before was made
      if (!session.serving) await this.#world.sleep.rouse(session).catch(refuseAsSession)
      await this.#ask(() => session.engine.begun)
    }
    const outcome = apart((this.#change ?? Promise.resolve()).then(begun), patience).then(change)
    const settled = outcome.catch(() => {})
    this.#change = settled
    void settled.then(() => {
      if (this.#change === settled) this.#change = undefined
    })
    return outcome
  }

  /** Asks the engine; what it throws becomes a refusal that says why, and silence does not last for ever. */
  async #ask(question: () => Promise<void> | undefined): Promise<void> {
    const onLate = () => {
      throw new GatewayError('SG_ERR_ENGINE_REFUSED', { detail: 'The engine did not answer in time.' })
    }
    try {
      await within(ENGINE_ANSWER_MS, question(), { clock: this.#world.clock, onLate })
    } catch (error) {
      if (isOf(GatewayError, error)) throw error
      throw new GatewayError('SG_ERR_ENGINE_REFUSED', { detail: toError(error).message, cause: error })
    }
  }
}

/** How long an engine takes is not the storage's. */
const apart = (work: Promise<void>, patience: Patience | undefined): Promise<void> => patience?.apart(work) ?? work

/** What keeps an engine from starting is what the session was created with: no field of the command is wrong. */
function refuseAsSession(error: unknown): never {
  if (!(error instanceof GatewayError && error.errors)) throw error
  const detail = `The engine of this session cannot be started again: ${error.message}`
  throw new GatewayError(error.code, { detail, cause: error })
}

/** What is kept of a command is known by its id. */
const named = ({ commandId }: AnswerBearing) => (commandId === undefined ? {} : { commandId })

function answerOf(command: SessionCommandOf<'permission_decision'>): ResolvePermissionRequest {
  const { type: _type, id: _id, requestId: _requestId, ...answer } = command
  return answer
}
