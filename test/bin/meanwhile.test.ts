import t from 'tap'
import { Meanwhile } from '../../bin/terminal/meanwhile.js'
import type { JobInfo } from '../../client/index.js'
import { until } from '../fixtures/build.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'
import { script } from '../fixtures/demo.js'
import { skip, world } from '../fixtures/terminal-world.js'

t.test('whoever follows the queue is told what ended while it could not be followed', { skip }, async (t) => {
  const { terminal, client, options, daemon } = await world(t)
  const proxy = await cuttingProxy(t)
  const { port } = new URL(options.env.SESSION_GATEWAY_URL)
  proxy.target = Number(port)
  const submit = (prompt: string) => client.jobs.submit({ session: { cwd: options.cwd, prompt } })
  const before = await submit(script({ text: 'Ended before.' }))
  await client.jobs.wait(before.id)
  const running = await submit(script({ hang: true }))
  const queued = await submit(script({ text: 'Ended away.' }))
  const watching = terminal(['jobs', 'watch', '--output', 'jsonl', '--url', `${proxy.origin}/v1`])
  await until(async () => {
    await client.jobs.cancel((await submit('For an event.')).id)
    return watching.text.includes('"job_submitted"')
  })
  proxy.target = undefined
  proxy.cut()
  await watching.shows('The connection is lost.')
  await client.jobs.cancel(running.id)
  await client.jobs.wait(queued.id)
  const since = await submit(script({ text: 'Begun and ended away.' }))
  await client.jobs.wait(since.id)
  proxy.target = Number(port)
  await watching.shows(`Meanwhile a job was canceled: session-gateway jobs show ${running.id}`)
  for (const { id } of [queued, since])
    await watching.shows(`Meanwhile a job has succeeded: session-gateway jobs show ${id}`)
  t.notMatch(watching.text, `jobs show ${before.id}`)
  t.equal(daemon.child.exitCode, null)
})

const job = (id: string, createdAt: number, finishedAt?: number) =>
  ({ id, createdAt, ...(finishedAt !== undefined && { finishedAt }) }) as JobInfo

t.test('each end is told once, also where the gateway was away again before it could be asked', async (t) => {
  const meanwhile = new Meanwhile()
  let jobs = [job('old', 1, 2), job('new', 3)]
  const look = (rest: readonly JobInfo[] = []) =>
    meanwhile.ended(
      async () => jobs,
      async (id) => rest.find((one) => one.id === id),
    )
  t.strictSame(await look(), [], 'what ended before is not told')
  meanwhile.take(job('told', 4))
  meanwhile.take(job('told', 4, 5))
  meanwhile.take(job('removed', 5))
  meanwhile.take(job('far', 5))
  jobs = [job('old', 1, 2), job('new', 3, 9), job('told', 4, 5), job('since', 6, 7)]
  await t.rejects(
    meanwhile.ended(
      () => Promise.reject(new Error('away')),
      async () => undefined,
    ),
  )
  const ended = [job('since', 6, 7), job('far', 5, 8), job('new', 3, 9)]
  t.strictSame(await look([job('far', 5, 8)]), ended)
  t.strictSame(await look(), [])
})
