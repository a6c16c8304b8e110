import t from 'tap'
import type { InboxItem } from '../../schemas/notifications.js'
import { Exchange, type Peers } from '../../src/cluster/exchange.js'
import { silentLogger } from '../../src/lib/logger.js'
import { Inbox } from '../../src/notifications/inbox.js'
import {
  type AskNodes,
  answerNode,
  countOverNodes,
  type InboxAnswer,
  pageOverNodes,
} from '../../src/notifications/inbox-over-nodes.js'
import { UNLIMITED } from '../../src/principal.js'
import type { ClusterNode } from '../../src/storage/cluster.js'
import { until } from '../fixtures/build.js'
import { only } from '../fixtures/profiles.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const NOW = 1_760_000_000_000

/** Nodes that ask each other as over their listeners, and one of which may be silent. */
function world(count: number) {
  const clock = new VirtualClock(NOW)
  const silent = new Set<number>()
  const nodes = Array.from({ length: count }, (_, index) => {
    const n = index + 1
    const inbox: Inbox = new Inbox({
      logger: silentLogger,
      node: () => n,
      find: (sessionId, id) =>
        ({
          request: { id, toolName: 'Bash', input: {} },
          session: { id: sessionId, title: '', profile: 'p', cwd: '/' },
        }) as never,
    })
    const peers: Peers = {
      others: () =>
        nodes.filter((node) => node.n !== n).map((node) => ({ n: node.n, name: `node ${node.n}` }) as ClusterNode),
      async ask({ n: other }, { path, body }) {
        if (silent.has(other)) throw new Error('no route to host')
        const node = nodes[other - 1]!
        const said = JSON.parse(JSON.stringify(JSON.parse(body!)))
        if (path === '/v1/cluster/v1/inbox') return Response.json(answerNode(node.inbox, said))
        await node.exchange.told(said)
        return Response.json({})
      },
    }
    const exchange = new Exchange({
      peers,
      clock,
      basePath: '/v1',
      logger: silentLogger,
      n: () => n,
      waiting: () => inbox.waiting,
    })
    exchange.on('inbox', ({ from, waiting }) => inbox.setElsewhere(from, waiting))
    inbox.listeners.on('changed', () => void exchange.tell('inbox'))
    const ask: AskNodes = (question) => exchange.askAll<InboxAnswer>('/inbox', question)
    const wait = (requestId: string, profile = 'p') => {
      const place = { seq: 1, since: clock.now(), order: inbox.nextOrder(clock.now()) }
      inbox.onWaiting({
        sessionId: `session of ${requestId}`,
        profile,
        request: { id: requestId, toolName: 'Bash', input: {} } as never,
        place,
      })
    }
    return { n, inbox, exchange, ask, wait }
  })
  return { nodes, clock, silent }
}

const ids = (items: readonly InboxItem[]) => items.map(({ request }) => request.id)

t.test(
  'what waits anywhere is on the pages of every node, once, the oldest first, and cursors go on at any',
  async (t) => {
    const { nodes, clock } = world(3)
    const asked: string[] = []
    for (let at = 0; at < 25; at++) {
      asked.push(`r${at}`)
      nodes[(at * 7) % 3]!.wait(`r${at}`)
      // some in the same millisecond
      if (at % 4 === 0) await clock.advance(1)
    }
    const seen: string[] = []
    let cursor: string | undefined
    for (let turn = 0; turn === 0 || cursor !== undefined; turn++) {
      const { inbox, ask } = nodes[turn % 3]!
      const page = await pageOverNodes(inbox, { limit: 4, ...(cursor !== undefined && { cursor }) }, UNLIMITED, ask)
      seen.push(...ids(page.items))
      cursor = page.next
    }
    t.same(seen.toSorted(), asked.toSorted())
    for (const { inbox, ask } of nodes)
      t.match(await countOverNodes(inbox, UNLIMITED, ask), { permissions: 25, questions: 0 })
  },
)

t.test('a caller sees no more of other nodes than of its own', async (t) => {
  const { nodes } = world(2)
  nodes[1]!.wait('mine', 'work')
  nodes[1]!.wait('theirs', 'other')
  const { inbox, ask } = nodes[0]!
  t.same(ids((await pageOverNodes(inbox, {}, only('work'), ask)).items), ['mine'])
  t.match(await countOverNodes(inbox, only('work'), ask), { permissions: 1 })
  t.match(await countOverNodes(inbox, only(), ask), { permissions: 0 })
})

t.test('a node that does not answer is left out, and counted as it told last', async (t) => {
  const { nodes, silent } = world(3)
  nodes[0]!.wait('one')
  nodes[1]!.wait('two')
  await until(() => nodes[0]!.inbox.count(UNLIMITED).permissions === 2)
  silent.add(2)
  const { inbox, ask } = nodes[0]!
  t.same(ids((await pageOverNodes(inbox, {}, UNLIMITED, ask)).items), ['one'])
  t.match(await countOverNodes(inbox, UNLIMITED, ask), { permissions: 2 })
  inbox.setElsewhere(2, undefined)
  t.match(await countOverNodes(inbox, UNLIMITED, ask), { permissions: 1 }, 'it is gone')
})

t.test('who follows at one node hears when something comes or goes at another', async (t) => {
  const { nodes } = world(2)
  const heard: string[] = []
  nodes[0]!.inbox.listeners.on('elsewhere', ({ profile }) => heard.push(profile))
  nodes[1]!.wait('one', 'work')
  await until(() => heard.length === 1)
  nodes[1]!.inbox.onResolved('session of one', 'one')
  await until(() => heard.length === 2)
  t.same(heard, ['work', 'work'])
  t.match(nodes[0]!.inbox.count(UNLIMITED), { permissions: 0 })
})

t.test('a node that did not hear of a change is told again', async (t) => {
  const { nodes, silent, clock } = world(2)
  silent.add(1)
  nodes[1]!.wait('one')
  await new Promise(setImmediate)
  t.match(nodes[0]!.inbox.count(UNLIMITED), { permissions: 0 })
  silent.delete(1)
  await until(async () => {
    await clock.advance(1_000)
    return nodes[0]!.inbox.count(UNLIMITED).permissions === 1
  })
})
