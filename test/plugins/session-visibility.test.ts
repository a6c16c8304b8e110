import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { refusedUpgrade } from '../fixtures/client.js'

const ask = { toolName: 'Write', toolUseId: 'use', input: { path: 'a' } }

t.test('a session that the caller may not see is an unknown one, byte for byte', async (t) => {
  const profile = (name: string) => ({ name, engine: 'provider' as const, provider: { id: 'x' } })
  const { call, api, engine } = await buildServer(t, {
    profiles: [profile('theirs'), profile('mine')],
    script: { files: { list: () => [], read: () => Buffer.from('x') } },
    authenticate: ({ headers }) => ({ allowedProfiles: [String(headers.caller)] }),
  })
  const { json } = await call(
    'POST',
    '/sessions',
    { cwd: SOME_CWD, profile: 'theirs', prompt: 'go' },
    { caller: 'theirs' },
  )
  const decision = engine.last.host.requestPermission(ask)
  const requestId = (await call('GET', `/sessions/${json.id}/events`, undefined, { caller: 'theirs' })).json.events.at(
    -2,
  ).request.id
  const stream = { accept: 'text/event-stream' }
  const rows: [method: string, path: string, body?: object | string | undefined, headers?: object][] = [
    ['GET', ''],
    ['PATCH', '', { title: 'taken' }],
    ['PATCH', '', { title: 7 }],
    ['DELETE', ''],
    ['POST', '/commands', { type: 'close' }],
    ['POST', '/commands', { type: 'nothing' }],
    ['POST', '/commands', '{'],
    ['POST', `/permissions/${requestId}`, { behavior: 'allow' }],
    ['GET', '/files'],
    ['GET', '/files/a'],
    ['GET', '/events'],
    ['GET', '/events?afterSeq=-1'],
    ['GET', '/events', undefined, stream],
    ['GET', '/events', undefined, { ...stream, 'last-event-id': 'x' }],
    ['GET', '/ws'],
    ['PUT', ''],
  ]
  const unknown = '00000000-0000-4000-8000-000000000000'
  for (const [method, path, body, headers] of rows) {
    const seen = async (id: string) => {
      const answer = await call(method, `/sessions/${id}${path}`, body, { caller: 'mine', ...headers })
      t.ok(answer.status >= 400, `${method} ${path}: ${answer.status}`)
      const kept = [...answer.headers].filter(([name]) => name !== 'date' && name !== 'content-length')
      const text = answer.text.replace(/"instance":"[^"]*"/, '').replaceAll(id, 'ID')
      return JSON.stringify([answer.status, kept, text])
    }
    t.equal(await seen(json.id), await seen(unknown), `${method} ${path}`)
  }
  const upgrade = async (id: string) => {
    const { status, body } = await refusedUpgrade(`${api.replace('http', 'ws')}/sessions/${id}/ws`, {
      headers: { caller: 'mine' },
    })
    return [status, body.replace(/"instance":"[^"]*"/, '')]
  }
  t.same(await upgrade(json.id), await upgrade(unknown))
  t.same((await call('GET', '/sessions', undefined, { caller: 'mine' })).json, [])
  t.same((await call('GET', '/sessions?profile=theirs', undefined, { caller: 'mine' })).json, [])
  const untouched = await call('GET', `/sessions/${json.id}`, undefined, { caller: 'theirs' })
  t.match(untouched.json, { status: 'awaiting_approval', title: 'go', pendingPermissions: 1, attachedClients: 0 })
  await call('DELETE', `/sessions/${json.id}`, undefined, { caller: 'theirs' })
  t.match(await decision, { behavior: 'deny' })
})
