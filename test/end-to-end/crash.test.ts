import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../fixtures/build.js'
import { CrashLoad } from '../fixtures/crash-load.js'
import { type Call, CrashOracle } from '../fixtures/crash-oracle.js'
import { DEMO, runDaemon } from '../fixtures/daemon-process.js'
import { rounds } from '../fixtures/rounds.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

const ROUNDS = Number(process.env.CRASH_ROUNDS ?? rounds(3, 25))
const CLIENTS = 4
const SHORTEST_MS = 100
const LONGEST_MS = 600

t.test(`a daemon that is killed ${ROUNDS} times under load loses nothing that it confirmed`, async (t) => {
  const sink = await WebhookSink.start(t)
  const cwd = t.testdir({ work: {} })
  const config = {
    listen: { port: 0 },
    allowUnauthenticated: true,
    allowedCwdRoots: ['work'],
    profiles: [DEMO],
    queue: { maxConcurrency: 20, webhookAttempts: 2, webhookRetryDelayMs: 1 },
    webhookPolicy: { allowPrivateNetworks: true },
    executions: { tools: [{ name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }] },
    log: { level: 'warn', pretty: false },
  }
  writeFileSync(join(cwd, 'gateway.json'), JSON.stringify(config), { mode: 0o600 })
  const options = { cwd: join(cwd, 'work'), webhook: sink.url }

  const start = async () => {
    const daemon = runDaemon(t, ['--log-level', 'info'], { cwd })
    const url = String((await daemon.logged('listening')).url)
    const call: Call = async (method, path, body, headers = {}) => {
      const answer = await fetch(url + path, {
        method,
        headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
        ...(body && { body: JSON.stringify(body) }),
      })
      if (answer.status >= 500 && answer.status !== 503) oracle.faults.push(`${method} ${path}: ${answer.status}`)
      return { status: answer.status, json: await answer.json(), link: answer.headers.get('link') }
    }
    oracle.call = call
    return daemon
  }
  const oracle = new CrashOracle(() => Promise.reject(new TypeError('not started')))

  for (let round = 1; round <= ROUNDS; round++) {
    const daemon = await start()
    await oracle.askAgain()
    await oracle.check(100)
    const load = new CrashLoad(oracle, options, Math.random)
    // the first session of a process loads the engine, and what is killed before that has done nothing
    await load.warmUp()
    const clients = Array.from({ length: CLIENTS }, () => load.run())
    await new Promise((resolve) => setTimeout(resolve, SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS)))
    daemon.child.kill('SIGKILL')
    await Promise.all([...clients, daemon.exited])
    t.same(oracle.faults, [], `round ${round}`)
    if (oracle.faults.length > 0) return
  }

  const daemon = await start()
  await oracle.askAgain()
  const parked = async () => (await oracle.call('GET', '/sessions?status=parked&limit=200')).json as Parked[]
  const answerAll = async () => {
    for (const { id, parked: waits } of await parked()) {
      for (const { executionId } of waits.executions) {
        const result = { status: 'failed', reason: 'test', error: 'The test is over.' }
        await oracle.call('POST', `/executions/${executionId}/result`, result)
      }
      for (const request of waits.permissions ?? [])
        await oracle.call('POST', `/sessions/${id}/permissions/${request.id}`, { behavior: 'deny' })
    }
  }
  await until(async () => {
    // it has better things to do than to answer us
    await new Promise((resolve) => setTimeout(resolve, 500))
    await answerAll()
    const openJobs = await oracle.checkOpenJobs()
    return oracle.faults.length > 0 || (openJobs === 0 && (await parked()).length === 0)
  }, 'the wake of every parked session and the end of every job')
  await oracle.checkSettled()
  await oracle.checkMadeOnce()
  t.same(oracle.faults, [], 'every job has ended, every result has arrived, and nothing was made twice')
  const completions = () => {
    const byJob = new Map([...oracle.jobs.keys()].map((id) => [id, new Set<string>()]))
    for (const { body } of sink.received) if (body.type === 'job_completed') byJob.get(body.job.id)?.add(body.id)
    return byJob
  }
  const ofJobs = (told: number) => [...completions()].flatMap(([id, { size }]) => (size === told ? id : []))
  await until(() => ofJobs(0).length === 0, 'the completion of every job').catch(() => t.same(ofJobs(0), []))
  t.equal(ofJobs(1).length, oracle.jobs.size, 'every job was completed once')
  t.comment(`${oracle.sessions.size} sessions, ${oracle.jobs.size} jobs`)
  daemon.child.kill('SIGTERM')
  t.match(await daemon.exited, { code: 0 })
})

interface Parked {
  id: string
  parked: { executions: { executionId: string }[]; permissions?: { id: string }[] }
}
