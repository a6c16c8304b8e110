import t from 'tap'
import { EgressGuard } from '../../src/webhooks/egress.js'
import { operatorTarget, targetProblems } from '../../src/webhooks/target.js'

const guard = new EgressGuard({ allowPrivateNetworks: true })
const refused = (headers: Record<string, string>) =>
  targetProblems({ url: 'https://hooks.example/', headers }, guard, 'webhook').map(({ path }) => path)

t.test('headers that frame the request or are ours are refused', async (t) => {
  const names =
    'host Content-Length transfer-encoding CONNECTION keep-alive upgrade te trailer expect proxy-authorization Proxy-X webhook-id Webhook-Signature'
  for (const name of names.split(' ')) t.same(refused({ [name]: 'x' }), [`webhook.headers.${name}`], name)
  for (const name of ['authorization', 'X-Hook', 'hosts', 'te-x', 'content-type'])
    t.same(refused({ [name]: 'x' }), [], name)
})

t.test('names are tokens and values visible ASCII', async (t) => {
  for (const name of ['', 'a b', 'a:b', 'ä', 'a\r\nb'])
    t.equal(refused({ [name]: 'x' }).length, 1, JSON.stringify(name))
  for (const value of ['a\r\nb', 'ä', '\u0000', ' a', 'a\t'])
    t.equal(refused({ a: value }).length, 1, JSON.stringify(value))
  for (const value of ['', 'Bearer x y', '~!']) t.equal(refused({ a: value }).length, 0, JSON.stringify(value))
})

t.test('headers are bounded in number and size', async (t) => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'v']))
  t.same(refused(many(32)), [])
  t.same(refused(many(33)), ['webhook.headers'])
  t.same(refused({ a: 'x'.repeat(8191) }), [])
  t.same(refused({ a: 'x'.repeat(8192) }), ['webhook.headers'])
})

t.test('an operator’s target is refused as an option', async (t) => {
  const given = { option: 'notifications.webhook', attempts: 3, retryDelayMs: 1, guard }
  t.throws(() => operatorTarget({ url: 'file:///etc/passwd' }, given), {
    code: 'SG_ERR_OPTION',
    message: /^notifications\.webhook\.url: /,
  })
  t.throws(() => operatorTarget({ url: 'http://169.254.169.254/' }, given), { code: 'SG_ERR_OPTION' })
  t.match(operatorTarget({ url: 'http://127.0.0.1:9/', secret: ['a', 'b'] }, given), { signingKeys: { length: 2 } })
})
