import { get } from 'node:http'
import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'

t.test('who has gone before an event stream is opened for them is nobody who looks at the session', async (t) => {
  const held: { letIn(): void; gone: Promise<void> }[] = []
  const { call, port, registry } = await buildServer(t, {
    allowUnauthenticated: false,
    async authenticate({ headers, raw }) {
      if (headers.accept !== 'text/event-stream') return { name: 'ann' }
      const gone = new Promise<void>((resolve) => raw.socket.once('close', () => resolve()))
      await new Promise<void>((letIn) => held.push({ letIn, gone }))
      return { name: 'ann' }
    },
  })
  const { json: session } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const opened = new Promise<void>((resolve) => {
    const { open } = registry
    registry.open = async (...given) => {
      resolve()
      return open.apply(registry, given)
    }
  })
  const headers = { accept: 'text/event-stream' }
  const request = get({ port, path: `/v1/sessions/${session.id}/events`, headers }).on('error', () => {})
  await until(() => held.length === 1, 'somebody who waits to be let in')
  request.destroy()
  await held[0]!.gone
  held[0]!.letIn()
  await opened
  // the stream is opened in the turn after it, and over in the next
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
  t.equal((await registry.get(session.id))?.attachedClients, 0)
})
