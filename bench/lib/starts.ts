import type { Paired } from './figures.js'
import { ServerProcess } from './server-process.js'

const ROUNDS = 3

export interface Starts {
  /** Milliseconds of CPU of a start, and of the opening of its database alone. */
  cpu: Paired
  /** Milliseconds, of both. */
  took: Paired
  /** MB that a start adds. */
  heap: number[]
}

/** Starts a gateway, and opens its database alone, by turns. @param argv of `servers/started.js` */
export async function measureStarts(argv: string[]): Promise<Starts> {
  const cpu: Paired = { ours: [], baseline: [] }
  const took: Paired = { ours: [], baseline: [] }
  const heap: number[] = []
  for (let round = 0; round < ROUNDS; round++)
    for (const call of ['open', 'start'] as const) {
      const server = await ServerProcess.start('servers/started.js', { argv, exposeGc: true })
      const before = await server.memoryInUse()
      const into = call === 'start' ? 'ours' : 'baseline'
      cpu[into].push((await server.cpuOf(async () => took[into].push(await server.call(call)))) / 1_000)
      if (call === 'start') {
        heap.push(((await server.memoryInUse()).heapUsed - before.heapUsed) / 1024 / 1024)
        await server.call('stop')
      }
      await server.stop()
    }
  return { cpu, took, heap }
}

/** Has a gateway make one of each thing, whose rows are multiplied then. @param argv of `servers/started.js` */
export async function seedStart(argv: string[]): Promise<void> {
  const server = await ServerProcess.start('servers/started.js', { argv })
  await server.call('start')
  await server.call('seed')
  await server.call('stop')
  await server.stop()
}
