import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { attach, refusedUpgrade, type TestClient } from '../fixtures/client.js'

/** What an agent said, as a client was sent it. */
const said = ({ events }: TestClient): unknown[] =>
  events.flatMap((event) => (event.type === 'assistant_message' ? [textIn(event.message.content)] : []))
const textIn = (content: unknown): unknown => (content as { text: string }[])[0]?.text

t.test('a client sees the snapshot, the replay, synced, then what happens', async (t) => {
  const { call, engine, api } = await buildServer(t)
  const created = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'hello' })
  t.equal(created.status, 201)
  t.match(created.headers.get('location'), `/v1/sessions/${created.json.id}`)
  const client = await attach(t, api, created.json.id)
  await client.untilFrame('synced')
  t.match(client.attached, { protocolVersion: 1, replayingFrom: 0, truncated: false, session: { id: created.json.id } })
  t.same(
    client.events.map((event) => event.type),
    ['user_message', 'system_init', 'status_changed'],
  )
  engine.last.say('hi')
  engine.last.complete()
  await client.until(() => client.events.some((event) => event.type === 'status_changed' && event.status === 'idle'))
  client.send({ type: 'user_message', text: 'again', id: 'c1' })
  await client.untilFrame('ack')
  t.same(
    engine.last.sent.map(({ text }) => text),
    ['hello', 'again'],
  )
  client.send({ type: 'close', id: 'c2' })
  t.same(await client.untilClosed(), { code: 1000, reason: 'session_ended' })
  t.equal(client.events.at(-1)?.type, 'session_closed')
  const seqs = client.events.map((event) => event.seq)
  t.same(
    seqs,
    [...seqs].sort((a, b) => a - b),
  )
})

t.test('what a client has not taken yet is not written over, however far the log goes on', async (t) => {
  const eventLog = { maxEvents: 100_000, maxBytes: 256 * 1024 }
  const { call, engine, api } = await buildServer(t, { eventLog })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const [quick, slow] = [await attach(t, api, json.id), await attach(t, api, json.id)]
  await Promise.all([quick.untilFrame('synced'), slow.untilFrame('synced')])
  slow.socket.pause()
  const textOf = (n: number) => `${n} `.repeat(2_000)
  for (let n = 1; n <= 3_000; n++) {
    engine.last.say(textOf(n), `m${n}`)
    if (n % 20 === 0) await quick.until(() => said(quick).length === n)
  }
  slow.socket.resume()
  t.same(await slow.untilClosed(), { code: 1013, reason: 'too_slow' })
  const taken = said(slow)
  t.ok(taken.length > 20 && taken.length < 3_000, `${taken.length} of them`)
  t.ok(said(quick).every((text, index) => text === textOf(index + 1)))
  t.ok(taken.every((text, index) => text === textOf(index + 1)))
})

t.test('an upgrade is refused as an HTTP answer before the 101', async (t) => {
  const { call, api } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const ws = api.replace('http', 'ws')
  t.match(await refusedUpgrade(`${ws}/sessions/nowhere/ws`), { status: 404 })
  t.match(await refusedUpgrade(`${ws}/sessions/${json.id}/ws?afterSeq=-1`), { status: 400 })
  t.match(await refusedUpgrade(`${ws}/sessions/${json.id}/ws`, { origin: 'https://evil.example' }), { status: 403 })
  t.match(await refusedUpgrade(`${ws}/sessions/${json.id}`), { status: 400 })
  t.match(await refusedUpgrade(`${ws}/nowhere`), { status: 404 })
})

t.test('a client that goes without a code is not told that the server goes away', async (t) => {
  const { call, api } = await buildServer(t)
  const created = await call('POST', '/sessions', { cwd: SOME_CWD })
  const client = await attach(t, api, created.json.id)
  await client.untilFrame('synced')
  client.socket.close()
  t.same(await client.untilClosed(), { code: 1005, reason: '' })
})
