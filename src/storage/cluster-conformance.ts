import assert from 'node:assert/strict'
import type { CarriedPiece } from '../engines/cli/carry/carried-files.js'
import type { ClusterEvents, ClusterStorage, Taken } from './cluster.js'
import { jobOf, sessionOf } from './conformance-fixtures.js'
import type { GatewayStorage } from './storage.js'

/** A node of a cluster that is made for a test. */
export interface TestNode {
  /** Open, and announced with the name that was asked for. */
  storage: GatewayStorage & { cluster: ClusterStorage }
  /** From then on nothing of it reaches the others, nor the other way round, until `reconnect`; what is connected breaks. */
  cut(): void
  reconnect(): void
}

export interface ClusterWorld {
  /**
   * A further node of the same cluster, which has a queue.
   * @param leaseMs default: short, so that a test can wait for its end
   * @param profiles that it declares; default: none
   */
  node(name: string, leaseMs?: number, profiles?: readonly string[]): Promise<TestNode>
}

/** One thing that nodes of every storage with `cluster` do together. */
export interface ClusterCase {
  name: string
  /**
   * @param world of a cluster that is empty
   * @throws AssertionError
   */
  run(world: ClusterWorld): Promise<void>
}

/** Longer than any test: what happens within it does not wait for its end. */
const LONG_MS = 600_000
const CLAIMS = 1_000
const SESSIONS = 50

const next = <E extends keyof ClusterEvents & string>({ storage }: TestNode, event: E): Promise<ClusterEvents[E]> =>
  new Promise((resolve) => {
    const off = storage.cluster.on(event, (payload) => {
      off()
      resolve(payload)
    })
  })

/** Takes over what others leave, as every gateway does. */
function takes({ storage }: TestNode): Taken[] {
  const taken: Taken[] = []
  storage.cluster.on('taken', (one) => taken.push(one))
  return taken
}

/** From then on it takes over, too. @returns what it took with that session */
const tookOver = ({ storage }: TestNode, sessionId: string): Promise<Taken> =>
  new Promise((resolve) => {
    storage.cluster.on('taken', (taken) => {
      if (taken.sessionIds.includes(sessionId)) resolve(taken)
    })
  })

const key = { key: 'k', fingerprint: 'f', made: { kind: 'session', id: 'one', location: '/v1/sessions/one' } } as const

/** One thing of each kind, all of them this node's. */
async function fill({ storage }: TestNode): Promise<void> {
  await storage.queue.add(jobOf('job'))
  await storage.queue.claimNext()
  await Promise.all([
    storage.journal.write({ ...sessionOf('one'), events: [{ seq: 1, json: '{"seq":1}' }], keys: [key] }),
    storage.outbox.add({ id: 'd', lane: 'lane', delivery: {} }),
  ])
}

const pieceOf = (path: string, offset: number, text: string): [CarriedPiece, Buffer] => {
  const bytes = Buffer.from(text)
  return [{ path, offset, length: bytes.length, digest: `of ${text.length}` }, bytes]
}

const ALL = { sessionIds: ['one'], jobIds: ['job'], lanes: ['lane'], keys: ['k'] }

/** That it is there, once, and this node's. */
async function hasAll({ storage }: TestNode): Promise<void> {
  const { n } = storage.cluster
  assert.equal((await storage.cluster.placeOfSession('one'))?.owner?.n, n)
  assert.equal((await storage.cluster.placeOfJob('job'))?.owner?.n, n)
  assert.deepEqual(
    (await storage.journal.awake!()).map(({ id }) => id),
    ['one'],
  )
  assert.deepEqual(await storage.outbox.list(), [{ id: 'd', lane: 'lane', delivery: {} }])
  assert.deepEqual(await storage.idempotency.left!(), [key])
}

