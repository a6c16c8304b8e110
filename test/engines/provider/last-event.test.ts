import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import t from 'tap'
import { openAt, vendorThatSays } from './some-vendor.js'

const text = { type: 'output_text', text: 'all of it', annotations: [] }
const item = { type: 'message', id: 'i', status: 'completed', role: 'assistant', content: [text] }
const usage = { input_tokens: 10, output_tokens: 5 }
const response = { id: 'r', created_at: 1, model: 'fake', output: [item], usage }

/** The answer of a vendor, as its protocol writes it. */
const WHOLE: Readonly<Record<string, object[]>> = {
  'openai-compatible': [{ choices: [{ index: 0, delta: { content: 'all of it' }, finish_reason: 'stop' }] }],
  anthropic: [
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'f', content: [], usage } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'all of it' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
    { type: 'message_stop' },
  ],
  openai: [
    { type: 'response.created', response: { ...response, output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
    { type: 'response.output_text.delta', item_id: 'i', output_index: 0, content_index: 0, delta: 'all of it' },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response },
  ],
}

for (const [vendor, events] of Object.entries(WHOLE))
  for (const [becomes, connections, leave] of [
    ['stays open', 2, () => {}],
    ['is reset', 2, (socket: Socket) => socket.resetAndDestroy()],
    ['is there for the next', 1, (_: Socket, end: () => void) => setImmediate(end)],
  ] as const)
    t.test(`an answer of ${vendor} is over with its last event, and its connection ${becomes}`, async (t) => {
      const server = createServer(async (request, response) => {
        for await (const _ of request);
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const said = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
        const done = vendor === 'openai-compatible' ? 'data: [DONE]\n\n' : ''
        response.write(said + done, () => leave(request.socket, () => response.end()))
      })
      const sockets = new Set<Socket>()
      server.on('connection', (socket) => sockets.add(socket))
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
      t.teardown(() => {
        server.closeAllConnections()
        server.close()
      })
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
      const { runner, host } = await openAt(t, url, vendor)
      for (const turn of [1, 2]) {
        runner.send('hi')
        const { subtype, result } = await host.turn(turn)
        t.strictSame({ subtype, result }, { subtype: 'success', result: 'all of it' })
      }
      t.equal(sockets.size, connections)
    })

t.test('an event of a type that Anthropic has added since is passed over', async (t) => {
  const events = WHOLE.anthropic!.flatMap((event) => [event, { type: 'content_hint', hint: 'new' }])
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  const url = await vendorThatSays(t, [{ headers: { 'content-type': 'text/event-stream' }, body }])
  const { runner, host } = await openAt(t, url, 'anthropic')
  runner.send('hi')
  t.match(await host.turn(1), { subtype: 'success', result: 'all of it' })
})
