import t from 'tap'
import type { InboxItem } from '../../schemas/notifications.js'
import { UNLIMITED } from '../../src/principal.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildInbox } from '../fixtures/inbox-world.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { native } from '../fixtures/parked.js'

t.test('everything that waits for a person is in one list, oldest first, with its session', async (t) => {
  const { inbox, ask, call, clock } = await buildInbox(t)
  t.same(await inbox(), [])
  t.same((await call('GET', '/inbox/count')).json, { permissions: 0, questions: 0 })
  const asked: Awaited<ReturnType<typeof ask>>[] = []
  for (const [profile, isQuestion] of [
    ['b', false],
    ['a', true],
    ['a', false],
    ['c', true],
    ['b', false],
  ] as const) {
    asked.push(await ask(profile, { isQuestion, title: `of ${profile}` }))
    await clock.advance(10)
  }
  const all: InboxItem[] = await inbox()
  t.same(
    all.map(({ session, kind }) => [session.id, session.profile, session.title, kind]),
    asked.map(({ id, item }) => [id, item.session.profile, `of ${item.session.profile}`, item.kind]),
  )
  t.match(all[0], {
    kind: 'permission',
    request: { toolName: 'Write', toolUseId: 't', input: {} },
    session: { cwd: SOME_CWD },
    since: Number,
    expiresAt: Number,
    seq: Number,
  })
  const { events } = (await call('GET', `/sessions/${all[0]!.session.id}/events`)).json
  const event = events.find(({ seq }: { seq: number }) => seq === all[0]!.seq)
  t.match(event, { type: 'permission_requested', ts: all[0]!.since, request: { id: all[0]!.request.id } })
  t.same((await call('GET', '/inbox/count')).json, { permissions: 3, questions: 2 })
  const ids = (items: InboxItem[]) => items.map(({ request }) => request.id)
  const of = (isOf: (item: InboxItem) => boolean) => ids(all.filter(isOf))
  t.same(
    ids(await inbox('?kind=question')),
    of(({ kind }) => kind === 'question'),
  )
  t.same(
    ids(await inbox('?profile=b')),
    of(({ session }) => session.profile === 'b'),
  )
  t.same(
    ids(await inbox('?profile=a&kind=permission')),
    of(({ session, kind }) => session.profile === 'a' && kind === 'permission'),
  )
  t.same(ids(await inbox(`?sessionId=${asked[1]!.id}`)), [asked[1]!.item.request.id])
  t.same(await inbox(`?sessionId=${asked[1]!.id}&profile=b`), [])
  for (const allowed of ['a', 'b,c', 'c,c', '']) {
    const headers = { 'x-profiles': allowed }
    const sees = ({ session }: InboxItem) => allowed.split(',').includes(session.profile)
    t.same(ids(await inbox('', headers)), of(sees), `who may see ${allowed}`)
    const count = (await call('GET', '/inbox/count', undefined, headers)).json
    t.equal(count.permissions + count.questions, of(sees).length)
    t.same(
      ids(await inbox('?profile=b', headers)),
      of((item) => sees(item) && item.session.profile === 'b'),
    )
    const other = await inbox(`?sessionId=${asked[1]!.id}`, headers)
    t.same(
      ids(other),
      of((item) => sees(item) && item.session.id === asked[1]!.id),
    )
  }
})

t.test('no name of a profile stands for those of all', async (t) => {
  const { ask, inbox, call } = await buildInbox(t, {
    authenticate: ({ headers }) =>
      headers.name === undefined || { allowedProfiles: [JSON.parse(String(headers.name))] },
  })
  await ask('a')
  for (const name of ['\0', '', '*', '__proto__', 'constructor', 'Symbol(all)', 'undefined']) {
    const caller = { name: JSON.stringify(name) }
    t.same(await inbox('', caller), [], caller.name)
    t.same(await inbox(`?profile=${encodeURIComponent(name)}`, caller), [], caller.name)
    t.same((await call('GET', '/inbox/count', undefined, caller)).json, { permissions: 0, questions: 0 }, caller.name)
    t.same(await inbox(`?profile=${encodeURIComponent(name)}`), [], caller.name)
  }
  t.equal((await inbox()).length, 1)
})

