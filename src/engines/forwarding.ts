import type { DeferredExecution, ExecutionResult, PermissionAsk, Runner, RunnerEvent, RunnerHost } from './runner.js'

/** Another runner as it is, for whoever changes a part of it. */
export class ForwardingRunner implements Runner {
  protected readonly inner: Runner
  readonly capabilities: Runner['capabilities']
  readonly files?: NonNullable<Runner['files']>
  readonly setPermissionMode?: NonNullable<Runner['setPermissionMode']>
  readonly setModel?: NonNullable<Runner['setModel']>

  constructor(inner: Runner) {
    this.inner = inner
    this.capabilities = inner.capabilities
    if (inner.files) this.files = inner.files
    if (inner.setPermissionMode) this.setPermissionMode = (mode) => inner.setPermissionMode!(mode)
    if (inner.setModel) this.setModel = (model) => inner.setModel!(model)
  }

  get canPark(): boolean {
    return this.inner.canPark !== false
  }

  get canRelease(): boolean {
    return this.inner.canRelease !== false
  }

  get isSpent(): boolean {
    return this.inner.isSpent === true
  }

  /** A runner may learn only while it starts whether a successor could go on. */
  get snapshot(): Runner['snapshot'] {
    const { inner } = this
    return inner.snapshot && (() => inner.snapshot!())
  }

  start(host: RunnerHost): Promise<void> {
    return this.inner.start(host)
  }

  send(text: string, options?: { commandId?: string }): void {
    this.inner.send(text, options)
  }

  interrupt(): Promise<void> {
    return this.inner.interrupt()
  }

  settleExecution(executionId: string, result: ExecutionResult): void {
    this.inner.settleExecution?.(executionId, result)
  }

  pause(): void {
    this.inner.pause?.()
  }

  resume(): void {
    this.inner.resume?.()
  }

  tellRest(): void {
    this.inner.tellRest?.()
  }

  close(): Promise<void> {
    return this.inner.close()
  }
}

/** Hands on all that a runner tells its host; a subclass changes what it has to. */
export class ForwardingHost implements RunnerHost {
  protected readonly host: RunnerHost

  constructor(host: RunnerHost) {
    this.host = host
  }

  get drained(): Promise<void> | undefined {
    return this.host.drained
  }

  get signal(): AbortSignal {
    return this.host.signal
  }

  emit(event: RunnerEvent): void {
    this.host.emit(event)
  }

  requestPermission(ask: PermissionAsk, takenBack?: AbortSignal): ReturnType<RunnerHost['requestPermission']> {
    return this.host.requestPermission(ask, takenBack)
  }

  deferExecution(execution: DeferredExecution, takenBack?: AbortSignal): Promise<void> {
    return this.host.deferExecution(execution, takenBack)
  }

  waitForExecutions(): void {
    this.host.waitForExecutions()
  }
}
