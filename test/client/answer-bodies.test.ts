import { Readable } from 'node:stream'
import t from 'tap'
import { run, type World, world } from '../fixtures/client-requests.js'

t.test(
  'an answer is read also from a fetch that has streams of another kind, and texts that come from no Blob',
  async (t) => {
    const w = world()
    const own = (text: string, body: unknown) =>
      Object.defineProperties(new Response(text, { headers: { 'content-type': 'application/json' } }), {
        body: { value: body },
        blob: { value: async () => ({ size: text.length }) },
      })
    // a polyfilled stream is not taken by the platform's own, and that may have none to pipe through
    const polyfilled = (text: string) =>
      Object.assign(new Blob([text]).stream(), { pipeThrough: () => t.fail('it is piped') })
    for (const bodyOf of [() => null, () => Readable.from(['{}']), polyfilled]) {
      w.answer = () => own('{"id":"s1"}', bodyOf('{"id":"s1"}'))
      t.match(await run(w, w.client.sessions.get('s1')), { id: 's1' })
      w.answer = () => own('[{"id":"s1"}]', bodyOf('[{"id":"s1"}]'))
      t.match(await run(w, w.client.sessions.list().toArray()), [{ id: 's1' }])
    }
  },
)

t.test('a file is read whole also from a fetch that has no streams', async (t) => {
  const w = world()
  w.answer = () => Object.defineProperty(new Response('# Tides'), 'body', { value: undefined })
  t.equal(await (await w.client.sessions.file('s1', 'report.md')).text(), '# Tides')
})

t.test('a file has its type also where one that was piped has none, as in Bun', async (t) => {
  const w = world()
  const whole = Response.prototype.blob
  t.intercept(Response.prototype, 'blob', {
    value: async function (this: Response) {
      return new Blob([await whole.call(this)])
    },
  })
  w.answer = () => new Response('# Tides', { headers: { 'content-type': 'text/markdown' } })
  const file = await w.client.sessions.file('s1', 'report.md')
  t.strictSame([await file.text(), file.type], ['# Tides', 'text/markdown'])
})

/** Answers in parts, as the test gives them. */
function inParts(w: World, type: string) {
  const parts = { say: (_text: string) => {}, end: () => {} }
  w.answer = ({ signal }) => {
    const start = (body: ReadableStreamDefaultController<Uint8Array>) => {
      signal?.addEventListener('abort', () => body.error(signal.reason))
      parts.say = (text) => body.enqueue(Buffer.from(text))
      parts.end = () => body.close()
    }
    return new Response(new ReadableStream({ start }), { headers: { 'content-type': type } })
  }
  return parts
}

t.test('a file may take as long as it takes, while some of it comes', async (t) => {
  const w = world()
  const parts = inParts(w, 'text/markdown')
  const fetched = w.client.sessions.file('s1', 'report.md')
  for (const text of ['slow', 'ly', ' but', ' surely']) {
    await w.settle()
    parts.say(text)
    await w.clock.advance(45_000)
  }
  parts.end()
  const file = await fetched
  t.strictSame([await file.text(), file.type, w.requests.length], ['slowly but surely', 'text/markdown', 1])
  t.equal(w.clock.pendingTimers, 0)
  const silent = run(w, w.client.sessions.file('s1', 'report.md'))
  await t.rejects(silent, { code: 'SG_CLIENT_UNREACHABLE' })
})

t.test('so may every other answer, as over a slow line, and the first part of it', async (t) => {
  const w = world()
  const parts = inParts(w, 'application/json')
  for (const [ask, texts] of [
    [() => w.client.sessions.get('s1'), ['{"id":', '"s1', '"}']],
    [() => w.client.sessions.list().toArray(), ['[{', '"id":"s1"', '}]']],
  ] as const) {
    const asked = w.requests.length
    const { answer } = w
    w.answer = async (request) => {
      await new Promise<void>((resolve) => w.platform.after(45_000, resolve))
      return answer(request)
    }
    const fetched: Promise<unknown> = ask()
    await w.clock.advance(45_000)
    for (const text of texts) {
      await w.clock.advance(45_000)
      parts.say(text)
      await w.settle()
    }
    parts.end()
    t.match(JSON.stringify(await fetched), /"id":"s1"/)
    t.equal(w.requests.length, asked + 1)
    w.answer = answer
  }
  t.equal(w.clock.pendingTimers, 0)
})
