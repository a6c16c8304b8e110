import t, { type Test } from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf, type TestNode } from '../fixtures/cluster.js'
import { native, ok } from '../fixtures/parked.js'
import { isProblem } from '../fixtures/problem.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { hasPostgres } from '../storage/postgres-world.js'

/** Long enough for a busy machine, short enough to be waited for. */
const LEASE = { leaseMs: 4_000 }
const CLI = { profiles: [{ name: 'agent', engine: 'cli' as const }] }

async function create(node: TestNode, request: object = {}): Promise<string> {
  const { status, json } = await node.call('POST', '/sessions', { cwd: SOME_CWD, ...request })
  if (status !== 201) throw new Error(JSON.stringify(json))
  return json.id
}

const infoAt = async (node: TestNode, id: string): Promise<SessionInfo> =>
  (await node.call('GET', `/sessions/${id}`)).json

const statusAt = async (node: TestNode, id: string): Promise<string | undefined> => (await infoAt(node, id)).status

/** What the database has of its status: more than that does not outlive a node that is cut off. */
const keptStatus = async (node: TestNode, id: string): Promise<string | undefined> =>
  (await node.storage.journal!.get(id))?.state.info.status

/** The whole log, as a node gives it. */
async function logAt(node: TestNode, id: string): Promise<SessionEvent[]> {
  const events: SessionEvent[] = []
  for (let after = 0; ; ) {
    const { json } = await node.call('GET', `/sessions/${id}/events?afterSeq=${after}`)
    if (json.events.length === 0) return events
    events.push(...json.events)
    after = events.at(-1)!.seq
  }
}