/** For authors of storages with `cluster`: run every case on a cluster that is empty, besides all other suites on one node of it. */
export const clusterConformance: readonly ClusterCase[] = [
  {
    name: 'gives a session that nobody has to one of those that claim it',
    async run(world) {
      const nodes = await Promise.all(['a', 'b', 'c'].map((name) => world.node(name, LONG_MS)))
      const ids = Array.from({ length: SESSIONS }, (_, index) => `s${index}`)
      const [{ storage }] = nodes as [TestNode]
      await Promise.all(ids.map((id) => storage.journal.write(sessionOf(id))))
      await storage.cluster.release(ids)
      assert.equal((await storage.cluster.placeOfSession('s0'))?.owner, undefined)
      const claims = Array.from({ length: CLAIMS }, async (_, index) => {
        const id = ids[index % SESSIONS]!
        const place = await nodes[index % nodes.length]!.storage.cluster.claim(id)
        return [id, place?.owner?.n] as const
      })
      const owners = new Map<string, Set<number | undefined>>(ids.map((id) => [id, new Set()]))
      for (const [id, owner] of await Promise.all(claims)) owners.get(id)!.add(owner)
      const living = nodes.map((node) => node.storage.cluster.n)
      for (const [id, found] of owners) {
        assert.equal(found.size, 1, id)
        assert.ok(living.includes([...found][0]!))
      }
      assert.equal(await storage.cluster.claim('nobody'), undefined)
    },
  },
  {
    name: 'shows every node what one has, and whose it is',
    async run(world) {
      const [a, b] = [await world.node('a', LONG_MS), await world.node('b', LONG_MS)]
      await fill(a)
      await hasAll(a)
      const { n } = a.storage.cluster
      assert.deepEqual(
        b.storage.cluster.nodes().map(({ name }) => name),
        ['a', 'b'],
      )
      assert.equal((await b.storage.cluster.claim('one'))?.owner?.n, n)
      assert.equal((await b.storage.cluster.placeOfJob('job'))?.owner?.n, n)
      const page = await b.storage.journal.listed!({ limit: 9 })
      assert.deepEqual(
        page.sessions.map(({ id, owner, lastSeq }) => ({ id, owner, lastSeq })),
        [{ id: 'one', owner: n, lastSeq: 1 }],
      )
      assert.deepEqual(await b.storage.journal.awake!(), [])
      assert.deepEqual(await b.storage.outbox.list(), [])
      assert.deepEqual(await b.storage.idempotency.left!(), [])
    },
  },
  {
    name: 'leaves jobs to the nodes that have their profile, as long as there is one',
    async run(world) {
      const has = await world.node('has', LONG_MS, ['one'])
      const lacks = await world.node('lacks', LONG_MS, ['other'])
      const of = (id: string, profile: string) => {
        const { info, request } = jobOf(id)
        return { request, info: { ...info, profile } }
      }
      const claimed = async ({ storage }: TestNode, limit = 9) =>
        (await storage.queue.claim!(limit)).jobs.map(({ info }) => info.id)
      for (const job of [of('a', 'one'), of('b', 'one'), of('c', 'of nobody')]) await has.storage.queue.add(job)
      assert.deepEqual(await claimed(lacks), ['c'], 'what nobody has is claimed by somebody, who says so')
      assert.deepEqual(await claimed(has, 1), ['a'])
      await has.storage.cluster.drain()
      assert.deepEqual(await claimed(lacks), [], 'it is still there')
      await has.storage.close()
      assert.deepEqual(await claimed(lacks), ['b'])
    },
  },
  {
    name: 'leaves sessions and jobs of a node that is gone to those that have their profile, as long as there is one',
    async run(world) {
      const gone = await world.node('gone', LONG_MS, ['one'])
      const lacks = await world.node('lacks', LONG_MS, ['other'])
      const has = await world.node('has', LONG_MS, ['one'])
      const session = (id: string, profile: string) => {
        const { origin, ...first } = sessionOf(id)
        return gone.storage.journal.write({ ...first, origin: { ...origin!, profile } })
      }
      await Promise.all([session('a', 'one'), session('b', 'of nobody')])
      await gone.storage.queue.add(jobOf('job'))
      await gone.storage.queue.claimNext()
      const ownerOf = async (id: string) => (await lacks.storage.cluster.placeOfSession(id))?.owner?.name
      const [first, other] = [tookOver(lacks, 'b'), tookOver(lacks, 'a')]
      // it comes second
      has.cut()
      await gone.storage.close()
      await first
      assert.deepEqual([await ownerOf('a'), await ownerOf('b')], [undefined, 'lacks'])
      const told = tookOver(has, 'a')
      has.reconnect()
      const second = await told
      assert.deepEqual(second, { ...second, sessionIds: ['a'], jobIds: ['job'] })
      assert.equal((await lacks.storage.cluster.placeOfJob('job'))?.owner?.name, 'has')
      await has.storage.close()
      assert.deepEqual((await other).jobIds, ['job'], 'what no living node has')
    },
  },
  {
    name: 'lists all sessions by status and profile, the newest first, in pages',
    async run(world) {
      const nodes = [await world.node('a', LONG_MS), await world.node('b', LONG_MS)] as const
      for (let order = 1; order <= 6; order++) {
        const { state, ...first } = sessionOf(`s${order}`)
        const status = order % 3 === 0 ? ('closed' as const) : ('idle' as const)
        const write = { ...first, state: { info: { ...state.info, status }, order: order * 1_000 } }
        await nodes[order % 2]!.storage.journal.write(write)
      }
      const { journal } = nodes[0].storage
      const listed = async (query: Parameters<typeof journal.listed & {}>[0]) => {
        const { sessions, next } = await journal.listed!(query)
        return [sessions.map(({ id }) => id), next]
      }
      assert.deepEqual(await listed({ limit: 4 }), [['s6', 's5', 's4', 's3'], 3_000])
      assert.deepEqual(await listed({ limit: 4, before: 3_000 }), [['s2', 's1'], undefined])
      assert.deepEqual(await listed({ limit: 9, status: 'closed' }), [['s6', 's3'], undefined])
      const { profile, engine } = sessionOf('any').state.info
      assert.deepEqual(await listed({ limit: 9, profiles: ['other'] }), [[], undefined])
      assert.deepEqual(await listed({ limit: 9, profiles: ['other', profile] }), [
        ['s6', 's5', 's4', 's3', 's2', 's1'],
        undefined,
      ])
      const idle = { status: 'idle', profiles: [profile], engine } as const
      assert.deepEqual(await listed({ ...idle, limit: 2, before: 5_000 }), [['s4', 's2'], 2_000])
      assert.deepEqual(await listed({ ...idle, limit: 2, before: 2_000 }), [['s1'], undefined])
      assert.deepEqual(await listed({ limit: 9, engine: 'cli', status: 'idle' }), [[], undefined])
    },
  },
  {
    name: 'refuses a second node of a name while the first is alive, and lets it follow one that is gone',
    async run(world) {
      const a = await world.node('a')
      await a.storage.journal.write(sessionOf('one'))
      await assert.rejects(world.node('a'), { code: 'STORAGE_HELD' })
      await a.storage.journal.write({ ...sessionOf('two') })
      assert.equal(a.storage.cluster.state, 'serving')
      a.cut()
      const again = await world.node('a')
      assert.notEqual(again.storage.cluster.n, a.storage.cluster.n)
    },
  },
  {
    name: 'gives at once to another what a node had that left',
    async run(world) {
      const [a, b] = [await world.node('a', LONG_MS), await world.node('b', LONG_MS)]
      await fill(a)
      const { n } = a.storage.cluster
      const taken = takes(b)
      const told = next(b, 'taken')
      await a.storage.close()
      await told
      assert.deepEqual(taken, [{ from: { n, name: 'a' }, ...ALL }])
      await hasAll(b)
    },
  },
  {
    name: 'gives what nobody has to the next that joins',
    async run(world) {
      const a = await world.node('a', LONG_MS)
      await fill(a)
      await a.storage.close()
      await hasAll(await world.node('b', LONG_MS))
    },
  },
  {
    name: 'is frozen when it cannot renew its lease, and goes on when it can while nobody declared it dead',
    async run(world) {
      const a = await world.node('a')
      await a.storage.journal.write(sessionOf('one'))
      const { n } = a.storage.cluster
      const frozen = next(a, 'frozen')
      const thawed = next(a, 'thawed')
      a.cut()
      await frozen
      assert.equal(a.storage.cluster.state, 'frozen')
      await assert.rejects(a.storage.journal.write(sessionOf('two')))
      a.reconnect()
      await thawed
      assert.equal(a.storage.cluster.n, n)
      for (;;) {
        const isDone = await a.storage.journal.write(sessionOf('two')).then(
          () => true,
          () => false,
        )
        if (isDone) break
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      assert.equal((await a.storage.journal.awake!()).length, 2)
    },
  },
  {
    name: 'keeps files of agents for every node, piece by piece, until their session is removed',
    async run(world) {
      const [a, b] = (await Promise.all(['a', 'b'].map((name) => world.node(name, LONG_MS)))) as [TestNode, TestNode]
      await Promise.all(['one', 'two'].map((id) => a.storage.journal.write(sessionOf(id))))
      const [mine, theirs] = [a.storage.cluster.carried, b.storage.cluster.carried]
      const long = 'long '.repeat(100_000)
      await mine.write('one', ...pieceOf('p/é.jsonl', 0, 'first\n'))
      await mine.write('one', ...pieceOf('p/é.jsonl', 6, long))
      await mine.write('one', ...pieceOf('p/b', 0, '\0\xff'))
      await mine.write('two', ...pieceOf('p/b', 0, 'of another'))
      await mine.write('nobody', ...pieceOf('p/b', 0, 'of nobody'))
      const kept = async (id: string) => (await theirs.pieces(id)).map(({ path, offset }) => [path, offset])
      assert.deepEqual(await theirs.pieces('one'), [
        pieceOf('p/b', 0, '\0\xff')[0],
        pieceOf('p/é.jsonl', 0, 'first\n')[0],
        pieceOf('p/é.jsonl', 6, long)[0],
      ])
      assert.equal(String(await theirs.read('one', 'p/é.jsonl', 6)), long)
      assert.deepEqual(await theirs.read('one', 'p/b', 0), Buffer.from('\0\xff'))
      assert.equal(await theirs.read('one', 'p/b', 1), undefined)
      assert.equal(await theirs.read('nobody', 'p/b', 0), undefined)
      await mine.write('one', ...pieceOf('p/é.jsonl', 6, 'again'))
      await mine.write('one', ...pieceOf('p/é.jsonl', 0, 'all new'))
      assert.deepEqual(await kept('one'), [
        ['p/b', 0],
        ['p/é.jsonl', 0],
      ])
      assert.equal(String(await theirs.read('one', 'p/é.jsonl', 0)), 'all new')
      await a.storage.journal.remove('one')
      assert.deepEqual(await kept('one'), [])
      assert.deepEqual(await kept('two'), [['p/b', 0]])
    },
  },
  {
    name: 'gives all that a silent node had to exactly one other, once, and refuses whatever that node asks for after it',
    async run(world) {
      const nodes = await Promise.all(['a', 'b', 'c'].map((name) => world.node(name)))
      const [a, b, c] = nodes as [TestNode, TestNode, TestNode]
      await a.storage.idempotency.begin('k', 'f')
      await fill(a)
      const { n } = a.storage.cluster
      const found = [takes(b), takes(c)]
      const states: string[] = []
      a.storage.cluster.on('frozen', () => states.push('frozen'))
      a.storage.cluster.on('lost', () => states.push('lost'))
      const lost = next(a, 'lost')
      const taken = Promise.race([next(b, 'taken'), next(c, 'taken')])
      a.cut()
      await taken
      assert.deepEqual(states, ['frozen'], 'it had stopped before')
      const [taker, other] = found[0]!.length > 0 ? [b, c] : [c, b]
      await hasAll(taker)
      assert.deepEqual(await other.storage.journal.awake!(), [])
      a.reconnect()
      await lost
      assert.equal(a.storage.cluster.state, 'out')
      const { journal, queue, outbox, idempotency, cluster } = a.storage
      const asked = [
        journal.write({ id: 'one', events: [{ seq: 2, json: '{"seq":2}' }] }),
        journal.write(sessionOf('two')),
        journal.remove('one'),
        queue.add(jobOf('another')),
        queue.claimNext(),
        queue.update('job', { status: 'succeeded', finishedAt: 1 }, 'running'),
        ...(queue.settle
          ? [queue.settle('job', { status: 'failed' }, { day: '2026-01-01', tokens: 7 }, 'running')]
          : []),
        outbox.add({ id: 'late', lane: 'lane', delivery: {} }),
        outbox.remove('lane', 'd'),
        idempotency.complete('k', { status: 201, headers: {}, body: 'late' }),
        idempotency.release('k'),
        cluster.release(['one']),
        cluster.claim('one'),
        cluster.carried.write('one', ...pieceOf('a.jsonl', 0, 'late')),
      ]
      for (const [index, refused] of (await Promise.allSettled(asked)).entries())
        assert.equal(
          refused.status === 'rejected' && refused.reason.code,
          'STORAGE_FENCED',
          `the ${index + 1}th is done`,
        )
      await hasAll(taker)
      assert.deepEqual(await taker.storage.cluster.carried.pieces('one'), [])
      assert.equal((await taker.storage.queue.get('job'))?.info.status, 'running')
      assert.equal((await taker.storage.journal.get('one'))?.lastSeq, 1)
      await taker.storage.journal.write({ id: 'one', events: [{ seq: 2, json: '{"seq":2}' }] })
      assert.deepEqual(found.flat(), [{ from: { n, name: 'a' }, ...ALL }])
    },
  },
]
