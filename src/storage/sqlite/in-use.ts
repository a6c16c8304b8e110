/** How long a process that exits waits at most. */
const EXIT_WAIT_MS = 2_000

/**
 * Whether a thread works with its database, as it and the main thread count it together. A process that exits waits until it does not: the
 * package that brings SQLite to Node 20 aborts a process whose thread is ended in the middle of a call.
 */
export class InUse {
  readonly memory: SharedArrayBuffer
  readonly #count: Int32Array

  /** @param memory the other thread's `memory` */
  constructor(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.#count = new Int32Array(memory)
  }

  begin(): void {
    Atomics.add(this.#count, 0, 1)
  }

  end(): void {
    Atomics.sub(this.#count, 0, 1)
    Atomics.notify(this.#count, 0)
  }

  /** Blocks until it is not in use. */
  wait(): void {
    const until = performance.now() + EXIT_WAIT_MS
    for (let left = EXIT_WAIT_MS; left > 0; left = until - performance.now()) {
      const count = Atomics.load(this.#count, 0)
      if (count === 0) return
      Atomics.wait(this.#count, 0, count, left)
    }
  }
}

const awaited = new Set<InUse>()
const onExit = () => {
  for (const one of awaited) one.wait()
}

/** Has an exit of the process wait for it. @returns what calls that off */
export function holdExit(inUse: InUse): () => void {
  if (awaited.size === 0) process.on('exit', onExit)
  awaited.add(inUse)
  return () => {
    awaited.delete(inUse)
    if (awaited.size === 0) process.off('exit', onExit)
  }
}
