import t from 'tap'
import WebSocket from 'ws'
import { createClient, type InboxCount, type SessionNotification } from '../../client/index.js'
import { until } from '../fixtures/build.js'
import { ChaosProxy, type Mood } from '../fixtures/chaos-proxy.js'
import { mortalDaemon, TOKEN } from '../fixtures/daemon-process.js'
import { ASKS } from '../fixtures/demo.js'
import { rounds } from '../fixtures/rounds.js'

const KILLS = rounds(3, 20)

/** What an application would have of the feed. */
function reader(baseUrl: string, after: string, options: object) {
  const following = createClient({ baseUrl, token: TOKEN, ...options }).notifications.watch({ after })
  const read = {
    following,
    told: [] as SessionNotification[],
    inbox: undefined as InboxCount | undefined,
    gaps: 0,
    transports: new Set<string>(),
    attaches: 0,
    /** Whether it has found the gateway since that was started. */
    isBack: false,
  }
  following.onConnection((connection) => {
    if (connection.state !== 'live') return
    read.attaches++
    read.isBack = true
    read.transports.add(connection.transport)
  })
  const over = (async () => {
    for await (const item of following)
      if (item.type === 'notification') read.told.push(item.notification)
      else if (item.type === 'inbox') read.inbox = item.inbox
      else read.gaps++
  })()
  return Object.assign(read, { over })
}

t.test(`notifications of a gateway that is killed ${KILLS} times, behind proxies that cut`, async (t) => {
  const world = await mortalDaemon(t)
  const paths: [name: string, mood: Mood][] = [
    ['sockets', 'cuts'],
    ['upgrades blocked', 'blocks upgrades'],
    ['upgrades lost', 'hides upgrades'],
  ]
  await world.client.sessions.create({ cwd: world.work, profile: 'demo', prompt: 'hello' })
  const newest = () => world.client.notifications.list({ limit: 1 }).toArray()
  await until(async () => (await newest()).length > 0, 'the first notification')
  const after = (await newest())[0]!.id
  const readers = await Promise.all(
    paths.map(async ([name, mood]) => {
      const proxy = await ChaosProxy.start(t, mood, Math.random)
      proxy.target = world.port
      return { name, mood, proxy, reader: reader(`${proxy.origin}/v1`, after, { WebSocket }) }
    }),
  )
  for (let kills = 0; kills < KILLS; kills++) {
    await until(() => readers.every(({ reader }) => reader.isBack), 'a beginning for everybody')
    const { client } = world
    const killed = new AbortController()
    const { signal } = killed
    const act = async (prompt: string) => {
      await client.sessions.create({ cwd: world.work, profile: 'demo', prompt, approvalTimeoutMs: 0 }, { signal })
      const [item] = Math.random() < 0.5 ? await client.inbox.list({ limit: 1, signal }).toArray() : []
      if (!item) return
      await client.inbox.answer([{ sessionId: item.session.id, requestId: item.request.id, answer: 'deny' }], {
        signal,
      })
    }
    // what is cut off by the kill is nobody's to wait for
    const acts = Promise.allSettled(['hello', ASKS, ASKS, 'hello', ASKS].map(act))
    await client.inbox.count()
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 400))
    for (const { proxy } of readers) proxy.target = undefined
    killed.abort()
    await world.restart()
    for (const { proxy, reader } of readers) {
      reader.isBack = false
      proxy.target = world.port
    }
    await acts
  }
  const { client } = world
  await client.sessions.create({ cwd: world.work, profile: 'demo', prompt: 'the last one' })
  const isLast = ({ type, session }: SessionNotification) =>
    type === 'turn_completed' && session.title === 'the last one'
  let truth: SessionNotification[] = []
  await until(async () => {
    truth = await client.notifications.list({ after }).toArray()
    return truth.some(isLast)
  }, 'the last turn')
  const inbox = await client.inbox.count()
  for (const { name, mood, reader, proxy } of readers) {
    await until(() => reader.told.some(isLast), `${name}: the last one`)
    t.same(
      reader.told.map(({ id }) => id),
      truth.map(({ id }) => id),
      `${name}: every notification once, in order`,
    )
    t.equal(reader.gaps, 0)
    await until(() => JSON.stringify(reader.inbox) === JSON.stringify(inbox), `${name}: what waits`)
    t.ok(reader.attaches > KILLS, `${name}: ${reader.attaches} beginnings, ${reader.told.length} notifications`)
    if (mood !== 'cuts') t.strictSame([...reader.transports], ['event-stream'], name)
    t.comment(name, proxy.counts)
    reader.following.close()
    await reader.over
  }
})
