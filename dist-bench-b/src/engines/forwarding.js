/** Another runner as it is, for whoever changes a part of it. */
export class ForwardingRunner {
    inner;
    capabilities;
    files;
    setPermissionMode;
    setModel;
    constructor(inner) {
        this.inner = inner;
        this.capabilities = inner.capabilities;
        if (inner.files)
            this.files = inner.files;
        if (inner.setPermissionMode)
            this.setPermissionMode = (mode) => inner.setPermissionMode(mode);
        if (inner.setModel)
            this.setModel = (model) => inner.setModel(model);
    }
    get canPark() {
        return this.inner.canPark !== false;
    }
    get isSpent() {
        return this.inner.isSpent === true;
    }
    /** A runner may learn only while it starts whether a successor could go on. */
    get snapshot() {
        const { inner } = this;
        return inner.snapshot && (() => inner.snapshot());
    }
    start(host) {
        return this.inner.start(host);
    }
    send(text, options) {
        this.inner.send(text, options);
    }
    interrupt() {
        return this.inner.interrupt();
    }
    settleExecution(executionId, result) {
        this.inner.settleExecution?.(executionId, result);
    }
    pause() {
        this.inner.pause?.();
    }
    resume() {
        this.inner.resume?.();
    }
    close() {
        return this.inner.close();
    }
}
/** The same of what a runner talks to. */
export class ForwardingHost {
    host;
    constructor(host) {
        this.host = host;
    }
    get drained() {
        return this.host.drained;
    }
    get signal() {
        return this.host.signal;
    }
    emit(event) {
        this.host.emit(event);
    }
    requestPermission(ask) {
        return this.host.requestPermission(ask);
    }
    deferExecution(execution) {
        return this.host.deferExecution(execution);
    }
    waitForExecutions() {
        this.host.waitForExecutions();
    }
}
//# sourceMappingURL=forwarding.js.map