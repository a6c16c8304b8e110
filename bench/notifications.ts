import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { format, interleave, percentile, verdict } from './lib/figures.js'
import { ServerProcess } from './lib/server-process.js'

const SESSIONS = 1_000
const ASKS = 400
const PER_SECOND = 200
const ROUNDS = 5
const TARGETS_MS = { memory: 50, sqlite: 100 }

/** From a permission request to the first byte of what a channel is told of it, with 1,000 sessions live; the baseline is a bare POST. */
export async function notifications(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-notifications-'))
  try {
    for (const kind of ['memory', 'sqlite'] as const) await measure(kind, folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function measure(kind: 'memory' | 'sqlite', folder: string): Promise<void> {
  const receiver = await Receiver.start()
  const server = await ServerProcess.start('servers/notifying.js', { argv: [kind, folder, receiver.url] })
  await server.call('start', SESSIONS)
  const all = { asks: [] as number[], bare: [] as number[] }
  const p95Of = async (call: 'asks' | 'bare') => {
    const latencies = receiver.expect(ASKS)
    await server.call(call, { count: ASKS, perSecond: PER_SECOND })
    all[call].push(...(await latencies))
    return percentile(await latencies, 0.95)
  }
  await interleave(
    ROUNDS,
    () => p95Of('asks'),
    () => p95Of('bare'),
  )
  const [ours, bare] = [percentile(all.asks, 0.95), percentile(all.bare, 0.95)]
  console.log(
    `event to a channel's first byte, ${kind}, ${SESSIONS} sessions, ${PER_SECOND} a second: p95 ${format(ours)} ms, ` +
      `a bare POST ${format(bare)} ms${verdict(ours, TARGETS_MS[kind], 'ms')}`,
  )
  await server.stop()
  receiver.stop()
}

/** Takes what is sent and reads from it when that began. */
class Receiver {
  url = ''
  #latencies: number[] = []
  #expected = 0
  #done: (latencies: number[]) => void = () => {}
  readonly #server = createServer((incoming, response) => {
    const arrivedAt = performance.timeOrigin + performance.now()
    let text = ''
    incoming.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    incoming.on('end', () => {
      response.writeHead(204).end()
      const [, sentAt] = /"title":"at ([\d.]+)"/.exec(text) ?? []
      this.#latencies.push(arrivedAt - Number(sentAt))
      if (this.#latencies.length === this.#expected) this.#done(this.#latencies)
    })
  })

  static async start(): Promise<Receiver> {
    const receiver = new Receiver()
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve))
    receiver.url = `http://127.0.0.1:${(receiver.#server.address() as AddressInfo).port}`
    return receiver
  }

  expect(count: number): Promise<number[]> {
    this.#latencies = []
    this.#expected = count
    return new Promise((resolve) => {
      this.#done = resolve
    })
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
