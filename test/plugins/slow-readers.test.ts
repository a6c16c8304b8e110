import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach, type TestClient } from '../fixtures/client.js'

/** More than the buffers of two sockets and the memory of the log together. */
const MESSAGES = 4_000
const textOf = (n: number) => `${n} `.repeat(2_000)
const toldTo = ({ events }: TestClient): unknown[] =>
  events.flatMap((event) => (event.type === 'engine_event' ? [event.payload] : []))

t.test('over a socket a slow reader is told all of a burst, and only one that does not read is cut', async (t) => {
  const eventLog = { maxEvents: 100_000, maxBytes: 256 * 1024 }
  const { call, engine, api } = await buildServer(t, { eventLog })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const [slow, dead] = [await attach(t, api, json.id), await attach(t, api, json.id)]
  await Promise.all([slow.untilFrame('synced'), dead.untilFrame('synced')])
  dead.socket.pause()
  const { host } = engine.last
  let timesSlowed = 0
  let isDone = false
  const burst = async () => {
    for (let n = 1; n <= MESSAGES; n++) {
      host.emit({ type: 'engine_event', payload: textOf(n) })
      if (host.drained) timesSlowed++
      await host.drained
      if (n % 10 === 0) await new Promise(setImmediate)
    }
    isDone = true
  }
  const done = burst()
  for (let stops = 0; stops < 5; stops++) {
    slow.socket.pause()
    await until(() => isDone || host.drained !== undefined, 'an engine that is asked to wait')
    slow.socket.resume()
    await until(() => isDone || !host.drained, 'an engine that goes on')
  }
  await done
  await slow.until(() => toldTo(slow).length === MESSAGES, 'all of it')
  t.ok(timesSlowed > 0)
  t.ok(toldTo(slow).every((text, index) => text === textOf(index + 1)))
  t.equal(slow.closed, undefined)
  dead.socket.resume()
  t.same(await dead.untilClosed(), { code: 1013, reason: 'too_slow' })
})

t.test('who takes nothing of an event stream for long is not there any more', async (t) => {
  const { call, worker, registry, port } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const accepted = once(worker.server, 'connection')
  const reader = connect(port, '127.0.0.1')
  t.teardown(() => reader.destroy())
  reader.write(`GET /v1/sessions/${json.id}/events HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n`)
  await once(reader, 'data')
  reader.pause()
  const attached = async () => (await registry.get(json.id))?.attachedClients
  t.equal(await attached(), 1)
  const [connection] = (await accepted) as [Socket]
  t.equal(connection.timeout, 75_000)
  // Node's own, when nothing was written to it for so long
  connection.emit('timeout')
  await until(async () => (await attached()) === 0, 'nobody who counts as attached')
})
