import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { attach, refusedUpgrade } from '../fixtures/client.js'

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
