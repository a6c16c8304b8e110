import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import t from 'tap'
import { StreamClient, type StreamParts, Streams } from '../../plugins/streams.js'
import { eventStreamWire, type Wire } from '../../plugins/wires.js'
import { CLOSE, type Close } from '../../schemas/close-codes.js'
import type { Gateway } from '../../src/gateway.js'
import gatewayPlugin from '../../src/index.js'
import { until } from '../fixtures/build.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

/** A connection that is left to itself outlasts the test. */
const NEVER_MS = 3_600_000
const IN_TIME = { timeout: 10_000 }

for (const path of ['/notifications/events', '/queue/events'])
  t.test(
    `a stream that is opened for somebody while the host closes does not hold it up: ${path}`,
    IN_TIME,
    async (t) => {
      const waiting: (() => void)[] = []
      const host = fastify({ keepAliveTimeout: NEVER_MS })
      await host.register(gatewayPlugin, {
        ...hostWorld().options,
        allowUnauthenticated: false,
        queue: {},
        authenticate: async () => {
          await new Promise<void>((resolve) => waiting.push(resolve))
          return true
        },
      })
      const url = `${await host.listen({ port: 0, host: '127.0.0.1' })}/v1${path}`
      const agent = new Agent({ keepAlive: true })
      t.teardown(() => agent.destroy())
      const answered = new Promise<IncomingMessage>((resolve, reject) =>
        get(url, { agent, headers: { accept: 'text/event-stream' } }, resolve).on('error', reject),
      )
      await until(() => waiting.length === 1, 'somebody who waits to be let in')
      const closed = host.close()
      await until(() => !host.server.listening, 'a server that closes')
      waiting[0]!()
      const answer = await answered
      answer.resume()
      await closed
      t.equal(answer.statusCode, 200)
    },
  )

t.test('a stream that ends while the host closes does not hold it up, whatever it ends for', IN_TIME, async (t) => {
  const host = fastify({ keepAliveTimeout: NEVER_MS })
  let wire: Wire | undefined
  host.get('/', (request, reply) => {
    wire = eventStreamWire(request, reply, new VirtualClock())({ onGone() {} })
  })
  const url = await host.listen({ port: 0, host: '127.0.0.1' })
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    get(url, { agent }, resolve).on('error', reject),
  )
  answer.resume()
  const closed = host.close()
  await until(() => !host.server.listening, 'a server that closes')
  wire!.close(CLOSE.sessionMoved)
  await closed
  t.equal(answer.statusCode, 200)
})

t.test('a stream that a host has injected ends with it', async (t) => {
  const host = fastify()
  await host.register(gatewayPlugin, { ...hostWorld().options, queue: {} })
  const headers = { accept: 'text/event-stream' }
  const answer = await host.inject({ url: '/v1/queue/events', headers, payloadAsStream: true })
  t.equal(answer.statusCode, 200)
  const ended = once(answer.stream().resume(), 'end')
  await host.close()
  await ended
})

t.test('a stream that is opened at a node that was lost meanwhile ends what follows for it', async (t) => {
  const standing = { isLost: true, stands: true, listeners: { on() {} } }
  const streams = new Streams({ clock: new VirtualClock(), standing } as unknown as Gateway)
  class Client extends StreamClient {
    readonly #ends: Close[] = []

    override cutOff(close: Close): void {
      this.#ends.push(close)
    }

    get ends(): readonly Close[] {
      return this.#ends
    }

    protected admits(): boolean {
      return true
    }

    protected onGone(): void {}
  }
  const client = new Client(() => ({}) as never, {} as never, { streams } as unknown as StreamParts)
  await new Promise(setImmediate)
  t.same(client.ends, [CLOSE.sessionMoved])
})
