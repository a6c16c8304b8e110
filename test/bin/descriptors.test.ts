import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket } from 'ws'
import { problemOf } from '../../bin/terminal/exit.js'
import { until } from '../fixtures/build.js'
import { runDaemon, startDaemon, TOKEN } from '../fixtures/daemon-process.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

const LOW =
  'the limit of file descriptors is low; raise it for many clients: LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 before the start'
const headers = { authorization: `Bearer ${TOKEN}` }
const skip = process.platform !== 'linux' && 'the limit is read from /proc'

/** Opens a socket: itself, or what refused it. */
const open = (url: string) =>
  new Promise<WebSocket | { status: number; retryAfter: string | undefined; code: string }>((resolve, reject) => {
    const socket = new WebSocket(url, { headers })
    socket.once('open', () => resolve(socket))
    socket.once('error', reject)
    socket.once('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () =>
        resolve({
          status: response.statusCode!,
          retryAfter: response.headers['retry-after'],
          code: JSON.parse(Buffer.concat(chunks).toString()).code,
        }),
      )
    })
  })

t.test(
  'many clients leave a process with few descriptors on the net, and its webhooks working',
  { skip },
  async (t) => {
    const sink = await WebhookSink.start(t)
    const { daemon, cwd, url, call, createSession } = await startDaemon(
      t,
      { queue: {}, webhookPolicy: { allowPrivateNetworks: true } },
      { ulimit: '-n 256' },
    )
    t.match(await daemon.logged(LOW), { descriptors: 256 })
    const { id } = await createSession('hello')
    const sockets: WebSocket[] = []
    t.teardown(() => {
      for (const socket of sockets) socket.terminate()
    })
    const address = `${url.replace('http', 'ws')}/sessions/${id}/ws`
    let refused: unknown
    for (let n = 0; n < 300 && refused === undefined; n++) {
      const opened = await open(address)
      if (opened instanceof WebSocket) sockets.push(opened)
      else refused = opened
    }
    t.same(refused, { status: 503, retryAfter: '5', code: 'SG_ERR_TOO_MANY_CONNECTIONS' })
    t.ok(sockets.length >= 100, `${sockets.length} sockets fit`)
    t.match(await open(address), { status: 503 })
    t.equal((await call('/queue/events', undefined, { ...headers, accept: 'text/event-stream' })).status, 503)
    t.equal((await fetch(`${new URL(url).origin}/healthz`)).status, 200)
    const job = {
      session: { profile: 'demo', cwd: join(cwd, 'work'), prompt: 'hello', permissionMode: 'dontAsk' },
      webhook: { url: sink.url, progress: 'completion' },
    }
    t.equal((await call('/jobs', job)).status, 201)
    await until(() => sink.received.some(({ body }) => body.type === 'job_completed'))
    // a place that is given back is another's
    sockets[0]!.terminate()
    await until(async () => {
      const opened = await open(address)
      if (opened instanceof WebSocket) sockets.push(opened)
      return opened instanceof WebSocket
    })
    t.pass('once one has gone the next one is let in')
  },
)

t.test('the soft limit is raised to the hard one by itself, and doctor says what it is', { skip }, async (t) => {
  const { daemon, cwd } = await startDaemon(t, {}, { ulimit: '-Sn 256' })
  const [, soft, hard] = /^Max open files +(\w+) +(\w+)/m.exec(
    readFileSync(`/proc/${daemon.child.pid}/limits`, 'utf8'),
  )!
  t.equal(soft, hard)
  const low = runDaemon(t, ['doctor'], { cwd, ulimit: '-n 300' })
  t.match(await low.exited, { code: 0 }, low.stderr)
  t.match(low.stdout, /descriptors +300 \(hard limit 300\)/)
  t.match(low.stdout, /low: .*LimitNOFILE=65536/)
})

t.test('a limit that is too low to load the program is told with what to do', async (t) => {
  // how low that is depends on how many files it consists of, as bundled and by npm
  const error = Object.assign(new Error("EMFILE: too many open files, open '/of/the/program.js'"), { code: 'EMFILE' })
  t.match(problemOf(error), /too low .*LimitNOFILE=65536.*ulimit -n 65536/)
  const missing = Object.assign(new Error("Cannot find package '/of/it'"), { code: 'ERR_MODULE_NOT_FOUND' })
  t.match(
    problemOf(missing, { soft: 150, hard: 150 }),
    /too low .*ulimit -n 65536/,
    'the loader says so of one it cannot open',
  )
  t.equal(problemOf(missing, { soft: 1024, hard: 1024 }), missing.message)
})
