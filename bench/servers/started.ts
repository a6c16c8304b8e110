import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWorkerServer } from '../../src/server.js'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'
import { type Script, ScriptedRunner } from '../../test/fixtures/scripted-engine.js'
import { answer } from '../lib/child.js'

/** A gateway that is started when it is told so, on the database in the folder `argv[2]`; turns park, or end when they are asked to. */
const path = join(process.argv[2]!, 'gateway.db')
const script: Script = {
  capabilities: { parking: 'native' },
  send: (runner, text) => {
    if (text === 'park') runner.defer(`${runner.context.sessionId}-e`)
    else runner.complete()
  },
}
const build = () =>
  createWorkerServer({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: (context) => new ScriptedRunner(context, script),
    storage: createSqliteStorage({ path }),
    queue: { retention: { maxAgeMs: 30 * 86_400_000 } },
  })
let worker: ReturnType<typeof build> | undefined
let url = ''

answer({
  /** @returns milliseconds until it takes requests */
  async start(): Promise<number> {
    worker = build()
    const from = performance.now()
    url = (await worker.listen(0)).url
    return performance.now() - from
  },
  url: () => url,
  /** Opens the database and closes it again, with nothing around it. @returns milliseconds */
  async open(): Promise<number> {
    const storage = createSqliteStorage({ path })
    const from = performance.now()
    await storage.open()
    const took = performance.now() - from
    await storage.close()
    return took
  },
  /** One session that is parked, one that has ended, one job that has and one that waits for its time, to be multiplied. */
  async seed(): Promise<void> {
    const { registry } = worker!
    const { id } = await registry.create({ cwd: tmpdir(), prompt: 'park' })
    while (registry.here(id)?.status !== 'parked') await new Promise((resolve) => setTimeout(resolve, 5))
    const ended = await registry.create({ cwd: tmpdir(), prompt: 'Write me a report on the last quarter.' })
    await registry.end(ended.id)
    const queue = worker!.queue!
    const job = await queue.submit({ session: { cwd: tmpdir(), prompt: 'Write me a report on the last quarter.' } })
    await queue.submit({ session: { cwd: tmpdir(), prompt: 'Later.' }, runAt: Date.now() + 30 * 86_400_000 })
    while ((await queue.get(job.id))?.status !== 'succeeded') await new Promise((resolve) => setTimeout(resolve, 5))
  },
  stop: () => worker!.close(),
})
