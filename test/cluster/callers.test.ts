import t, { type Test } from 'tap'
import type { PermissionDecision } from '../../src/engines/runner.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf, type TestNode } from '../fixtures/cluster.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'
import { hasPostgres } from '../storage/postgres-world.js'

const PUBLIC = 'https://gateway.example'
const scripted = (name: string) => ({ name, engine: 'provider' as const, provider: { id: 'scripted' } })
const unknown = '00000000-0000-4000-8000-000000000000'

/** Gateways whose callers are who their tokens name; `only` sees one profile. */
async function nodesOf(t: Test) {
  const sink = await WebhookSink.start(t)
  const { nodes } = await clusterOf(t, ['a', 'b'], {
    profiles: [scripted('mine'), scripted('theirs')],
    authenticate: ({ headers }) => {
      const name = headers.authorization?.replace('Bearer ', '')
      if (name === 'only') return { name, allowedProfiles: ['mine'] }
      return name === 'ann' && { name, canManageProfiles: true }
    },
    console: {},
    managedProfiles: {},
    queue: {},
    notifications: {
      channels: [{ format: 'webhook', name: 'phone', url: sink.url, events: ['permission_requested'] }],
      ...{ publicUrl: PUBLIC, answerLinks: true },
    },
  })
  const as = (name: string) => (node: TestNode, method: string, path: string, body?: unknown, headers?: object) =>
    node.call(method, path, body, { authorization: `Bearer ${name}`, ...headers })
  const create = async (node: TestNode, profile: string) => {
    const { json } = await as('ann')(node, 'POST', '/sessions', { cwd: SOME_CWD, profile, prompt: 'go' })
    return json.id as string
  }
  return { nodes, sink, ann: as('ann'), only: as('only'), create }
}

if (hasPostgres()) {
  t.test('what a caller may not see is nobody’s at every node, whoever has it', async (t) => {
    const { nodes, only, ann, create } = await nodesOf(t)
    const [a, b] = nodes
    const [mine, theirs] = [await create(a, 'mine'), await create(a, 'theirs')]
    const job = (await ann(a, 'POST', '/jobs', { session: { cwd: SOME_CWD, profile: 'theirs', prompt: 'go' } })).json
    t.match(await ann(b, 'GET', `/jobs/${job.id}`), { status: 200 })
    const hidden = (id: string): [string, string, object?][] => [
      ['GET', `/sessions/${id}`],
      ['PATCH', `/sessions/${id}`, { title: 'taken' }],
      ['DELETE', `/sessions/${id}`],
      ['POST', `/sessions/${id}/commands`, { type: 'close' }],
      ['GET', `/sessions/${id}/events`],
      ['POST', `/sessions/${id}/permissions/${unknown}`, { behavior: 'allow' }],
    ]
    for (const node of nodes) {
      const listed = (await only(node, 'GET', '/sessions')).json as { id: string }[]
      t.same(
        listed.map(({ id }) => id),
        [mine],
        node.name,
      )
      const [ofTheirs, ofNobody] = [hidden(theirs), hidden(unknown)]
      for (const [index, asked] of ofTheirs.entries()) {
        const seen = async ([method, path, body]: [string, string, object?], id: string) => {
          const { status, text } = await only(node, method, path, body)
          return [status, text.replace(/"instance":"[^"]*"/, '').replaceAll(id, 'ID')]
        }
        t.same(
          await seen(asked, theirs),
          await seen(ofNobody[index]!, unknown),
          `${node.name}: ${asked[0]} ${asked[1]}`,
        )
      }
      t.equal((await only(node, 'GET', `/jobs/${job.id}`)).status, 404)
      t.equal((await only(node, 'GET', `/sessions/${mine}`)).status, 200)
    }
    t.match((await ann(b, 'GET', `/sessions/${theirs}`)).json, { id: theirs })
  })

  t.test('a profile that is made at one node is there at the other, and gone from both', async (t) => {
    const { nodes, ann, create } = await nodesOf(t)
    const [a, b] = nodes
    const made = await ann(a, 'POST', '/profiles', scripted('new'))
    t.equal(made.status, 201, made.text)
    t.match(await ann(b, 'GET', '/sessions?profile=new'), { status: 200, json: [] })
    t.match((await ann(b, 'GET', '/profiles/new')).json, { profile: { name: 'new' } })
    const id = await create(b, 'new')
    t.match((await ann(a, 'GET', `/sessions/${id}`)).json, { profile: 'new' })
    t.match(await ann(b, 'POST', '/profiles', scripted('new')), { status: 409 })
    t.match(await ann(b, 'DELETE', '/profiles/new'), { status: 204 })
    t.match(await ann(a, 'GET', '/profiles/new'), { status: 404 })
  })

  t.test('who is signed in at one node is signed in at the other, and signed out of both', async (t) => {
    const { nodes } = await nodesOf(t)
    const [a, b] = nodes
    const signedIn = await a.call('POST', '/console/sessions', { token: 'ann' }, { origin: new URL(a.api).origin })
    t.equal(signedIn.status, 201, signedIn.text)
    const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
    t.match((await b.call('GET', '/console/me', undefined, { cookie })).json, { authenticated: true })
    t.match(await b.call('GET', '/sessions', undefined, { cookie }), { status: 200 })
    const out = await b.call('DELETE', '/console/sessions/current', undefined, {
      cookie,
      origin: new URL(b.api).origin,
    })
    t.ok(out.status < 300, out.text)
    for (const node of nodes)
      t.match(await node.call('GET', '/sessions', undefined, { cookie }), { status: 401 }, node.name)
  })

  t.test('a link to answer by leads to the request over any node, and answers once', async (t) => {
    const { nodes, sink, create } = await nodesOf(t)
    const [a, b] = nodes
    await create(a, 'mine')
    let decided: PermissionDecision | undefined
    const asked = a.engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} })
    void asked.then((decision) => (decided = decision))
    await until(() => sink.received.length > 0, 'a link')
    const at = (node: TestNode) => sink.received[0]!.body.answerUrl.replace(PUBLIC, new URL(node.api).origin)
    for (const node of nodes) t.equal((await fetch(at(node))).status, 200, node.name)
    const answer = (node: TestNode, behavior: string) =>
      fetch(at(node), { method: 'POST', body: new URLSearchParams({ behavior }) })
    t.match(await (await answer(b, 'deny')).text(), /denied/i)
    await until(() => decided !== undefined, 'the decision')
    t.match(decided, { behavior: 'deny' })
    t.match(await (await answer(a, 'allow')).text(), /was denied/)
  })
}
