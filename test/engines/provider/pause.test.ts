import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { type ProviderEngineOptions, providerEngine } from '../../../src/engines/provider/index.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { gate, open } from './host.js'

type TapTest = typeof t

async function session(t: Pick<TapTest, 'teardown'>, options: ProviderEngineOptions = {}) {
  const endpoint = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: endpoint.url, model: 'fake' }
  const config = { permissionMode: 'bypassPermissions' as const }
  const { runner, host } = await open(providerEngine(options), { provider, config })
  t.teardown(() => runner.close())
  return { runner, host, requests: endpoint.requests }
}

const search = { tool: 'web_search', id: 's', input: { query: 'x' } }

t.test('paused, it asks no model; it goes on as if nothing had been', async (t) => {
  const { runner, host, requests } = await session(t)
  runner.pause?.()
  runner.send('ping')
  for (let n = 0; n < 20; n++) await turn()
  t.equal(requests.length, 0)
  runner.resume?.()
  t.match(await host.turn(), { subtype: 'success', result: 'pong' })
})

t.test('paused while a tool runs, that one ends, and no other begins nor is the model asked', async (t) => {
  const entered = gate()
  const leave = gate()
  let searches = 0
  const webSearch = async () => {
    searches++
    entered.open()
    await leave.opened
    return []
  }
  const { runner, host, requests } = await session(t, { webSearch })
  runner.send(script({ tools: [search] }, { tools: [{ ...search, id: 'second' }] }, { text: 'done' }))
  await entered.opened
  runner.pause?.()
  leave.open()
  await host.until(() => host.results.s)
  for (let n = 0; n < 20; n++) await turn()
  t.equal(requests.length, 1)
  t.equal(searches, 1)
  runner.resume?.()
  t.match(await host.turn(), { subtype: 'success', result: 'done' })
  t.equal(searches, 2)
})

t.test('paused between the words of an answer, it reads on later', async (t) => {
  const { runner, host } = await session(t)
  const typed = () => host.of('stream_delta').length
  runner.send(script({ text: 'many words that come one after the other until all of them are said' }))
  await host.until(() => typed() > 0)
  runner.pause?.()
  // one part may be in hand
  await turn()
  const before = typed()
  for (let n = 0; n < 20; n++) await turn()
  t.ok(typed() <= before + 1)
  t.same(host.of('turn_completed'), [])
  runner.resume?.()
  t.match(await host.turn(), { subtype: 'success' })
})

t.test('paused, it can be interrupted and closed', async (t) => {
  const { runner, host, requests } = await session(t)
  runner.pause?.()
  runner.send('ping')
  await turn()
  await runner.interrupt()
  t.match(await host.turn(), { subtype: 'interrupted' })
  runner.send('ping')
  await turn()
  await runner.close()
  t.equal(requests.length, 0)
})
