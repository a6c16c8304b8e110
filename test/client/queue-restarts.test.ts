import t from 'tap'
import WebSocket from 'ws'
import { type Client, createClient, type JobInfo, type JobStatus, type QueueStats } from '../../client/index.js'
import { until } from '../fixtures/build.js'
import { ChaosProxy, type Mood } from '../fixtures/chaos-proxy.js'
import { mortalDaemon, TOKEN } from '../fixtures/daemon-process.js'
import { rounds } from '../fixtures/rounds.js'

const KILLS = rounds(1, 10)
const HANGS = '@@[{"hang":true}]@@'

/** What a board would show: the jobs as they are listed at every beginning, and what is told of them after it. */
function board(baseUrl: string, options: object) {
  const client = createClient({ baseUrl, token: TOKEN, ...options })
  const following = client.queue.watch()
  const jobs = new Map<string, JobInfo>()
  const shown = {
    client,
    following,
    stats: undefined as QueueStats | undefined,
    attaches: 0,
    transports: new Set<string>(),
    statuses: () => Object.fromEntries([...jobs].map(([id, { status }]) => [id, status])),
  }
  following.onConnection((connection) => connection.state === 'live' && shown.transports.add(connection.transport))
  const over = (async () => {
    for await (const frame of following) {
      if ('stats' in frame) shown.stats = frame.stats
      if (frame.type === 'job_event') jobs.set(frame.event.job.id, frame.event.job)
      if (frame.type !== 'queue_attached') continue
      shown.attaches++
      // the gateway may be gone again: then there is another beginning
      const listed = await client.jobs
        .list()
        .toArray()
        .catch(() => [])
      for (const job of listed) jobs.set(job.id, job)
    }
  })()
  return Object.assign(shown, { over })
}

/** A message that was not begun when its gateway was killed goes on by itself, and its job with it. */
async function begun(client: Client, jobId: string) {
  const sessionOf = async () => (await client.jobs.get(jobId)).sessionId
  await until(async () => (await sessionOf()) !== undefined, 'the session of a job that will be cut off')
  for await (const event of client.session((await sessionOf())!).attach())
    if (event.type === 'status_changed' && event.status === 'running') break
}

t.test(`a queue whose gateway is killed ${KILLS} times, behind proxies that cut`, async (t) => {
  const world = await mortalDaemon(t, { queue: { maxConcurrency: 2 } })
  const paths: [name: string, mood: Mood, options: object][] = [
    ['sockets', 'cuts', { WebSocket }],
    ['upgrades blocked', 'blocks upgrades', { WebSocket }],
    ['upgrades lost', 'hides upgrades', { WebSocket }],
  ]
  const watchers = await Promise.all(
    paths.map(async ([name, mood, options]) => {
      const proxy = await ChaosProxy.start(t, mood, Math.random)
      proxy.target = world.port
      const baseUrl = `${proxy.origin}/v1`
      return { name, mood, proxy, board: board(baseUrl, options) }
    }),
  )
  const submit = (prompt: string, more: object = {}) =>
    world.client.jobs.submit({ session: { cwd: world.work, profile: 'demo', prompt }, ...more })
  const waits: { job: JobInfo; expected: JobStatus; ends: Promise<JobInfo>[] }[] = []
  const waitFor = (job: JobInfo, expected: JobStatus) => {
    const ends = watchers.map(({ board }) => board.client.jobs.wait(job.id))
    for (const end of ends) end.catch(() => {})
    waits.push({ job, expected, ends })
  }
  for (let kills = 0; kills < KILLS; kills++) {
    // both run when it is killed: that was their only attempt
    const cutOff = [await submit(HANGS), await submit(HANGS)]
    for (const job of cutOff) waitFor(job, 'failed')
    // waits for its turn, which comes after the kill
    waitFor(await submit('hello'), 'succeeded')
    const unwanted = await submit(HANGS, { priority: -1 })
    waitFor(unwanted, 'canceled')
    for (const job of cutOff) await begun(world.client, job.id)
    await until(() => watchers.every(({ board }) => board.attaches > kills), 'a beginning for everybody')
    for (const { proxy } of watchers) proxy.target = undefined
    await world.restart()
    await world.client.jobs.cancel(unwanted.id)
    for (const { proxy } of watchers) proxy.target = world.port
    for (const { job, expected, ends } of waits.splice(0))
      for (const [index, end] of ends.entries())
        t.match(await end, { id: job.id, status: expected }, `${watchers[index]!.name}: ${expected}`)
  }
  const truth = Object.fromEntries((await world.client.jobs.list().toArray()).map(({ id, status }) => [id, status]))
  const stats = await world.client.queue.stats()
  for (const { name, mood, board, proxy } of watchers) {
    const isTrue = () =>
      JSON.stringify(Object.entries(board.statuses()).sort()) === JSON.stringify(Object.entries(truth).sort()) &&
      JSON.stringify(board.stats) === JSON.stringify(stats)
    await until(isTrue, `the truth behind ${name}: ${JSON.stringify(truth)}`)
    t.ok(board.attaches > KILLS, `${name}: ${board.attaches} beginnings`)
    if (mood !== 'cuts') t.strictSame([...board.transports], ['event-stream'], name)
    t.comment(name, proxy.counts)
    board.following.close()
    await board.over
  }
})
