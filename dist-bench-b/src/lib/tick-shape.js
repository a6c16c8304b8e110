import { executionAsyncResource } from 'node:async_hooks';
let held;
/**
 * Keeps `process.nextTick` fast, for a process of our own. V8 forgets the shape of the objects behind it in a full collection that meets
 * none of them, and makes each of them by a slow path ever after: up to a fifth of what two requests cost. One that is held keeps the
 * shape.
 */
export function keepTickShape() {
    if (held)
        return;
    process.nextTick(() => {
        held = executionAsyncResource();
    });
}
//# sourceMappingURL=tick-shape.js.map