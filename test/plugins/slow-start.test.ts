import fastify from 'fastify'
import t, { type Test } from 'tap'
import { gatewayPlugin } from '../../plugins/gateway.js'
import { createWorkerServer } from '../../src/server.js'
import { until } from '../fixtures/build.js'
import { testStorage } from '../fixtures/journaled.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

/** A gateway whose disk does not answer before it is told to. */
function slowWorld() {
  let answer = () => {}
  let asked = false
  const opened = new Promise<void>((resolve) => {
    answer = resolve
  })
  const open = () => {
    asked = true
    return opened
  }
  const options = {
    allowUnauthenticated: true,
    profiles: [{ name: 'scripted', engine: 'provider' as const, provider: { id: 'scripted' } }],
    createEngineRunner: new ScriptedEngine().create,
    storage: { ...testStorage(), open },
  }
  return { options, answer: () => answer(), asked: () => asked }
}

/** Real timers, each with the delay that `delayOf` makes of the one that was asked for; which those were. */
function shiftTimers(t: Test, delayOf: (ms: number) => number): { asked: number[]; sleep(ms: number): Promise<void> } {
  const { setTimeout: real } = globalThis
  const asked: number[] = []
  const shifted = (run: () => void, ms = 0, ...args: []) => {
    asked.push(ms)
    return real(run, delayOf(ms), ...args)
  }
  t.intercept(globalThis, 'setTimeout', { value: Object.assign(shifted, real) })
  return { asked, sleep: (ms) => new Promise((resolve) => real(resolve, ms)) }
}

t.test('a server of its own waits for its stores as long as they take, and says that it does', async (t) => {
  const { options, answer, asked } = slowWorld()
  const clock = new VirtualClock()
  const told: unknown[] = []
  const silent = () => {}
  const logger = { error: silent, info: silent, debug: silent, warn: (...args: unknown[]) => told.push(args.at(-1)) }
  // Fastify's limit for plugins, which is ten seconds unless it is told otherwise
  const timers = shiftTimers(t, (ms) => (ms === 10_000 ? 20 : ms))
  const worker = createWorkerServer({ ...options, logger }, { clock })
  t.teardown(() => worker.close())
  const listening = worker.listen(0)
  listening.catch(() => {})
  await until(asked)
  await timers.sleep(100)
  await clock.advance(10_000)
  t.match(told, [/still being read/])
  answer()
  const { url } = await listening
  t.equal((await fetch(`${url}/v1/sessions`)).status, 200)
  t.notOk(timers.asked.includes(10_000))
})

t.test('a host that gives its plugins less time is told what to change', async (t) => {
  const { options, answer } = slowWorld()
  shiftTimers(t, (ms) => (ms === 59_750 ? 0 : ms))
  const host = fastify({ pluginTimeout: 60_000 })
  t.teardown(() => host.close())
  host.register(gatewayPlugin, options)
  await t.rejects(async () => host.ready(), { message: /pluginTimeout of this Fastify \(60000 ms\).*0 for no limit/ })
  answer()
  await until(() => host.gateway.draining)
  t.notOk(host.gateway.ready, 'nothing begins in a service that does not listen')
})

t.test('a host with little patience keeps nearly all of it', async (t) => {
  const { options, answer } = slowWorld()
  const { asked } = shiftTimers(t, (ms) => (ms <= 200 ? 60_000 : ms))
  const host = fastify({ pluginTimeout: 200 })
  t.teardown(() => host.close())
  host.register(gatewayPlugin, options)
  answer()
  await host.ready()
  t.ok(host.gateway.ready)
  t.ok(asked.includes(180))
})

t.test('a shutdown does not wait for a start that hangs, and the start takes nothing up afterwards', async (t) => {
  const { options, answer, asked } = slowWorld()
  let read = false
  const profiles = {
    ...options.storage.profiles,
    list: async () => {
      read = true
      return []
    },
  }
  const worker = createWorkerServer({ ...options, storage: { ...options.storage, profiles } })
  const listening = worker.listen(0)
  listening.catch(() => {})
  await until(asked)
  await Promise.all([t.rejects(listening, { code: 'SG_ERR_SHUTTING_DOWN' }), worker.close()])
  answer()
  await turns()
  t.notOk(read)
})

t.test('a host without a limit waits', async (t) => {
  const { options, answer } = slowWorld()
  const host = fastify({ pluginTimeout: 0 })
  t.teardown(() => host.close())
  host.register(gatewayPlugin, options)
  const ready = host.ready()
  answer()
  await ready
  t.ok(host.gateway.ready)
})
