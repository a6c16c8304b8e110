import t from 'tap'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { attach, refusedUpgrade } from '../fixtures/client.js'
import { provider } from '../fixtures/profiles.js'

const DECLARED = ['alpha', 'beta']
const MANAGED = 'gamma'
const PROFILES = [...DECLARED, MANAGED]
const UNKNOWN = 'omega'

interface Shape {
  what: string
  /** What `authenticate` returns. */
  claims: unknown
  /** The names that are within the limits, or the status with which everything is refused. */
  sees: string[] | 401 | 500
  manages?: boolean
}

const ALL = [...PROFILES, UNKNOWN]
const SHAPES: Shape[] = [
  { what: 'nobody', claims: null, sees: 401 },
  { what: 'false', claims: false, sees: 401 },
  { what: 'an empty text', claims: '', sees: 401 },
  { what: 'a text', claims: 'somebody', sees: ALL },
  { what: 'an object without limits', claims: { name: 'x' }, sees: ALL },
  { what: 'a manager without limits', claims: { canManageProfiles: true }, sees: ALL, manages: true },
  { what: 'a manager who says so in words', claims: { canManageProfiles: 'true' }, sees: ALL },
  { what: 'limited to nothing', claims: { allowedProfiles: [] }, sees: [] },
  { what: 'limited to one', claims: { allowedProfiles: ['alpha'] }, sees: ['alpha'] },
  { what: 'limited to one that does not exist', claims: { allowedProfiles: [UNKNOWN] }, sees: [UNKNOWN] },
  { what: 'limited to two', claims: { allowedProfiles: ['gamma', 'beta', 'beta'] }, sees: ['beta', 'gamma'] },
  {
    what: 'limited to look-alikes',
    claims: { allowedProfiles: ['Alpha', 'alph', 'alpha ', 'alphа', '*', 'alpha,beta'] },
    sees: [],
  },
  {
    what: 'a manager of one',
    claims: { allowedProfiles: ['gamma'], canManageProfiles: true },
    sees: ['gamma'],
    manages: true,
  },
  { what: 'a manager of nothing', claims: { allowedProfiles: [], canManageProfiles: true }, sees: [], manages: true },
  { what: 'limits that are a text', claims: { allowedProfiles: 'alpha' }, sees: 500 },
  { what: 'limits that are null', claims: { allowedProfiles: null }, sees: 500 },
  { what: 'limits that hold something else', claims: { allowedProfiles: ['alpha', 1] }, sees: 500 },
]

type Answer = { status: number; text: string }

/** An answer without what differs from request to request. */
const bare = ({ status, text }: Answer, id: string) =>
  `${status} ${text.replace(/"instance":"[^"]*"/, '').replaceAll(id, '<id>')}`

