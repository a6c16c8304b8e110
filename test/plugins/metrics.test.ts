import perfHooks from 'node:perf_hooks'
import t from 'tap'
import gatewayPlugin from '../../src/index.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'

t.test('what watches the process for its metrics is there once, however many gateways come and go', async (t) => {
  const { monitorEventLoopDelay } = perfHooks
  let watches = 0
  perfHooks.monitorEventLoopDelay = (options) => {
    watches++
    return monitorEventLoopDelay(options)
  }
  t.teardown(() => {
    perfHooks.monitorEventLoopDelay = monitorEventLoopDelay
  })
  for (let gateway = 0; gateway < 3; gateway++) {
    const host = fastify()
    await host.register(gatewayPlugin, { ...hostWorld().options, metrics: true })
    const { statusCode, body } = await host.inject('/metrics')
    t.equal(statusCode, 200)
    t.match(body, /^process_cpu_user_seconds_total /m)
    t.match(body, /^session_gateway_sessions\{state="live"\} 0$/m)
    await host.close()
  }
  t.ok(watches <= 1, `${watches} times`)
})
