import t, { type Test } from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildGateway, SOME_CWD, until as untilReached } from '../fixtures/build.js'
import { lived, mortal } from '../fixtures/mortal-storage.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'

const script = {
  async send(runner: ScriptedRunner, text: string) {
    if (text === 'second') await runner.host.requestPermission({ toolName: 'write', toolUseId: 'one', input: {} })
    runner.complete({ usage: { inputTokens: 7, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 } })
  },
}

/** @returns how many writes there were */
async function dieAt(t: Test, last: number, isDone: boolean): Promise<number> {
  const storage = createMemoryStorage()
  const { view, dead, operations } = mortal(storage, { last, isDone, parts: ['journal', 'usage'] })
  const first = await buildGateway(t, { storage: view, script: { ...script } })
  const { registry } = first
  await lived(first, dead, async (until) => {
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
    await until(async () => (await registry.get(id))?.numTurns === 1 && (await registry.get(id))?.status === 'idle')
    await registry.send(id, { type: 'user_message', text: 'second' })
    await until(async () => (await registry.get(id))?.status === 'awaiting_approval')
    const session = await registry.open(id, {})
    await session.answerPermission(session.pendingPermissions[0]!.id, { behavior: 'allow' })
    await until(async () => (await registry.get(id))?.numTurns === 2 && (await registry.get(id))?.status === 'idle')
  })

  const at = `${isDone ? 'after' : 'before'} write ${last}`
  const next = await buildGateway(t, { storage, script: { ...script } })
  const [left] = await storage.journal.list()
  const logged = async () => {
    const kept = left ? await storage.journal.read(left.id, 0, Number.MAX_SAFE_INTEGER, 1e9) : []
    return kept.map(({ json }): SessionEvent => JSON.parse(String(json)))
  }
  // what was in flight is told by the next process
  if (left)
    await untilReached(async () => {
      const info = await next.registry.get(left.id)
      return (
        (info?.status === 'idle' || info?.status === 'awaiting_approval') &&
        (await logged()).at(-1)?.seq === info.lastSeq
      )
    }, `${at}: the session is at rest`)
  await next.gateway.close()
  const events = await logged()
  const of = (type: SessionEvent['type']) => events.filter((event) => event.type === type)
  const turns = of('turn_completed') as (SessionEvent & { type: 'turn_completed' })[]
  const [sum] = await storage.usage!.read({ from: '2000-01-01', to: '2100-01-01' }, ['profile'], 9)
  t.match(
    sum ?? { turns: 0, inputTokens: 0, approvalsAsked: 0, approvalsAnswered: 0 },
    {
      turns: turns.length,
      inputTokens: turns.reduce((tokens, { usage }) => tokens + usage.inputTokens, 0),
      approvalsAsked: of('permission_requested').length,
      approvalsAnswered: of('permission_resolved').filter(
        (event) => event.type === 'permission_resolved' && event.resolvedBy === 'client',
      ).length,
    },
    `${at}: what the log tells of was counted once`,
  )
  return operations()
}

t.test('whenever the process dies, each event that the log has was counted, once', async (t) => {
  const writes = await dieAt(t, Number.POSITIVE_INFINITY, true)
  t.ok(writes > 5)
  for (let last = 1; last <= writes; last++) for (const isDone of [false, true]) await dieAt(t, last, isDone)
})
