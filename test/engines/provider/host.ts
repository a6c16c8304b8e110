import type { ProfileOptions } from '../../../schemas/profiles.js'
import type {
  CreateEngineRunner,
  CutOffTurn,
  DeferredExecution,
  PermissionAsk,
  PermissionDecision,
  Runner,
  RunnerEvent,
  RunnerHost,
  RunnerSnapshot,
  SessionRunnerConfig,
} from '../../../src/engines/runner.js'

type EventOf<T extends RunnerEvent['type']> = Extract<RunnerEvent, { type: T }>

interface Question {
  ask: PermissionAsk
  answer(decision: PermissionDecision): void
}

/** The gateway's side of a runner: keeps what it hears, and lets a test wait for what it expects. */
export class TestHost implements RunnerHost {
  readonly events: RunnerEvent[] = []
  readonly asked: PermissionAsk[] = []
  readonly deferred: DeferredExecution[] = []
  readonly session = new AbortController()
  drained: Promise<void> | undefined
  waits = 0
  /** Answers at once when set; else a test answers what `nextQuestion` gives it. */
  decide: ((ask: PermissionAsk) => PermissionDecision) | undefined
  readonly #questions: Question[] = []
  #waiting: (() => void)[] = []

  get signal(): AbortSignal {
    return this.session.signal
  }

  emit(event: RunnerEvent): void {
    this.events.push(structuredClone(event))
    this.#changed()
  }

  requestPermission(ask: PermissionAsk): Promise<PermissionDecision> {
    this.asked.push(ask)
    this.#changed()
    if (this.decide) return Promise.resolve(this.decide(ask))
    return new Promise((resolve) => {
      this.#questions.push({ ask, answer: resolve })
      this.#changed()
    })
  }

  async deferExecution(execution: DeferredExecution): Promise<void> {
    this.deferred.push(execution)
  }

  waitForExecutions(): void {
    this.waits += 1
    this.#changed()
  }

  of<T extends RunnerEvent['type']>(type: T): EventOf<T>[] {
    return this.events.filter((event): event is EventOf<T> => event.type === type)
  }

  /** Text of all tool results, by the id of their call. */
  get results(): Record<string, { content: unknown; isError: boolean }> {
    const blocks = this.of('user_message').flatMap(({ message }) =>
      typeof message.content === 'string' ? [] : message.content,
    )
    return Object.fromEntries(
      blocks.flatMap((block) =>
        'tool_use_id' in block
          ? [[block.tool_use_id, { content: 'content' in block && block.content, isError: 'is_error' in block }]]
          : [],
      ),
    )
  }

  async until<T>(read: () => T | undefined | false): Promise<T> {
    for (;;) {
      const value = read()
      if (value) return value
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  #changed(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }

  nextQuestion(): Promise<Question> {
    return this.until(() => this.#questions.shift())
  }

  /** The end of the `n`-th turn, counted from 1. */
  turn(n = 1): Promise<EventOf<'turn_completed'>> {
    return this.until(() => this.of('turn_completed')[n - 1])
  }

  /** Resolves when the runner waits for the `n`-th time. */
  async waiting(n = 1): Promise<void> {
    await this.until(() => this.waits >= n)
  }
}

export interface Opening {
  provider: NonNullable<ProfileOptions['provider']>
  config?: Partial<SessionRunnerConfig>
  session?: NonNullable<ProfileOptions['session']>
  restore?: RunnerSnapshot
  cutOff?: CutOffTurn[]
}

/** A started session and its host. */
export async function open(
  create: CreateEngineRunner,
  { provider, config, session, restore, cutOff }: Opening,
): Promise<{ runner: Runner; host: TestHost }> {
  const runner = await create({
    sessionId: 'a-session',
    config: { cwd: '/project', ...config },
    profile: { name: 'test', engine: 'provider', provider, ...(session && { session }) },
    bridge: { execute: () => Promise.reject(new Error('no client is attached')) },
    ...(restore && { restore }),
    ...(cutOff && { cutOff }),
  })
  const host = new TestHost()
  await runner.start(host)
  return { runner, host }
}

/** Something to wait for until the test opens it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}