/** One page of the list: its ids, and where the next one is. */
async function page(node: TestNode, path: string): Promise<{ ids: string[]; next: string | undefined }> {
  const { json, headers } = await node.call('GET', path)
  const next = /<[^>]*(\/sessions\?[^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
  return { ids: (json as SessionInfo[]).map(({ id }) => id), next }
}

async function walk(node: TestNode, query = '', limit = 3): Promise<string[]> {
  const ids: string[] = []
  for (let path: string | undefined = `/sessions?limit=${limit}${query}`; path !== undefined; ) {
    const { ids: more, next } = await page(node, path)
    ids.push(...more)
    path = next
  }
  return ids
}

const rises = (events: readonly SessionEvent[]) =>
  events.every(({ seq }, index) => index === 0 || seq > events[index - 1]!.seq)

if (hasPostgres()) {
  t.test('every node lists all sessions in one order, whoever has them', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b', 'c'], {
      profiles: [
        { name: 'one', engine: 'provider', provider: { id: 'scripted' } },
        { name: 'two', engine: 'provider', provider: { id: 'scripted' } },
      ],
    })
    const [a, b, c] = nodes
    const ids: string[] = []
    for (let at = 0; at < 9; at++)
      ids.unshift(await create(nodes[at % 3]!, { profile: at % 2 ? 'one' : 'two', title: `session ${at}` }))
    const ended = ids[4]!
    await b.call('POST', `/sessions/${ended}/commands`, { type: 'close' })
    const busy = ids[2]!
    await c.call('POST', `/sessions/${busy}/commands`, { type: 'user_message', text: 'go' })
    for (const node of nodes) {
      const { name } = node
      const ofOne = ids.filter((_id, at) => at % 2 === 1)
      t.same(await walk(node), ids, `all at ${name}`)
      t.same(await walk(node, '&profile=one'), ofOne, `of a profile at ${name}`)
      t.same(await walk(node, '&status=closed'), [ended], `closed at ${name}`)
      t.same(await walk(node, '&status=running'), [busy], `running at ${name}`)
      t.same(
        (await node.worker.registry.list()).map(({ id }) => id),
        ids,
        `to a host at ${name}`,
      )
    }
    const first = await page(a, '/sessions?limit=4')
    const second = await page(b, first.next!)
    const third = await page(c, second.next!)
    t.same(
      [first, second, third].flatMap((one) => one.ids),
      ids,
      'a cursor goes on at any node',
    )
    t.equal(third.next, undefined)
    await c.call('DELETE', `/sessions/${ids[0]}`)
    for (const node of nodes) t.same(await walk(node), ids.slice(1), `without the removed one at ${node.name}`)
  })

  t.test(
    'a node that is gone leaves its sessions as a restart would: nothing is lost, and each is found once',
    async (t: Test) => {
      const { nodes } = await clusterOf(t, ['a', 'b', 'c'], { ...LEASE, script: native, parking: { parkDelayMs: 0 } })
      const [a, b, c] = nodes
      const dormant = await create(a, { prompt: 'once' })
      a.engine.last.say('said', 'm1')
      a.engine.last.complete()
      const ended = await create(a)
      await a.call('POST', `/sessions/${ended}/commands`, { type: 'close' })
      const parked = await create(a, { prompt: 'wait' })
      await a.engine.last.defer('e1')
      await until(async () => (await statusAt(b, parked)) === 'parked', 'a parked session')
      const live = await create(a, { prompt: 'go' })
      a.engine.last.say('half', 'm2')
      await until(async () => (await logAt(b, live)).some(({ type }) => type === 'assistant_message'), 'half a turn')
      const before = await logAt(b, live)
      const all = [live, parked, ended, dormant]
      t.same(await walk(b), all)

      a.cutOff()
      await until(async () => (await statusAt(b, live)) === 'idle', 'the session of the dead node')
      const log = await logAt(c, live)
      t.same(log.slice(0, before.length), before, 'what was told stays')
      t.ok(rises(log))
      t.match(
        log.find(({ type }) => type === 'turn_completed'),
        { subtype: 'interrupted' },
      )
      for (const node of [b, c]) t.same(await walk(node), all, `listed at ${node.name}`)
      t.match(await infoAt(c, ended), { status: 'closed' })
      t.match((await c.call('PATCH', `/sessions/${ended}`, { title: 'renamed' })).json, { title: 'renamed' })

      t.match((await c.call('POST', '/executions/e1/result', ok)).json, { applied: true, sessionId: parked })
      t.match((await b.call('POST', '/executions/e1/result', ok)).json, { applied: false, sessionId: parked })
      const engines = () => [...b.engine.runners, ...c.engine.runners]
      const woken = () => engines().filter(({ context }) => context.sessionId === parked)
      await until(() => woken()[0]?.settled.length, 'its result at an engine')
      t.equal(woken().length, 1, 'one engine')
      t.match(woken()[0]!.settled, [{ executionId: 'e1', result: ok }])
      woken()[0]!.complete()
      await until(async () => (await statusAt(c, parked)) === 'idle', 'the end of its turn')

      const said = await c.call('POST', `/sessions/${dormant}/commands`, { type: 'user_message', text: 'more' })
      t.match(said, { status: 200 })
      t.ok(
        engines().some(
          ({ context, sent }) => context.sessionId === dormant && sent.some(({ text }) => text === 'more'),
        ),
      )
      t.match(await b.call('POST', `/sessions/${live}/commands`, { type: 'user_message', text: 'and?' }), {
        status: 200,
      })
      const next = engines().find(({ context }) => context.sessionId === live)
      t.match(next?.context.cutOff, [{ prompt: 'go', messages: [{ content: [{ text: 'half' }] }] }])
      t.match(await c.call('DELETE', `/sessions/${live}`), { status: 200 })
      for (const node of [b, c]) t.same(await walk(node), [parked, ended, dormant])
      t.match(await b.call('GET', `/sessions/${live}`), { status: 404 })
    },
  )

  t.test('a profile that another node alone declares is one to list the sessions of', async (t: Test) => {
    const { nodes, join } = await clusterOf(t, ['a'], {})
    await join('b', { profiles: [{ name: 'rare', engine: 'provider', provider: { id: 'rare' } }] })
    const listed = (profile: string) => nodes[0].call('GET', `/sessions?profile=${profile}`)
    await until(() => nodes[0].storage.cluster!.nodes().length === 2, 'both nodes')
    t.match(await listed('rare'), { status: 200, json: [] })
    t.match(await listed('mare'), { status: 400, json: { code: 'SG_ERR_PROFILE_UNKNOWN' } })
  })

  t.test('an execution id is one session’s: of two nodes that defer it, the second is refused', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b', 'c'], { ...LEASE, script: native, parking: { parkDelayMs: 0 } })
    const [a, b, c] = nodes
    const [first, second] = [await create(a, { prompt: 'wait' }), await create(b, { prompt: 'wait too' })]
    await a.engine.last.defer('e1')
    await until(async () => (await statusAt(c, first)) === 'parked', 'a parked session')
    const refused = { code: 'SG_ERR_EXECUTION_EXISTS' }
    await t.rejects(b.engine.last.defer('e1'), refused)
    await t.rejects(b.engine.last.defer('e1'), refused, 'asked again')
    t.match(
      (await logAt(c, second)).filter(({ type }) => type === 'execution_failed'),
      [{ executionId: 'e1', reason: 'interrupted' }, { executionId: 'e1' }],
    )
    const both = [create(a, { prompt: 'third' }), create(b, { prompt: 'fourth' })]
    const ids = await Promise.all(both)
    const settled = await Promise.allSettled([a, b].map(({ engine }) => engine.last.defer('e2')))
    t.equal(settled.filter(({ status }) => status === 'fulfilled').length, 1, 'one of two at once')
    const winner = ids[settled.findIndex(({ status }) => status === 'fulfilled')]!
    await until(async () => (await keptStatus(c, winner)) === 'parked', 'the winner parked')

    b.cutOff()
    await until(() => c.storage.cluster!.nodes().length === 2, 'two nodes')
    await until(async () => (await statusAt(c, second)) === 'idle', 'the session of the dead node')
    t.match((await c.call('POST', '/executions/e1/result', ok)).json, { applied: true, sessionId: first })
    t.match((await a.call('POST', '/executions/e2/result', ok)).json, { applied: true, sessionId: winner })
  })

  t.test('a result that comes to the node that was refused reaches the first', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'], { ...LEASE, script: native, parking: { parkDelayMs: 0 } })
    const [a, b] = nodes
    const first = await create(a, { prompt: 'wait' })
    await create(b, { prompt: 'wait too' })
    await a.engine.last.defer('e1')
    await t.rejects(b.engine.last.defer('e1'), { code: 'SG_ERR_EXECUTION_EXISTS' })
    t.match((await b.call('POST', '/executions/e1/result', ok)).json, { applied: true, sessionId: first })
    t.match((await b.call('POST', '/executions/e1/result', ok)).json, { applied: false, sessionId: first })
  })

  t.test('a permission request that a dead node left is answered by any node', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b', 'c'], { ...LEASE, script: native, parking: { parkDelayMs: 0 } })
    const [a, b, c] = nodes
    const id = await create(a, { prompt: 'ask', approvalTimeoutMs: 0 })
    void a.engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: { path: 'a' } })
    await until(async () => (await keptStatus(b, id)) === 'parked', 'parked')
    const [request] = (await infoAt(b, id)).parked!.permissions!
    a.cutOff()
    const answer = () => c.call('POST', `/sessions/${id}/permissions/${request!.id}`, { behavior: 'allow' })
    await until(async () => (await answer()).status === 200, 'an answer that is taken')
    await until(() => [b, c].some(({ engine }) => engine.runners.length > 0), 'an engine')
    isProblem(
      t,
      await b.call('POST', `/sessions/${id}/permissions/${request!.id}`, { behavior: 'allow' }),
      404,
      'SG_ERR_PERMISSION_NOT_FOUND',
    )
  })

  t.test('the deadline of a sleeping session whose node is gone comes at another, once', async (t: Test) => {
    const clock = new VirtualClock()
    const { nodes } = await clusterOf(t, ['a', 'b', 'c'], {
      ...{ ...LEASE, clock, script: native, parking: { parkDelayMs: 0 } },
    })
    const [a, b, c] = nodes
    const id = await create(a, { prompt: 'wait' })
    await a.engine.last.defer('e1', clock.now() + 20_000)
    clock.advance(0)
    await until(async () => (await b.storage.journal!.get(id))?.sleeps, 'asleep')
    a.cutOff()
    await until(() => [b, c].some(({ worker }) => worker.registry.here(id)), 'one that sees to it')
    const settled = () => [b, c].flatMap(({ engine }) => engine.runners.flatMap((runner) => runner.settled))
    t.same(settled(), [])
    // what a node asks of the database meanwhile is not to look as if it had never answered
    await until(async () => {
      clock.advance(500)
      await Promise.all([b, c].map(({ storage }) => storage.cluster!.placeOfSession(id)))
      return settled().length > 0
    }, 'the deadline')
    t.match(settled(), [{ executionId: 'e1', result: { status: 'failed', reason: 'timeout' } }])
    t.match((await c.call('POST', '/executions/e1/result', ok)).json, { applied: false, sessionId: id })
    t.match((await b.call('POST', '/executions/e1/result', ok)).json, { applied: false, sessionId: id })
    t.ok(rises(await logAt(b, id)))
  })

  t.test(
    'what an agent keeps on its node waits for that node: read and deleted elsewhere, gone on with there',
    async (t: Test) => {
      const { nodes, join } = await clusterOf(t, ['a', 'b', 'c'], { ...LEASE, ...CLI })
      const [a, b, c] = nodes
      const [first, second] = [await create(a, { prompt: 'one' }), await create(a, { prompt: 'two' })]
      for (const runner of a.engine.runners) {
        runner.say('said')
        runner.complete()
      }
      const third = await create(a, { prompt: 'three' })
      await until(async () => (await statusAt(b, second)) === 'idle', 'idle')
      a.cutOff()
      await until(async () => (await statusAt(b, third)) === 'idle', 'the cut-off turn is mended without its node')
      t.match(
        (await logAt(c, third)).find(({ type }) => type === 'turn_completed'),
        { subtype: 'interrupted' },
      )
      const refused = await c.call('POST', `/sessions/${first}/commands`, { type: 'user_message', text: 'more' })
      isProblem(t, refused, 503, 'SG_ERR_NODE_AWAY')
      t.match(refused.json.detail, /node a,/)
      t.ok(refused.headers.get('retry-after'))
      t.match((await b.call('PATCH', `/sessions/${first}`, { title: 'still here' })).json, { title: 'still here' })
      t.match(await c.call('DELETE', `/sessions/${second}`), { status: 200 })
      for (const node of [b, c]) t.same(await walk(node), [third, first], `listed at ${node.name}`)
      t.equal(b.engine.runners.length + c.engine.runners.length, 0, 'no engine elsewhere')

      const again = await join('a')
      const say = () => c.call('POST', `/sessions/${first}/commands`, { type: 'user_message', text: 'more' })
      await until(async () => (await say()).status === 200, 'its node has it')
      t.match(
        again.engine.runners.map(({ context, sent }) => [context.sessionId, sent.at(-1)?.text]),
        [[first, 'more']],
      )
      t.match(await infoAt(b, first), { title: 'still here', status: 'running' })
      for (const node of [b, c, again]) t.same(await walk(node), [third, first], `listed at ${node.name}`)
      t.ok(rises(await logAt(c, third)))
    },
  )

  t.test('sessions whose profile not every node has are left to those that have it', async (t: Test) => {
    const profiles = ['scripted', 'new'].map((name) => ({ name, engine: 'provider' as const, provider: { id: name } }))
    const { nodes, join } = await clusterOf(t, ['lacks'], LEASE)
    const [lacks] = nodes
    const [gone, has] = [await join('gone', { profiles }), await join('has', { profiles })]
    await until(() => lacks.storage.cluster!.nodes().length === 3, 'all of them')
    const ids = [await create(gone, { profile: 'new', prompt: 'one' }), await create(gone, { profile: 'new' })]
    await until(async () => (await keptStatus(has, ids[0]!)) === 'running', 'in a turn')
    gone.cutOff()
    await until(async () => (await statusAt(lacks, ids[0]!)) === 'idle', 'the end of its turn')
    for (const id of ids) {
      const say = () => lacks.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
      await until(async () => (await say()).status === 200, 'a message that is taken')
      t.match(has.engine.last.context.sessionId, id)
    }
    t.equal(lacks.engine.runners.length, 0)
    t.match(await infoAt(lacks, ids[0]!), { status: 'running' })
  })

  t.test('a session that was taken up while nobody had its profile goes to the first that has it again', async (t) => {
    const profiles = ['scripted', 'new'].map((name) => ({ name, engine: 'provider' as const, provider: { id: name } }))
    const { nodes, join } = await clusterOf(t, ['lacks'])
    const [lacks] = nodes
    const has = await join('has', { profiles })
    const id = await create(has, { profile: 'new' })
    await has.stop()
    await until(() => lacks.storage.cluster!.nodes().length === 1, 'it is alone')
    t.match(await infoAt(lacks, id), { status: 'idle' })
    t.equal((await lacks.storage.cluster!.placeOfSession(id))?.owner?.name, 'lacks')
    await until(() => !lacks.worker.registry.has(id), 'it is at rest')
    const again = await join('has', { profiles })
    await until(() => lacks.storage.cluster!.nodes().length === 2, 'both')
    const say = () => lacks.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
    t.match(await say(), { status: 200 })
    t.match(again.engine.last.sent, [{ text: 'more' }])
    t.match(await infoAt(lacks, id), { status: 'running' })
  })

  t.test('so does one that waits there for an answer, with the answer', async (t) => {
    const profiles = ['scripted', 'new'].map((name) => ({ name, engine: 'provider' as const, provider: { id: name } }))
    const { nodes, join } = await clusterOf(t, ['lacks'], { script: native, parking: { parkDelayMs: 0 } })
    const [lacks] = nodes
    const has = await join('has', { profiles })
    const id = await create(has, { profile: 'new', prompt: 'ask', approvalTimeoutMs: 0 })
    void has.engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: { path: 'a' } })
    await until(async () => (await keptStatus(lacks, id)) === 'parked', 'parked')
    const [request] = (await infoAt(lacks, id)).parked!.permissions!
    await has.stop()
    await until(() => lacks.worker.registry.has(id), 'it was taken up')
    const again = await join('has', { profiles })
    await until(() => lacks.storage.cluster!.nodes().length === 2, 'both')
    const answer = () => lacks.call('POST', `/sessions/${id}/permissions/${request!.id}`, { behavior: 'allow' })
    t.match(await answer(), { status: 200 })
    await until(async () => (await statusAt(lacks, id)) !== 'parked', 'it goes on')
    t.match(await infoAt(lacks, id), { status: 'running' })
    t.equal(again.engine.runners.length, 1)
    t.notOk(lacks.worker.registry.has(id))
    t.match((await answer()).json, { code: 'SG_ERR_PERMISSION_NOT_FOUND' })
    t.same((await lacks.call('GET', '/inbox')).json, [])
  })

  t.test(
    'a session that is taken over when its own node is back already goes on there, however often it is asked for meanwhile',
    async (t: Test) => {
      const { nodes, join } = await clusterOf(t, ['a', 'b'], { ...LEASE, ...CLI })
      const [a, b] = nodes
      const id = await create(a, { prompt: 'one' })
      await until(async () => (await keptStatus(b, id)) === 'running', 'kept')
      a.cutOff()
      await b.stop()
      // it takes over once it has been there for a lease: the other one is back by then
      const [taker, back] = await Promise.all([join('b'), join('a')])
      await until(async () => (await statusAt(taker, id)) === 'idle', 'the cut-off turn is mended')
      const say = () => taker.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
      await until(async () => (await say()).status === 200, 'its node has it')
      t.equal(back.engine.last.sent.at(-1)?.text, 'more')
    },
  )

  t.test('one that was left again before it is told here that it was taken is not taken up', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'], LEASE)
    const [a, b] = nodes
    const id = await create(a, { prompt: 'one' })
    a.engine.last.complete()
    await until(async () => (await keptStatus(b, id)) === 'idle', 'idle')
    await a.stop()
    const { cluster } = b.storage
    t.equal((await cluster!.claim(id))?.owner?.name, 'b')
    const { registry } = b.worker
    t.equal(await registry.shared!.leave(id), true)
    await registry.shared!.takeUp([id])
    t.notOk(registry.has(id), 'it is whose that asks for it next')
    t.equal((await cluster!.placeOfSession(id))?.owner, undefined)
    t.equal(await statusAt(b, id), 'idle')
  })

  t.test('an agent whose state is shared goes on anywhere', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'], { ...LEASE, ...CLI, agentState: 'shared' })
    const [a, b] = nodes
    const id = await create(a, { prompt: 'one' })
    a.engine.last.complete()
    await until(async () => (await statusAt(b, id)) === 'idle', 'idle')
    a.cutOff()
    const say = () => b.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
    await until(async () => (await say()).status === 200, 'a message that is taken')
    t.match(b.engine.last.sent, [{ text: 'more' }])
  })

  t.test('where what agents keep is copied, those that can be go on anywhere, others at home', async (t: Test) => {
    const profiles = ['claude', 'codex'].map((agent) => ({ name: agent, engine: 'cli' as const, agent }))
    const { nodes } = await clusterOf(t, ['a', 'b'], { ...LEASE, profiles, agentState: 'copied' })
    const [a, b] = nodes
    const copied = await create(a, { prompt: 'one', profile: 'claude' })
    const homely = await create(a, { prompt: 'one', profile: 'codex' })
    for (const runner of a.engine.runners) runner.complete()
    for (const id of [copied, homely]) await until(async () => (await keptStatus(b, id)) === 'idle', 'idle')
    t.equal((await b.storage.cluster!.placeOfSession(homely))?.home, 'a')
    a.cutOff()
    const say = (id: string) => b.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
    await until(async () => (await say(copied)).status === 200, 'a message that is taken')
    t.match(b.engine.last.sent, [{ text: 'more' }])
    isProblem(t, await say(homely), 503, 'SG_ERR_NODE_AWAY')
  })

  t.test('sessions whose time is over go once, those of a node that is gone too', async (t: Test) => {
    const { nodes, join } = await clusterOf(t, ['a', 'b'], { ...LEASE, sessionRetentionMs: 1_000 })
    const [a, b] = nodes
    const [left, kept] = [await create(a), await create(b)]
    await a.call('POST', `/sessions/${left}/commands`, { type: 'close' })
    await a.stop()
    await b.call('POST', `/sessions/${kept}/commands`, { type: 'close' })
    await until(async () => (await b.call('GET', `/sessions/${kept}`)).status === 404, 'its own is gone')
    const other = await join('c')
    await until(async () => (await walk(other)).length === 0, 'that of the other node is gone')
    t.match(await b.call('GET', `/sessions/${left}`), { status: 404 })
  })
}