t.test('every shape of principal, every profile, every route', async (t) => {
  const store = createMemoryProfileStore()
  await store.save(provider(MANAGED))
  const { api, call } = await buildServer(t, {
    authenticate: (request) => JSON.parse(decodeURIComponent(String(request.headers['x-claims'] ?? 'null'))),
    profiles: DECLARED.map(provider),
    profileStore: store,
    docs: 'authenticated',
    script: { files: { list: () => [], read: () => undefined } },
  })
  const host = { 'x-claims': JSON.stringify({ canManageProfiles: true }) }
  const sessions: Record<string, string> = {}
  const newSession = async (profile: string): Promise<string> =>
    (await call('POST', '/sessions', { cwd: SOME_CWD, profile }, host)).json.id
  for (const profile of PROFILES) sessions[profile] = await newSession(profile)
  const restore = () => call('POST', '/profiles', provider(MANAGED), host)

  for (const { what, claims, sees, manages = false } of SHAPES) {
    await t.test(what, async (t) => {
      const headers = { 'x-claims': encodeURIComponent(JSON.stringify(claims)) }
      const ask = (method: string, path: string, body?: unknown) => call(method, path, body, headers)
      const status = async (answer: Promise<Answer>) => (await answer).status
      const refusedUpgradeTo = (id: string) =>
        refusedUpgrade(`${api.replace('http', 'ws')}/sessions/${id}/ws`, { headers })
      const streamStatus = async (id: string) => {
        const gone = new AbortController()
        const answer = await fetch(`${api}/sessions/${id}/events`, {
          headers: { ...headers, accept: 'text/event-stream' },
          signal: gone.signal,
        })
        gone.abort()
        return answer.status
      }

      /** Every route about one session; those that do not leave it as it was come with a session of their own. */
      const about: [string, (id: string) => Promise<Answer>][] = [
        ['GET', (id) => ask('GET', `/sessions/${id}`)],
        ['HEAD', (id) => ask('HEAD', `/sessions/${id}`)],
        ['PATCH', (id) => ask('PATCH', `/sessions/${id}`, { title: 'seen' })],
        ['command', (id) => ask('POST', `/sessions/${id}/commands`, { type: 'ping' })],
        ['a bad command', (id) => ask('POST', `/sessions/${id}/commands`, { type: 'nonsense' })],
        ['permission', (id) => ask('POST', `/sessions/${id}/permissions/nowhere`, { behavior: 'allow' })],
        ['files', (id) => ask('GET', `/sessions/${id}/files`)],
        ['a file', (id) => ask('GET', `/sessions/${id}/files/a.txt`)],
        ['events', (id) => ask('GET', `/sessions/${id}/events`)],
      ]

      if (!Array.isArray(sees)) {
        for (const path of ['/sessions', '/profiles', '/profiles/alpha', '/openapi.json', '/nowhere'])
          t.equal(await status(ask('GET', path)), sees, `GET ${path}`)
        for (const profile of ALL) {
          t.equal(await status(ask('POST', '/sessions', { cwd: SOME_CWD, profile })), sees, `create as ${profile}`)
          t.equal(await status(ask('POST', '/profiles', provider(profile))), sees, `POST profile ${profile}`)
          t.equal(await status(ask('PATCH', `/profiles/${profile}`, {})), sees, `PATCH profile ${profile}`)
          t.equal(await status(ask('DELETE', `/profiles/${profile}`)), sees, `DELETE profile ${profile}`)
        }
        for (const id of Object.values(sessions)) {
          for (const [route, request] of about) t.equal(await status(request(id)), sees, route)
          t.equal(await status(ask('DELETE', `/sessions/${id}`)), sees, 'DELETE')
          t.equal(await streamStatus(id), sees, 'stream')
          t.equal((await refusedUpgradeTo(id)).status, sees, 'socket')
        }
        return
      }

      const visible = PROFILES.filter((profile) => sees.includes(profile))
      const listed = async (query = '') =>
        (await ask('GET', `/sessions${query}`)).json.map(({ profile }: { profile: string }) => profile).sort()
      t.same(await listed(), visible, 'the list of sessions')
      for (const profile of PROFILES)
        t.same(
          await listed(`?profile=${profile}`),
          visible.filter((name) => name === profile),
          `sessions of ${profile}`,
        )
      const ofUnknown = await status(ask('GET', `/sessions?profile=${UNKNOWN}`))
      t.equal(
        ofUnknown,
        sees.includes(UNKNOWN) ? 400 : 200,
        'of what they may not see nobody learns that it is not there',
      )
      const list = (await ask('GET', '/profiles')).json
      t.same(
        list.profiles.map(({ name }: { name: string }) => name),
        visible,
        'the list of profiles',
      )
      t.equal(list.canManage, manages)
      t.equal(await status(ask('POST', '/sessions', { cwd: SOME_CWD })), 400, 'a create that names none')

      const nowhere = '00000000-0000-4000-8000-000000000000'
      for (const profile of PROFILES) {
        const id = sessions[profile]!
        for (const [route, request] of about) {
          const [own, unknown] = [await request(id), await request(nowhere)]
          if (visible.includes(profile)) t.not(bare(own, id), bare(unknown, nowhere), `${route} of ${profile}`)
          else t.equal(bare(own, id), bare(unknown, nowhere), `${route} of ${profile} is as unknown as any`)
          t.equal(unknown.status, 404, route)
        }
        if (visible.includes(profile)) {
          t.equal(await streamStatus(id), 200, `stream of ${profile}`)
          const client = await attach(t, api, id, '', { headers })
          t.equal(client.attached.session.profile, profile)
          client.socket.terminate()
          const fresh = await newSession(profile)
          t.match(await ask('DELETE', `/sessions/${fresh}`), { status: 200, json: { id: fresh, profile } })
        } else {
          t.equal(await streamStatus(id), 404, `stream of ${profile}`)
          const [own, unknown] = [await refusedUpgradeTo(id), await refusedUpgradeTo(nowhere)]
          t.equal(own.status, 404, `socket of ${profile}`)
          t.equal(own.body.replace(/"instance":"[^"]*"/, ''), unknown.body.replace(/"instance":"[^"]*"/, ''))
          t.equal(await status(ask('DELETE', `/sessions/${id}`)), 404, `DELETE of ${profile}`)
        }
      }

      for (const profile of ALL) {
        const allowed = sees.includes(profile)
        const exists = profile !== UNKNOWN
        const declared = DECLARED.includes(profile)
        const create = { cwd: SOME_CWD, profile }
        t.equal(
          await status(ask('POST', '/sessions', create)),
          allowed ? (exists ? 201 : 400) : 403,
          `create as ${profile}`,
        )
        t.equal(
          await status(ask('GET', `/profiles/${profile}`)),
          allowed ? (exists ? 200 : 404) : 403,
          `GET ${profile}`,
        )
        const mayTouch = manages && allowed
        const touched = !mayTouch ? 403 : declared ? 403 : exists ? 200 : 404
        t.equal(await status(ask('PATCH', `/profiles/${profile}`, { description: 'x' })), touched, `PATCH ${profile}`)
        const made = await ask('POST', '/profiles', provider(profile))
        t.equal(made.status, !mayTouch ? 403 : exists ? 409 : 201, `POST ${profile}`)
        const removable = mayTouch && !declared
        t.equal(await status(ask('DELETE', `/profiles/${profile}`)), removable ? 204 : 403, `DELETE ${profile}`)
        if (removable && profile === MANAGED) await restore()
        if (!allowed)
          for (const [method, body] of [['GET'], ['PATCH', {}], ['DELETE']] as const)
            t.equal(
              bare(await ask(method, `/profiles/${profile}`, body), profile),
              bare(await ask(method, '/profiles/psi', body), 'psi'),
              `${method} ${profile} says what it says of any`,
            )
      }

      // What this caller created goes again, so that the next one finds one session per profile.
      for (const { id } of (await call('GET', '/sessions', undefined, host)).json)
        if (!Object.values(sessions).includes(id)) await call('DELETE', `/sessions/${id}`, undefined, host)
      t.equal(
        (await call('GET', '/sessions', undefined, host)).json.length,
        PROFILES.length,
        'nobody deleted what is not theirs',
      )
    })
  }
})

t.test('a stream ends when its caller may no longer see the profile', async (t) => {
  let claims: object = { allowedProfiles: ['alpha'] }
  const { api, call, engine } = await buildServer(t, {
    authenticate: () => claims,
    profiles: DECLARED.map(provider),
  })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'alpha' })
  const client = await attach(t, api, json.id)
  claims = { allowedProfiles: ['beta'] }
  client.send({ type: 'user_message', text: 'still there?' })
  t.match(await client.untilClosed(), { code: 4401 })
  t.same(engine.last.sent, [], 'and what it sent was not carried out')
})
