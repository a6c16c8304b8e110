import { keepObjectsYoung } from '../../src/lib/young-objects.js'

type Handlers = Record<string, (argument: never) => unknown>

interface Request {
  id: number
  call: string
  argument: unknown
}

/** The side of a process under measurement: answers calls from the load process, one of them what CPU and memory it has used. */
export function answer(handlers: Handlers): void {
  // as the daemon does, and what is measured beside it
  keepObjectsYoung()
  const all: Handlers = { cpu, memory, collect, ...handlers }
  process.on('message', async ({ id, call, argument }: Request) => {
    try {
      process.send?.({ id, value: (await all[call]?.(argument as never)) ?? null })
    } catch (error) {
      process.send?.({ id, error: String((error as Error).stack ?? error) })
    }
  })
  // A load process that was killed leaves nothing behind.
  process.on('disconnect', () => process.exit())
  process.send?.({ ready: true })
}

/** Microseconds of this process, all its threads included. */
function cpu(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

export interface Memory {
  rss: number
  heapUsed: number
  external: number
  arrayBuffers: number
}

function memory(): Memory {
  const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage()
  return { rss, heapUsed, external, arrayBuffers }
}

/** Needs --expose-gc; several times, because what a finalizer lets go of is only free the next time. */
async function collect(): Promise<Memory> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return memory()
}
