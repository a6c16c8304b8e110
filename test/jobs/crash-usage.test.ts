import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { NO_USAGE } from '../fixtures/scripted-engine.js'

t.test(
  'what the calls of a run have used counts when a crash ends it: for the job, the day and its session',
  async (t) => {
    const world = await buildJournaled(t, { queue: { dailyTokenLimit: 10 } })
    const { gateway, engine } = world
    const { id } = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'once' } })
    const held = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'later' } })
    await until(() => engine.runners[0]?.sent.length === 1)
    for (const [uuid, outputTokens] of [
      ['m1', 7],
      ['m2', 5],
    ] as const)
      engine.last.host.emit({
        ...{ type: 'assistant_message', uuid, parentToolUseId: null },
        message: { role: 'assistant', content: 'words', usage: { ...NO_USAGE, outputTokens } },
      })
    await until(async () => (await gateway.queue!.get(id))?.usage.tokens === 12)

    const { gateway: next, registry } = await world.again()
    await until(async () => (await next.queue!.get(id))?.status === 'failed')
    const job = await next.queue!.get(id)
    t.match(job, { usage: { tokens: 12, outputTokens: 12 } })
    t.match(await next.queue!.stats(), { dailyTokensUsed: 12, paused: true, queued: 1, running: 0 })
    t.match(await next.queue!.get(held.id), { status: 'queued' })
    t.match(await registry.get(job!.sessionId!), { usage: { outputTokens: 12 } })
    t.match((await next.usage.report({}, UNLIMITED)).rows, [{ turnsInterrupted: 1, outputTokens: 12 }])
  },
)
