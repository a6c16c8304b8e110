import t from 'tap'
import { createClient } from '../../client/index.js'

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
