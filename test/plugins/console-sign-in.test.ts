import t from 'tap'
import { SOME_CWD } from '../fixtures/build.js'
import { buildConsole } from '../fixtures/console.js'

t.test('a token is exchanged once for a cookie that no script reads, and is whoever the token is', async (t) => {
  const { ask, signIn, as } = await buildConsole(t)
  t.same((await ask({ path: '/v1/console/me' })).json, { required: true, authenticated: false })
  const { answer, setCookie, cookie, id } = await signIn('token-of-ann', { 'user-agent': 'A browser' })
  t.match(answer, { status: 201, json: { id, userAgent: 'A browser', current: true } })
  t.match(setCookie, /^sgw_console_[0-9a-f]{8}=[\w-]{43}; Path=\/v1; Max-Age=604800; HttpOnly; SameSite=Strict$/)
  t.notMatch(JSON.stringify(answer), 'token-of-ann')
  const ann = as(cookie)
  t.match((await ann('GET', '/console/me')).json, {
    ...{ required: true, authenticated: true, caller: { name: 'ann', isLimited: false } },
    signIn: { id, current: true },
  })
  const created = await ann('POST', '/sessions', { body: { cwd: SOME_CWD } })
  t.match(created, { status: 201 })
  t.equal((await ann('GET', `/sessions/${created.json.id}`)).status, 200)
  const ben = as((await signIn('token-of-ben')).cookie)
  t.match((await ben('GET', '/console/me')).json, { caller: { name: 'ben', allowedProfiles: ['scripted'] } })
})