t.test('pages lose and repeat nothing, while requests come and go', async (t) => {
  const { inbox, ask, call } = await buildInbox(t)
  const asked: Awaited<ReturnType<typeof ask>>[] = []
  for (let n = 0; n < 7; n++) asked.push(await ask(['a', 'b', 'c'][n % 3]))
  const read: string[] = []
  let path = '/inbox?limit=2'
  for (let page = 0; path; page++) {
    const { json, headers } = await call('GET', path)
    read.push(...json.map(({ request }: InboxItem) => request.id))
    if (page === 0) {
      const [first, second] = asked
      for (const { id, item } of [first!, second!])
        await call('POST', `/sessions/${id}/permissions/${item.request.id}`, { behavior: 'allow' })
    }
    path = /<\/v1([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? ''
  }
  t.same(
    read,
    asked.map(({ item }) => item.request.id),
  )
  t.equal((await inbox()).length, 5)
  for (const query of ['cursor=x', 'kind=x', 'limit=0', 'limit=201', 'nothing=1', 'cursor='])
    t.match((await call('GET', `/inbox?${query}`)).json, { status: 400, code: 'SG_ERR_VALIDATION' }, query)
  t.equal((await call('GET', '/inbox/count?profile=a')).status, 400)
})

t.test('what is settled is gone, however it was', async (t) => {
  const { inbox, ask, call, clock, engine } = await buildInbox(t)
  const settle: Record<string, (asked: Awaited<ReturnType<typeof ask>>) => unknown> = {
    answered: ({ id, item }) => call('POST', `/sessions/${id}/permissions/${item.request.id}`, { behavior: 'deny' }),
    interrupted: ({ id }) => call('POST', `/sessions/${id}/commands`, { type: 'interrupt' }),
    closed: ({ id }) => call('POST', `/sessions/${id}/commands`, { type: 'close' }),
    removed: ({ id }) => call('DELETE', `/sessions/${id}`),
    failed: ({ runner }) => runner.host.emit({ type: 'session_error', message: 'it broke' }),
    expired: () => clock.advance(300_000),
  }
  for (const [how, act] of Object.entries(settle)) {
    const asked = await ask()
    t.equal((await inbox()).length, 1)
    await act(asked)
    t.same(await inbox(), [], how)
    t.same((await call('GET', '/inbox/count')).json, { permissions: 0, questions: 0 }, how)
  }
  t.ok(engine.runners.length > 0)
})

t.test(
  'a request is in the inbox as soon as its session says that it waits, and told of once it is durable',
  async (t) => {
    const { registry, engine, journal, gateway } = await buildJournaled(t)
    const { inbox } = gateway.notifications
    const told: string[] = []
    inbox.listeners.on('changed', ({ profile }) => told.push(profile))
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    journal.hold()
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
    await until(() => registry.here(id)?.status === 'awaiting_approval')
    t.equal(inbox.page({}, UNLIMITED).items[0]?.session.id, id)
    t.same(inbox.count(UNLIMITED), { permissions: 1, questions: 0 })
    t.same(told, [])
    journal.release()
    await until(() => told.length === 1)
  },
)

t.test(
  'who was told a count with a request that was settled before it was durable is told that it is gone',
  async (t) => {
    const { registry, engine, journal, gateway } = await buildJournaled(t)
    const { inbox } = gateway.notifications
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    journal.hold()
    const takenBack = new AbortController()
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} }, takenBack.signal)
    await until(() => registry.here(id)?.status === 'awaiting_approval')
    const counts = [inbox.count(UNLIMITED)]
    inbox.listeners.on('changed', () => counts.push(inbox.count(UNLIMITED)))
    takenBack.abort()
    await until(() => registry.here(id)?.status === 'running')
    t.same(counts, [
      { permissions: 1, questions: 0 },
      { permissions: 0, questions: 0 },
    ])
    journal.release()
  },
)

t.test('what parked sessions wait for stays in its place over a restart, and leaves when it is answered', async (t) => {
  let isBroken = false
  const start = () => {
    if (isBroken) throw new Error('not now')
  }
  const script = {
    ...native,
    start: (runner: { init(): void }) => {
      start()
      runner.init()
    },
  }
  const world = await buildJournaled(t, { script })
  const { registry, engine, again, clock } = world
  const page = (gateway: typeof world.gateway) => gateway.notifications.inbox.page({}, UNLIMITED).items
  const ids: string[] = []
  for (let n = 0; n < 3; n++) {
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0, title: `number ${n}` })
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: `t${n}`, input: { n } })
    ids.push(id)
  }
  await until(() => ids.every((id) => registry.here(id)?.status === 'parked'))
  const timed = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  await until(() => page(world.gateway).length === 4)
  const before = page(world.gateway)
  await registry.durable(timed.id)

  const second = await again()
  await until(() => page(second.gateway).length === 3)
  t.same(page(second.gateway), before.slice(0, 3), 'what had an engine was cut off; the others wait on, in their order')
  t.same(second.gateway.notifications.inbox.count(UNLIMITED), { permissions: 3, questions: 0 })
  isBroken = true
  const [first, , last] = before
  const answered = second.registry.resolvePermission(ids[0]!, first!.request.id, { behavior: 'allow' }, UNLIMITED)
  await until(() => page(second.gateway).length === 2)
  t.equal(second.registry.here(ids[0]!)?.parked !== undefined, true, 'before its session could be woken')
  await second.registry.close(ids[2]!, 'client')
  t.same(
    page(second.gateway).map(({ session }) => session.id),
    [ids[1]],
    'removed with its session',
  )
  t.not(last, undefined)
  await clock.advance(5_000)
  await answered

  const third = await again()
  t.same(
    page(third.gateway).map(({ session }) => session.id),
    [ids[1]],
    'and it stays so',
  )
})

t.test('what an interrupt denies waits for nobody, also before its session could be woken to tell that', async (t) => {
  let isBroken = false
  const start = (runner: { init(): void }) => {
    if (isBroken) throw new Error('not now')
    runner.init()
  }
  const { registry, engine, again, gateway } = await buildJournaled(t, { script: { ...native, start } })
  const waiting = (of: typeof gateway) => of.notifications.inbox.count(UNLIMITED).permissions
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  await until(() => registry.here(id)?.status === 'parked')
  t.equal(waiting(gateway), 1)
  isBroken = true
  await registry.send(id, { type: 'interrupt' })
  t.equal(registry.here(id)?.status, 'parked', 'its engine could not be started')
  t.equal(waiting(gateway), 0)
  const next = await again()
  t.equal(next.registry.here(id)?.status, 'parked')
  t.equal(waiting(next.gateway), 0, 'nor after a restart')
})
