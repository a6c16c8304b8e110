import t from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf } from '../fixtures/cluster.js'
import { PushService } from '../fixtures/push-service.js'

t.test('a browser whose push service took it for gone is told again once it has subscribed again', async (t) => {
  const service = await PushService.start(t)
  const { nodes } = await clusterOf(t, ['a'], {
    notifications: { channels: [{ format: 'web_push', subject: 'mailto:ops@example.com' }] },
    webhookPolicy: { allowedHosts: [service.host] },
  })
  const [a] = nodes
  service.publicKey = (await a.call('GET', '/notifications/vapid-key')).json.publicKey
  const phone = service.subscribe()
  const subscribe = () => a.call('POST', '/notifications/subscriptions', phone.request)
  const tell = async () => {
    const { json } = await a.call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x' })
    await a.call('DELETE', `/sessions/${json.id}`)
  }
  t.equal((await subscribe()).status, 201)
  await tell()
  await until(() => phone.received.length > 0)
  service.answer = (_browser, response) => {
    response.writeHead(410).end()
    return true
  }
  await tell()
  await until(async () => (await a.storage.channels!.subscriptions()).length === 0)
  service.answer = undefined
  const before = phone.received.length
  t.equal((await subscribe()).status, 201)
  await tell()
  await until(() => phone.received.length > before, 'told again')
})
