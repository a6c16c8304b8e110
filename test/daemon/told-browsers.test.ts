import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createClient } from '../../client/index.js'
import { prepareServer, start } from '../../src/daemon/daemon.js'
import { loadConfig } from '../../src/daemon/load-config.js'
import { hashToken } from '../../src/daemon/tokens.js'
import { until } from '../fixtures/build.js'
import { PushService } from '../fixtures/push-service.js'

/** A daemon whose tokens are their own names. */
async function daemon(t: Test, folder: string, names: readonly string[]) {
  const file = join(folder, 'gateway.json')
  const config = {
    listen: { port: 0 },
    auth: { tokens: names.map((name) => ({ name, sha256: hashToken(name) })) },
    storage: { sqlite: 'gateway.db' },
    allowedCwdRoots: ['work'],
    profiles: [{ name: 'demo', engine: 'provider', provider: { id: 'demo' } }],
    webhookPolicy: { allowPrivateNetworks: true },
    notifications: { channels: [{ format: 'web_push', subject: 'mailto:ops@example.com' }] },
    // what waits for an answer is left to the next daemon
    shutdownTimeoutMs: 1,
    log: { level: 'error' },
  }
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  const loaded = loadConfig(file, {}, {})
  const prepared = await prepareServer(loaded, { write() {} })
  const baseUrl = await start(prepared, loaded)
  t.teardown(() => prepared.server.close())
  return { as: (token: string) => createClient({ baseUrl, token }), stop: () => prepared.server.close() }
}

t.test('a browser whose token was taken out of the configuration is told nothing by the next daemon', async (t) => {
  const folder = t.testdir()
  const cwd = join(folder, 'work')
  mkdirSync(cwd)
  const service = await PushService.start(t)
  const [anns, bobs] = [service.subscribe(), service.subscribe()]
  const first = await daemon(t, folder, ['ann', 'bob'])
  await first.as('ann').notifications.subscribe(anns.request)
  await first.as('bob').notifications.subscribe(bobs.request)
  await first.as('bob').sessions.create({ cwd, prompt: 'Please write a report.' })
  await until(() => anns.received.length > 0 && bobs.received.length > 0, 'both are told')
  await first.stop()

  const before = { ann: service.triesOf(anns), bob: service.triesOf(bobs) }
  const second = await daemon(t, folder, ['bob'])
  await second.as('bob').sessions.create({ cwd, prompt: 'Please write a report.' })
  await until(() => service.triesOf(bobs) > before.bob, 'who is still let in is told')
  await second.stop()
  t.equal(service.triesOf(anns), before.ann)
  t.same(service.faults, [])
})
