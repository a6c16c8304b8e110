import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { bury } from '../fixtures/mortal-storage.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'

t.test(
  'a run that a crash cut off before its engine was built has failed, also when its session was written down',
  async (t) => {
    const engine = new ScriptedEngine({ send: (runner) => runner.complete() })
    let hang = true
    const { gateway, registry, clock, again } = await buildJournaled(t, {
      queue: {},
      createEngineRunner: (context) => (hang ? new Promise(() => {}) : engine.create(context)),
    })
    const job = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'x' } })
    await until(async () => (await registry.list()).length === 1)
    await registry.rename((await registry.list())[0]!.id, 'mine', UNLIMITED)
    hang = false
    const next = await again()
    const statusNow = async () => (await next.gateway.queue?.get(job.id))?.status
    await until(async () => (await statusNow()) === 'failed', 'the end of the run')
    // the engine that was never built is waited for by the process that is gone
    await bury(gateway, clock)
  },
)
