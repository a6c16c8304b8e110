import { executionAsyncResource } from 'node:async_hooks'

let held: object | undefined

/**
 * Keeps `process.nextTick` fast, for a process of our own. V8 11, which is Node 20's, forgets the shape of the objects behind it in a full
 * collection that meets none of them, and makes each of them by a slow path ever after: up to 8 of 60 us that two requests cost. One that
 * is held keeps the shape. Later versions do without.
 */
export function keepTickShape(): void {
  if (held || !process.versions.v8.startsWith('11.')) return
  process.nextTick(() => {
    held = executionAsyncResource()
  })
}
