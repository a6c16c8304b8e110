import t from 'tap'
import WebSocket from 'ws'
import type { InboxItem, SessionNotification } from '../../schemas/notifications.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf, type TestNode } from '../fixtures/cluster.js'
import { hasPostgres } from '../storage/postgres-world.js'

/** A session that asks for an approval, at one node. */
async function asking(node: TestNode): Promise<{ sessionId: string; requestId: string }> {
  const { json } = await node.call('POST', '/sessions', { cwd: SOME_CWD })
  await node.call('POST', `/sessions/${json.id}/commands`, { type: 'user_message', text: 'do it' })
  void node.engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} })
  const waiting = async () => (await node.call('GET', `/inbox?sessionId=${json.id}`)).json as InboxItem[]
  await until(async () => (await waiting()).length === 1)
  return { sessionId: json.id, requestId: (await waiting())[0]!.request.id }
}

if (hasPostgres()) {
  t.test('what waits at any node is in the inbox of every one, and answered from any', async (t) => {
    const { nodes } = await clusterOf(t, ['a', 'b', 'c'])
    const [a, b, c] = nodes
    const ofA = await asking(a)
    const ofB = await asking(b)
    for (const node of nodes) {
      const { json } = await node.call('GET', '/inbox')
      t.same(
        (json as InboxItem[]).map(({ request, session }) => ({ sessionId: session.id, requestId: request.id })),
        [ofA, ofB],
        node.name,
      )
      t.same((await node.call('GET', '/inbox/count')).json, { permissions: 2, questions: 0 })
    }
    const first = await a.call('GET', '/inbox?limit=1')
    const next = /<\/v1([^>]*)>; rel="next"/.exec(first.headers.get('link') ?? '')![1]!
    t.match((await b.call('GET', next)).json, [{ request: { id: ofB.requestId } }], 'a cursor goes on at another node')
    const answers = [
      { ...ofB, behavior: 'deny' },
      { ...ofA, behavior: 'allow' },
      { ...ofA, requestId: 'nobodys', behavior: 'allow' },
    ]
    // as if it had ended before it could remember what it answered
    const { idempotency } = c.storage
    idempotency.complete = (key) => idempotency.release(key)
    const results = [
      { ...ofB, resolved: true },
      { ...ofA, resolved: true },
      { requestId: 'nobodys', resolved: false, code: 'SG_ERR_PERMISSION_NOT_FOUND' },
    ]
    for (const node of [c, b])
      t.match((await node.call('POST', '/inbox/answers', { answers }, { 'idempotency-key': 'k' })).json, { results })
    for (const node of nodes) t.same((await node.call('GET', '/inbox')).json, [])
    t.equal(
      (await c.call('POST', '/cluster/v1/inbox', { query: {} })).status,
      404,
      'nobody else is told what nodes are',
    )
  })

  t.test(
    'every node tells the notifications of all, in one order, and its streams show them as they come',
    async (t) => {
      const { nodes } = await clusterOf(t, ['a', 'b'])
      const [a, b] = nodes
      const frames: { type: string; notification?: SessionNotification; inbox?: object }[] = []
      const socket = new WebSocket(`${a.api.replace('http', 'ws')}/notifications/ws`)
      t.teardown(() => socket.terminate())
      socket.on('message', (data) => frames.push(JSON.parse(String(data))))
      await until(() => frames.some(({ type }) => type === 'notifications_synced'))
      const told = () => frames.flatMap(({ notification }) => notification?.sessionId ?? [])
      const ofA = await asking(a)
      // in the inbox it is before it is durable, and told of
      await until(() => told().length === 1)
      const ofB = await asking(b)
      await until(() => told().length === 2)
      t.same(told(), [ofA.sessionId, ofB.sessionId])
      await until(() => frames.some(({ inbox }) => JSON.stringify(inbox) === '{"permissions":2,"questions":0}'))
      const lists = await Promise.all(nodes.map(async (node) => (await node.call('GET', '/notifications')).text))
      t.equal(lists[0], lists[1])
      const ids = (JSON.parse(lists[0]!) as SessionNotification[]).map(({ id }) => id)
      t.match((await b.call('GET', `/notifications?after=${ids[0]}`)).json, [{ sessionId: ofB.sessionId }])
      t.same((await a.call('GET', `/notifications?after=${ids[1]}`)).json, [])
      const usage = await Promise.all(
        nodes.map(async (node) => (await node.call('GET', '/usage?by=profile')).json.rows),
      )
      t.match(usage[0], [{ approvalsAsked: 2 }])
      t.same(usage[0], usage[1])
    },
  )
}
