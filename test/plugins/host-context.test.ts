import { AsyncLocalStorage } from 'node:async_hooks'
import t, { type Test } from 'tap'
import { createGateway } from '../../src/gateway.js'
import gatewayPlugin, { type WorkerServerOptions } from '../../src/index.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { TestClient } from '../fixtures/client.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

/** A host that keeps who asks beside the request, as `@fastify/request-context`, nestjs-cls and tracers do. */
async function build(t: Test, options: Partial<WorkerServerOptions>) {
  const kept = new AsyncLocalStorage<string>()
  /** Whom it had each time that it was asked who somebody is. */
  const asked: { kept: string | undefined; who: unknown }[] = []
  const clock = new VirtualClock()
  const { options: given } = hostWorld()
  const authenticate: WorkerServerOptions['authenticate'] = ({ headers }) => {
    asked.push({ kept: kept.getStore(), who: headers['x-caller'] })
    return { id: kept.getStore() }
  }
  const gateway = createGateway(
    { ...given, allowUnauthenticated: false, authenticate, queue: { maxConcurrency: 1 }, ...options },
    { clock },
  )
  const host = fastify({ forceCloseConnections: true })
  t.teardown(() => host.close())
  host.addHook('onRequest', (request, _reply, done) => kept.run(String(request.headers['x-caller']), done))
  await host.register(gatewayPlugin, { ...given, gateway })
  const api = `${await host.listen({ port: 0, host: '127.0.0.1' })}/v1`
  const post = async (who: string, path: string, body: object): Promise<{ id: string }> => {
    const headers = { 'x-caller': who, 'content-type': 'application/json' }
    return (await fetch(api + path, { method: 'POST', headers, body: JSON.stringify(body) })).json() as never
  }
  return { api, asked, clock, kept, post }
}

t.test('who is at a stream is asked for with what the host keeps beside its own request', async (t) => {
  const { api, asked, clock, post } = await build(t, {})
  const { id } = await post('alice', '/sessions', { cwd: SOME_CWD })
  const paths = [`/sessions/${id}/ws`, '/notifications/ws', '/queue/ws']
  const clients = ['alice', 'bob'].flatMap((who) =>
    paths.map((path) => new TestClient(api.replace('http', 'ws') + path, { headers: { 'x-caller': who } })),
  )
  t.teardown(() => {
    for (const { socket } of clients) socket.terminate()
  })
  const events = await fetch(`${api}/sessions/${id}/events`, {
    headers: { accept: 'text/event-stream', 'x-caller': 'carol' },
  })
  t.teardown(() => events.body?.cancel())
  for (const client of clients) await client.until(({ frames }) => frames.length > 0)
  const before = asked.length
  await clock.advance(25_000)
  await until(() => asked.length === before + clients.length + 1, 'the beats')
  const speaker = clients[3]!
  speaker.send({ type: 'ping', id: 'said' })
  await speaker.untilFrame('ack')
  t.same(
    asked.filter(({ kept, who }) => kept !== who),
    [],
  )
  t.same([...new Set(asked.map(({ who }) => who))], ['alice', 'bob', 'carol'])
})

t.test('a job begins with nothing of what the host keeps beside the requests of others', async (t) => {
  const begun: [who: unknown, kept: string | undefined][] = []
  let goOn = () => {}
  const allAreThere = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const engine = new ScriptedEngine({
    async send(runner) {
      await allAreThere
      runner.complete({ result: 'done' })
    },
  })
  const { kept, post } = await build(t, {
    createEngineRunner: engine.create,
    buildRunnerConfig: (request) => {
      begun.push([request.meta?.of, kept.getStore()])
      return request
    },
  })
  const callers = ['alice', 'bob', 'carol']
  for (const who of callers) await post(who, '/jobs', { session: { cwd: SOME_CWD, prompt: 'go', meta: { of: who } } })
  goOn()
  await until(() => begun.length === callers.length, 'all jobs')
  t.same(
    begun,
    callers.map((who) => [who, undefined]),
  )
})
