import type { DeferredExecution } from '../engines/runner.js'
import { caught } from '../lib/caught.js'
import { copyOf } from '../lib/json-value.js'
import type { Logger } from '../lib/logger.js'
import { PlannedOnce } from '../notifications/planned.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { EgressGuard } from '../webhooks/egress.js'
import { type OperatorWebhook, operatorTarget, type WebhookTarget } from '../webhooks/target.js'
import type { Executions } from './executions.js'

/** A call of a deferred tool, as whoever does the work is told it. */
export interface ExecutionDispatch {
  executionId: string
  sessionId: string
  toolName: string
  input: unknown
  /** Epoch milliseconds. */
  expiresAt?: number
  /** Where the result is POSTed, under the gateway's own origin. */
  resultPath: string
}

export interface DispatcherOptions {
  tools?: readonly { name: string; dispatch?: OperatorWebhook }[]
  onDispatch?: ((execution: ExecutionDispatch) => unknown) | undefined
  basePath: string
  deliverer: WebhookDeliverer
  executions: Pick<Executions, 'onOver'>
  guard: EgressGuard
  logger: Logger
}

/** Nobody else would do the work, so it is tried for some minutes. */
const ATTEMPTS = 10
const RETRY_DELAY_MS = 500

const laneOf = (sessionId: string, toolName: string): string => `${sessionId} ${toolName}`

/** Tells whoever does the work of deferred tools: the host by its hook, others by a webhook. */
export class ExecutionDispatcher {
  readonly #options: DispatcherOptions
  /** By the tool's name. */
  readonly #targets: ReadonlyMap<string, WebhookTarget>

  /** @throws SG_ERR_OPTION for a `dispatch` that cannot be a target */
  constructor(options: DispatcherOptions) {
    const { tools = [], guard, executions } = options
    this.#options = options
    this.#targets = new Map(
      tools.flatMap(({ name, dispatch }, index) => {
        if (!dispatch) return []
        const option = `executions.tools.${index}.dispatch`
        // its index may change, and then it is still the same one
        const how = { option, place: `dispatch ${name}`, attempts: ATTEMPTS, retryDelayMs: RETRY_DELAY_MS, guard }
        return [[name, operatorTarget(dispatch, how)]]
      }),
    )
    executions.onOver = (sessionId, executionId) => this.withdraw(sessionId, executionId)
  }

  targets(): Iterable<WebhookTarget> {
    return this.#targets.values()
  }

  /** Where calls of a tool go now. */
  targetOf(toolName: string): WebhookTarget | undefined {
    return this.#targets.get(toolName)
  }

  /**
   * What is told of a deferred execution, kept by the write that tells of that in its session. Never throws: whatever becomes of it, the
   * execution waits for its result or its deadline.
   */
  plan(sessionId: string, { executionId, toolName, input, expiresAt }: DeferredExecution): PlannedOnce {
    const { basePath, deliverer } = this.#options
    const told: ExecutionDispatch = {
      ...{ executionId, sessionId, toolName, input },
      ...(expiresAt !== undefined && { expiresAt }),
      resultPath: `${basePath}/executions/${encodeURIComponent(executionId)}/result`,
    }
    const target = this.targetOf(toolName)
    const delivery =
      target &&
      deliverer.plan(laneOf(sessionId, toolName), {
        ...{ id: executionId, type: 'execution_dispatched', payload: told, target },
        origin: { kind: 'dispatch', tool: toolName },
        importance: 'last',
      })
    return new PlannedOnce(delivery ? [delivery] : [], () => this.#tellHost(told))
  }

  /** No result of such an execution finds its session any more. @param executionId default: all of a session that was removed */
  withdraw(sessionId: string, executionId?: string): void {
    for (const toolName of this.#targets.keys())
      this.#options.deliverer.withdraw(laneOf(sessionId, toolName), executionId)
  }

  #tellHost(told: ExecutionDispatch): void {
    const { onDispatch, logger } = this.#options
    const { executionId } = told
    caught(
      async () => onDispatch?.(copyOf(told)),
      (err) => logger.error({ err, executionId }, 'executions.onDispatch failed'),
    )
  }
}
