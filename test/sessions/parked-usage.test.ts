import t, { type Test } from 'tap'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import type { GatewayStorage } from '../../src/storage/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { native, ok } from '../fixtures/parked.js'

const USED = { inputTokens: 7, outputTokens: 2, cacheCreationTokens: 0, cacheReadTokens: 0 }

/** A session that goes on with a turn which a gateway has parked that is gone. */
async function goneOn(t: Test, storage?: GatewayStorage) {
  const options = {
    parking: { store: new MemorySessionStore() },
    script: native,
    authenticate: () => ({ name: 'ann' }),
  }
  const first = await buildServer(t, options)
  const { id } = (await first.call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })).json
  await until(() => first.engine.last.sent.length === 1, 'its turn')
  const message = { role: 'assistant' as const, content: 'I call a tool.', usage: USED }
  first.engine.last.host.emit({ type: 'assistant_message', message, uuid: 'u', parentToolUseId: null })
  await first.engine.last.defer('e1')
  await until(async () => (await first.registry.get(id))?.status === 'parked', 'that it is parked')
  await first.worker.close()
  const next = await buildServer(t, { ...options, ...(storage && { storage }) })
  t.equal((await next.call('POST', '/executions/e1/result', ok)).status, 200)
  await until(async () => (await next.registry.get(id))?.status === 'running', 'that it goes on')
  return { ...next, id }
}

for (const [how, storage] of [
  ['is started again', undefined],
  ['has a storage from then on', createMemoryStorage()],
] as const)
  t.test(`what a parked turn has used counts where its gateway ${how}, for who asked for it`, async (t) => {
    const { call, id } = await goneOn(t, storage)
    t.match((await call('DELETE', `/sessions/${id}`)).json, { usage: USED }, 'its turn ends in the middle')
    const { rows } = (await call('GET', '/usage?by=person')).json
    t.match(rows, [{ person: 'ann', inputTokens: 7, outputTokens: 2 }])
  })

t.test('an engine that goes on with a parked turn after a restart tells the whole of it once', async (t) => {
  const { registry, engine, id } = await goneOn(t)
  const usage = { ...USED, inputTokens: 12 }
  engine.last.complete({ usage })
  await until(async () => (await registry.get(id))?.status === 'idle', 'the end of its turn')
  t.match(await registry.get(id), { usage })
})
