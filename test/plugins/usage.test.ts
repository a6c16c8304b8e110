import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'

const script = { send: (runner: { complete(): void }) => runner.complete() }
const authenticate = ({ headers }: FastifyRequest) =>
  ({ ann: { name: 'ann' }, ben: { name: 'ben', allowedProfiles: ['other'] } })[headers.authorization ?? '']

t.test('what was used is answered as JSON, and as a table to who asks for one', async (t) => {
  const { call } = await buildServer(t, { script, authenticate })
  const ann = { authorization: 'ann' }
  t.match(await call('GET', '/usage'), { status: 401 })
  const { json: session } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' }, ann)
  await until(async () => (await call('GET', `/sessions/${session.id}`, undefined, ann)).json.numTurns === 1)
  const { json } = await call('GET', '/usage?by=day,person', undefined, ann)
  t.match(json, { from: '2025-12-03', to: '2026-01-01', by: ['day', 'person'] })
  t.match(json.rows, [{ day: '2026-01-01', person: 'ann', turns: 1 }])
  t.notOk('costUsd' in json.rows[0], 'no turn told one')
  t.same((await call('GET', '/usage', undefined, { authorization: 'ben' })).json.rows, [])

  const table = await call('GET', '/usage?by=person', undefined, { ...ann, accept: 'text/csv, application/json;q=0.5' })
  t.equal(table.headers.get('content-type'), 'text/csv; charset=utf-8')
  t.equal(table.headers.get('content-disposition'), 'attachment; filename="usage-2025-12-03-2026-01-01.csv"')
  t.match(table.text, /^person,turns,.*,costUsd\r\nann,1,1,0,0,.*,\r\n$/)
  for (const accept of ['*/*', 'text/*;q=0.1, application/json', 'application/json'])
    t.match((await call('GET', '/usage', undefined, { ...ann, accept })).headers.get('content-type'), /json/, accept)
})

t.test('what cannot be asked is refused by the name of its field', async (t) => {
  const { call } = await buildServer(t)
  for (const [query, path] of [
    ['from=yesterday', 'from'],
    ['from=2026-02-30', 'from'],
    ['to=20260101', 'to'],
    ['by=session', 'by'],
    ['by=', 'by'],
    ['by=day,', 'by'],
    ['from=2020-01-01', 'from'],
    ['profile=x', 'profile'],
    ['from=2026-01-01&from=2026-01-02', 'from'],
  ] as const)
    t.match(await call('GET', `/usage?${query}`), { status: 400, json: { errors: [{ path }] } }, query)
  t.match(await call('POST', '/usage', {}), { status: 405 })
})
