import { existsSync, mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { JobEvent, JobInfo } from '../../schemas/jobs.js'
import { cliEngine } from '../../src/engines/cli/index.js'
import { createWorkerServer } from '../../src/server.js'
import { processesOf, whenGone } from '../fixtures/processes.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'
import { AGENTS, CLAUDE_SDK } from './installed.js'
import { script, startVendors } from './vendors.js'

const { claude } = AGENTS

/** A queue whose jobs run on the real agent, against vendors on loopback. */
async function build(t: Test) {
  const vendors = await startVendors(t)
  const sink = await WebhookSink.start(t)
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'claude-jobs-')))
  const cwd = join(home, 'work')
  for (const folder of [cwd, join(home, 'claude')]) mkdirSync(folder)
  const env = { PATH: process.env.PATH!, HOME: home, ...claude.env(home, vendors.url) }
  const worker = createWorkerServer(
    { allowUnauthenticated: true, profiles: [{ name: 'claude', engine: 'cli', agent: 'claude' }], queue: {} },
    { createCliRunner: cliEngine({ claudeSdk: CLAUDE_SDK, env, maxConcurrentStarts: 1 }), env: {} },
  )
  t.teardown(() => worker.close())
  const { url } = await worker.listen(0)
  const call = async <T = JobInfo>(method: string, path: string, body?: object) => {
    const json = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(`${url}/v1${path}`, { method, ...json })
    return { status: response.status, json: (await response.json()) as T }
  }
  const submit = async (prompt: string, more: object = {}) => {
    const { status, json } = await call('POST', '/jobs', {
      session: { cwd, prompt },
      webhook: { url: sink.url },
      ...more,
    })
    t.equal(status, 201)
    return json.id
  }
  /** The first delivery of that kind; the test's own timeout is the limit. */
  const told = async (matches: (event: JobEvent) => boolean): Promise<JobEvent> => {
    for (;;) {
      const event = sink.received.map(({ body }) => body as JobEvent).find(matches)
      if (event) return event
      await sleep(10)
    }
  }
  const ended = () => told(({ type }) => type === 'job_completed')
  return { cwd, sink, call, submit, told, ended }
}

t.test('jobs on a real command-line agent', { skip: claude.missing ?? false }, async (t) => {
  t.test('a permission is approved from the webhook’s consumer, and the job completes', async (t) => {
    const { cwd, sink, call, submit, ended } = await build(t)
    const made = join(cwd, 'made.txt')
    let madeBefore: boolean | undefined
    let pids: number[] = []
    sink.answer = ({ body }: { body: JobEvent }, response) => {
      response.writeHead(202).end()
      const { progress, job } = body
      if (progress?.kind !== 'permission_requested') return
      madeBefore = existsSync(made)
      pids = processesOf(job.sessionId)
      void call('POST', `/sessions/${job.sessionId}/permissions/${progress.request!.id}`, { behavior: 'allow' })
    }
    const id = await submit(
      script({ text: 'let me see', ...claude.shell('echo made > made.txt') }, { text: 'all done' }),
    )
    await ended()
    t.equal(madeBefore, false, 'nothing ran before it was allowed')
    t.ok(existsSync(made), 'what was allowed has run')
    const { json: job } = await call('GET', `/jobs/${id}`)
    t.match(job, { status: 'succeeded', attempt: 1, result: { subtype: 'success', isError: false, text: /all done/ } })
    t.ok(job.usage.outputTokens >= 100 && job.usage.inputTokens > 0, `two calls: ${JSON.stringify(job.usage)}`)
    t.equal((await call<{ dailyTokensUsed: number }>('GET', '/queue')).json.dailyTokensUsed, job.usage.tokens)

    const told = sink.received.map(({ body }) => body as JobEvent)
    t.ok(told.every((event) => event.job.id === id))
    t.equal(new Set(told.map((event) => event.id)).size, told.length, 'each event was delivered once')
    const story: string[] = told.map(({ type, progress }) => progress?.kind ?? type)
    t.equal(story[0], 'job_started')
    t.equal(story.at(-1), 'job_completed')
    const order = ['job_started', 'assistant_text', 'permission_requested', 'permission_resolved', 'job_completed']
    const places = order.map((kind) => story.indexOf(kind))
    t.same(
      places,
      [...places].sort((a, b) => a - b),
      `in the order in which it happened: ${story}`,
    )
    t.notOk(places.includes(-1), `nothing is missing: ${story}`)
    t.same(told.at(-1)?.job, job)

    t.ok(pids.length > 0)
    for (const pid of pids) await whenGone(pid)
    t.strictSame(processesOf(job.sessionId), [], 'no process is left')
    t.match((await call('GET', `/sessions/${job.sessionId}`)).json, { status: 'closed', jobId: id })
  })

  t.test('a vendor that refuses is a failed attempt, which is repeated in a session of its own', async (t) => {
    const { sink, call, submit, ended } = await build(t)
    const id = await submit(script({ status: 400 }), { attempts: 2, retryDelayMs: 0 })
    await ended()
    const { json: job } = await call('GET', `/jobs/${id}`)
    t.match(job, { status: 'failed', attempt: 2, error: /400|scripted/, result: { isError: true } })
    const lifecycle = sink.received.map(({ body }) => body as JobEvent).filter(({ type }) => type !== 'job_progress')
    t.same(
      lifecycle.map(({ type }) => type),
      ['job_started', 'job_retrying', 'job_started', 'job_completed'],
    )
    const sessions = new Set(lifecycle.map(({ job: { sessionId } }) => sessionId))
    t.equal(sessions.size, 2)
    // the attempt is over before its agent is
    for (const session of sessions) for (const pid of processesOf(session)) await whenGone(pid)
    for (const session of sessions) t.strictSame(processesOf(session), [])
  })

  t.test('canceling a job in the middle of its turn leaves no process', async (t) => {
    const { call, submit, told, ended } = await build(t)
    const id = await submit(
      script({ text: 'one two three', ...claude.shell('echo made > made.txt') }, { text: 'never' }),
    )
    const { job } = await told(({ progress }) => progress?.kind === 'permission_requested')
    const pids = processesOf(job.sessionId)
    t.ok(pids.length > 0)
    t.match((await call('DELETE', `/jobs/${id}`)).json, { status: 'canceled' })
    await ended()
    for (const pid of pids) await whenGone(pid)
  })
})
