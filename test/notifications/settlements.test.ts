import t, { type Test } from 'tap'
import type { ChannelOptions } from '../../src/notifications/channels/channels.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { native, ok } from '../fixtures/parked.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

/** Gateways one after the other on one storage, which tell a phone. */
async function world(t: Test) {
  const sink = await WebhookSink.start(t)
  const storage = createMemoryStorage()
  const channels: ChannelOptions[] = [{ format: 'ntfy', url: sink.url, events: ['permission_requested'] }]
  const start = async () => {
    const built = await buildServer(t, { storage, script: native, notifications: { channels } })
    const ask = async (approvalTimeoutMs: number) => {
      const { json } = await built.call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x', approvalTimeoutMs })
      const runner = built.engine.last
      await until(() => runner.sent.length === 1)
      const told = sink.received.length
      void runner.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} }).catch(() => {})
      await until(() => sink.received.length > told, 'the request')
      return { id: String(json.id), tag: sink.received.at(-1)!.headers['x-sequence-id'] }
    }
    return { ...built, ask }
  }
  /** What stands on the phone in the place of a request. */
  const shown = (tag: unknown) => {
    const last = sink.received.findLast(({ headers }) => headers['x-sequence-id'] === tag)
    return `${last?.headers.title} / ${last?.text.split('\n')[0]}`
  }
  return { start, shown, sink }
}

t.test('the phone shows of a request whose session is deleted that nobody needs to answer it', async (t) => {
  const { start, shown } = await world(t)
  const { ask, call, registry } = await start()
  for (const approvalTimeoutMs of [60_000, 0]) {
    const { id, tag } = await ask(approvalTimeoutMs)
    if (approvalTimeoutMs === 0) await until(() => registry.here(id)?.status === 'parked')
    t.match(shown(tag), /^Needs an answer/)
    t.equal((await call('DELETE', `/sessions/${id}`)).status, 200)
    await until(() => !shown(tag).startsWith('Needs'), `the end of what waited ${approvalTimeoutMs}`)
    t.equal(shown(tag), 'Answered: x / Denied: the session has ended.')
  }
})

t.test(
  'so it does when the gateway was restarted in between, or killed while a request with a time limit waited',
  async (t) => {
    const { start, shown } = await world(t)
    const first = await start()
    const parked = await first.ask(0)
    await until(() => first.registry.here(parked.id)?.status === 'parked')
    const timed = await first.ask(60_000)
    const second = await start()
    await until(() => shown(timed.tag) === 'Answered: x / Denied.', 'the end of what was cut off')
    t.match(shown(parked.tag), /^Needs an answer/)
    await second.call('DELETE', `/sessions/${parked.id}`)
    await until(() => shown(parked.tag).startsWith('Answered: x / Denied'), 'the end of what was parked')
  },
)

t.test('what is answered while its session is deleted is shown as it was answered', async (t) => {
  const { start, shown } = await world(t)
  const { ask, call } = await start()
  for (let race = 0; race < 20; race++) {
    const { id, tag } = await ask(race % 2 === 0 ? 0 : 60_000)
    const { json } = await call('GET', `/inbox?sessionId=${id}`)
    const [answered] = await Promise.all([
      call('POST', `/sessions/${id}/permissions/${json[0].request.id}`, { behavior: 'allow' }),
      call('DELETE', `/sessions/${id}`),
    ])
    await until(() => shown(tag).startsWith('Answered'), `the end of race ${race}`)
    if (answered.status !== 200) t.match(shown(tag), /Denied/)
  }
})

t.test(
  'so it does when it was asked after a wake, and the turn goes on from before that in the next process',
  async (t) => {
    const { start, shown, sink } = await world(t)
    const { call, engine, registry } = await start()
    const { id } = (await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x' })).json
    await until(() => engine.last.sent.length === 1)
    await engine.last.defer('e1')
    await until(() => registry.here(id)?.status === 'parked')
    await call('POST', '/executions/e1/result', ok)
    await until(() => engine.runners.length === 2 && registry.here(id)?.status === 'running')
    void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} }).catch(() => {})
    await until(() => sink.received.length === 1, 'the request')
    const tag = sink.received[0]!.headers['x-sequence-id']
    t.match(shown(tag), /^Needs an answer/)
    const requestId = (await call('GET', '/inbox')).json[0].request.id
    const second = await start()
    await until(() => shown(tag) === 'Answered: x / Denied.', 'the end of what nobody asks any more')
    const { events } = (await second.call('GET', `/sessions/${id}/events`)).json
    t.match(
      events.filter(({ type }: { type: string }) => type === 'permission_resolved'),
      [{ requestId, behavior: 'deny', resolvedBy: 'policy' }],
    )
  },
)
