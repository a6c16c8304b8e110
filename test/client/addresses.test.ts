import t from 'tap'
import { clientOn } from '../../client/client.js'
import { createClient } from '../../client/index.js'
import { fakePlatform } from '../fixtures/client-platform.js'

t.test('an address that no gateway can have is refused at once', async (t) => {
  const addresses = [
    '',
    '/v1',
    'localhost:8787/v1',
    '127.0.0.1:8787/v1',
    'ftp://gateway.test/v1',
    'http://me:secret@gateway.test/v1',
    undefined as never,
  ]
  const message = /^baseUrl is .* as in http:\/\/127\.0\.0\.1:8787\/v1/
  for (const baseUrl of addresses) t.throws(() => createClient({ baseUrl }), { name: 'TypeError', message }, baseUrl)
})

t.test('a page names its own gateway by the path alone', async (t) => {
  Object.assign(globalThis, { location: { href: 'https://app.example/page' } })
  t.teardown(() => Reflect.deleteProperty(globalThis, 'location'))
  t.doesNotThrow(() => createClient({ baseUrl: '/v1' }))
})

t.test("the fetch of a browser can be given as it is, which is nobody's method but the window's", async (t) => {
  function fetch(this: unknown, _url: string): Promise<Response> {
    if (this !== undefined && this !== globalThis) throw new TypeError('Illegal invocation')
    return Promise.resolve(Response.json({ id: 's1' }))
  }
  const { sessions } = createClient({ baseUrl: 'http://gateway.test/v1', fetch })
  t.same(await sessions.rename('s1', 'x'), { id: 's1' })
})

t.test(
  'a list has its filter and all its pages also in a browser that does not tell how many parameters there are',
  async (t) => {
    t.intercept(URLSearchParams.prototype, 'size', { value: undefined })
    const { platform, requests } = fakePlatform()
    const queries: string[] = []
    const fetch = async (url: string) => {
      queries.push(new URL(url).search)
      const link = { link: '<http://gateway.test/v1/sessions?status=idle&cursor=c1>; rel="next"' }
      return Response.json([{ id: 's1' }], { headers: queries.length === 1 ? link : {} })
    }
    const { sessions } = clientOn(platform, { baseUrl: 'http://gateway.test/v1', fetch })
    t.equal((await sessions.list({ status: 'idle' }).toArray()).length, 2)
    t.strictSame(queries, ['?status=idle', '?status=idle&cursor=c1'])
    t.strictSame(requests, [])
  },
)

t.test('what cannot be sent is refused as that, and not as a gateway that does not answer', async (t) => {
  const baseUrl = 'http://gateway.test/v1'
  const { platform, requests } = fakePlatform()
  const client = clientOn(platform, { baseUrl })
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const session = { cwd: '/work' }
  await t.rejects(client.sessions.create({ ...session, meta: circle as never }), TypeError)
  await t.rejects(client.sessions.create({ ...session, maxTurns: 1n as never }), TypeError)
  const message = (header: string) => `The header ${header} has a character that cannot be sent.`
  await t.rejects(client.sessions.create(session, { idempotencyKey: 'schlüssel № 1' }), {
    name: 'TypeError',
    message: message('idempotency-key'),
  })
  const hidden = 'token\u200b'
  t.throws(() => createClient({ baseUrl, token: hidden }), { name: 'TypeError', message: message('authorization') })
  t.throws(() => createClient({ baseUrl, headers: { 'x-who': 'Łucja' } }), { message: message('x-who') })
  const cause = { message: message('authorization') }
  await t.rejects(clientOn(platform, { baseUrl, getToken: () => hidden }).sessions.get('s1'), { cause })
  t.strictSame(requests, [])
})

t.test('a path that leads out of its session is refused, and asks for nothing of another one', async (t) => {
  const { platform, requests } = fakePlatform()
  const { sessions, profiles } = clientOn(platform, { baseUrl: 'http://gateway.test/v1' })
  for (const path of ['../../s2/files/report.md', '..', 'a/../../events', './report.md'])
    await t.rejects(sessions.file('s1', path), { name: 'TypeError', message: /the part \. or \.\./ }, path)
  await t.rejects(profiles.remove('..'), TypeError)
  await t.rejects(sessions.command('.', { type: 'ping' }), TypeError)
  t.strictSame(requests, [])
})
