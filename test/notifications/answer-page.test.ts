import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import type { SessionEvent } from '../../schemas/events.js'
import { ANSWER_KEY, newAnswerKey } from '../../src/notifications/answers/answer-keys.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { type BuildOptions, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { rounds } from '../fixtures/rounds.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

const RACES = rounds(60, 1_000)

/** A server whose channel gets links; `link` is one to a request of a new session, at the address where it is served. */
async function world(t: Test, { notifications, ...more }: BuildOptions = {}) {
  const sink = await WebhookSink.start(t)
  const built = await buildServer(t, {
    authenticate: ({ headers }) => headers.authorization === 'Bearer ann' && { name: 'ann' },
    notifications: {
      channels: [{ format: 'webhook', name: 'phone', url: sink.url, events: ['permission_requested'] }],
      publicUrl: 'https://gateway.example',
      answerLinks: true,
      ...notifications,
    },
    ...more,
  })
  const ann = { authorization: 'Bearer ann' }
  const call = (method: string, path: string, body?: unknown) => built.call(method, path, body, ann)
  const here = (link: string) => link.replace('https://gateway.example', built.url)
  const ask = async (session: object = {}, input: object = { command: 'ls' }, toolName = 'Bash') => {
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x', title: 'My session', ...session })
    const runner = built.engine.last
    await until(() => runner.sent.length === 1)
    const told = sink.received.length
    const decision = runner.host.requestPermission({ toolName, toolUseId: 't', input })
    decision.catch(() => {})
    await until(() => sink.received.length > told)
    const { body } = sink.received[told]!
    const link = body.answerUrl === undefined ? '' : here(body.answerUrl)
    return { id: String(json.id), requestId: String(body.request.id), link, decision, runner, body }
  }
  const events = async (id: string) => (await call('GET', `/sessions/${id}/events`)).json.events as SessionEvent[]
  return { ...built, call, ask, events, sink }
}

const post = (link: string, form: Record<string, string> | string = {}, headers: Record<string, string> = {}) =>
  fetch(link, { method: 'POST', body: new URLSearchParams(form), headers, redirect: 'manual' })

/** Begins at some moment of a race. */
async function later<T>(run: () => Promise<T>): Promise<T> {
  for (let turns = Math.random() * 60; turns > 0; turns--) await new Promise(setImmediate)
  return run()
}

/** From each address only so many answers are taken a minute. */
const PER_ADDRESS = 40
const addresses = Array.from(
  { length: Math.ceil(RACES / PER_ADDRESS) },
  (_, n) => new Agent({ connect: { localAddress: `127.1.0.${n + 1}` } }),
)
t.teardown(() => Promise.all(addresses.map((agent) => agent.close())))

/** Allows by a link. */
async function allowBy(link: string, race: number): Promise<number> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const dispatcher = addresses[race % addresses.length]!
  const { statusCode, body } = await request(link, { method: 'POST', headers, body: 'behavior=allow', dispatcher })
  await body.dump()
  return statusCode
}

t.test('a link leads to a page for whoever holds it, and its form answers', async (t) => {
  const { ask, events, call } = await world(t)
  const { link, decision, id, body } = await ask()
  t.match(body.answerUrl, /^https:\/\/gateway\.example\/v1\/answer\?token=[\w.-]+$/)
  for (const method of ['GET', 'HEAD', 'GET']) {
    const page = await fetch(link, { method })
    t.equal(page.status, 200)
    const headers = Object.fromEntries(page.headers)
    t.match(headers, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': /^default-src 'none'/,
      'referrer-policy': 'no-referrer',
      'x-robots-tag': /noindex/,
      'cache-control': 'no-store',
    })
    const text = await page.text()
    if (method === 'GET')
      t.match(text, /My session[\s\S]*scripted[\s\S]*Bash[\s\S]*phone[\s\S]*<h2>command<\/h2><pre>ls<\/pre>/)
  }
  t.equal((await call('GET', `/sessions/${id}`)).json.pendingPermissions, 1, 'looking changes nothing')
  const answer = await post(link, { behavior: 'deny', message: 'not now' }, { origin: 'null' })
  t.equal(answer.status, 200)
  t.match(await answer.text(), /Denied/)
  t.same(await decision, { behavior: 'deny', message: 'not now' })
  const resolved = (await events(id)).find(({ type }) => type === 'permission_resolved')
  t.match(resolved, { resolvedBy: 'client', by: { channel: 'link' }, message: 'not now' })
  for (const again of [await fetch(link), await post(link, { behavior: 'allow' })]) {
    t.ok(again.status === 410 || again.status === 409)
    // pressed twice, or loaded again: it may be the same person
    t.match(await again.text(), /was denied by this link, or one like it. If that was you, your answer was taken/)
  }
  t.equal((await events(id)).filter(({ type }) => type === 'permission_resolved').length, 1)
})

t.test('the page says who was first, whichever way', async (t) => {
  const { ask, call, clock } = await world(t)
  const over = await ask()
  await call('POST', `/sessions/${over.id}/permissions/${over.requestId}`, { behavior: 'allow' })
  t.match(await (await fetch(over.link)).text(), /It was allowed by ann, over the API/)
  const late = await ask({ approvalTimeoutMs: 60_000 })
  await clock.advance(60_000)
  await late.decision
  t.match(await (await post(late.link, { behavior: 'allow' })).text(), /Nobody answered in time/)
  const gone = await ask()
  await call('DELETE', `/sessions/${gone.id}`)
  const page = await fetch(gone.link)
  t.equal(page.status, 410)
  t.match(await page.text(), /not there any more/)
})

t.test('what somebody has written who was not first is on the page that says so', async (t) => {
  const { ask, call } = await world(t)
  const words = 'Not <b>that</b> one'
  const { link, id } = await ask()
  const refused = await (await post(link, { behavior: 'no', message: words })).text()
  t.match(refused, /What you have written.*<pre>Not &lt;b&gt;that&lt;\/b&gt; one<\/pre>/)
  await call('POST', `/sessions/${id}/commands`, { type: 'interrupt' })
  const late = await post(link, { behavior: 'deny', message: words })
  t.equal(late.status, 409)
  t.match(await late.text(), /What you have written.*<pre>Not &lt;b&gt;that&lt;\/b&gt; one<\/pre>/)
  t.notMatch(await (await post(link, { behavior: 'deny' })).text(), 'What you have written')
  await call('DELETE', `/sessions/${id}`)
  t.match(await (await post(link, { behavior: 'allow', 'text-0': words })).text(), 'What you have written')
  const forged = await post(`${link}x`, { behavior: 'deny', message: words })
  t.notMatch(await forged.text(), 'have written', 'and nobody has others shown what he likes')
})

t.test('a link that is forged, expired, cut, or put together of others changes nothing and says nothing', async (t) => {
  const storage = createMemoryStorage()
  const { ask, call, clock } = await world(t, { storage, notifications: { answerLinkTtlMs: 60_000 } as never })
  const [one, other] = [await ask(), await ask()]
  const token = (link: string) => new URL(link).searchParams.get('token')!
  const base = one.link.slice(0, one.link.indexOf('?'))
  const [claims, signature] = token(one.link).split('.')
  const [otherClaims] = token(other.link).split('.')
  const decoded = JSON.parse(Buffer.from(claims!, 'base64url').toString())
  const forged = (change: (claims: unknown[]) => void) => {
    const copy = [...decoded]
    change(copy)
    return `${Buffer.from(JSON.stringify(copy)).toString('base64url')}.${signature}`
  }
  const wrong = [
    '',
    '?token=',
    `?token=${claims}`,
    `?token=${claims}.`,
    `?token=${otherClaims}.${signature}`,
    `?token=${token(one.link).slice(0, -1)}`,
    `?token=${token(one.link)}A`,
    `?token=${token(one.link)}&token=${token(one.link)}`,
    `?token[]=${token(one.link)}`,
    `?token=${forged((all) => all.splice(0, 1, other.id))}`,
    `?token=${forged((all) => all.splice(1, 1, other.requestId))}`,
    `?token=${forged((all) => all.splice(2, 1, 'webhook'))}`,
    `?token=${forged((all) => all.splice(4, 1, 9e15))}`,
    `?token=${'x'.repeat(6_000)}`,
    '?token=%00.%ff',
  ]
  const texts = new Set<string>()
  for (const query of wrong)
    for (const page of [await fetch(base + query), await post(base + query, { behavior: 'allow' })]) {
      t.equal(page.status, 404, query.slice(0, 80))
      texts.add(await page.text())
    }
  t.equal(texts.size, 1, 'nobody can tell which of them was nearly right')
  for (const form of ['', 'behavior=maybe', 'x=1']) t.equal((await post(one.link, form)).status, 400, form)
  t.equal(
    (
      await fetch(one.link, {
        method: 'POST',
        body: '{"behavior":"allow"}',
        headers: { 'content-type': 'application/json' },
      })
    ).status,
    415,
  )
  t.equal((await post(one.link, { behavior: 'deny', message: 'x'.repeat(1_100_000) })).status, 413)
  for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const { status, headers } = await fetch(one.link, { method })
    t.same([status, headers.get('allow')], [405, 'GET, HEAD, POST'], `${method}: the link is good for its own methods`)
  }
  await storage.channels!.saveKey(ANSWER_KEY, newAnswerKey())
  t.equal((await post(one.link, { behavior: 'allow' })).status, 404, 'after a rotation')
  t.equal((await call('GET', `/sessions/${one.id}`)).json.pendingPermissions, 1)
  const fresh = await ask()
  await clock.advance(60_000)
  t.equal((await post(fresh.link, { behavior: 'allow' })).status, 410, 'expired')
  t.equal((await call('GET', `/sessions/${fresh.id}`)).json.pendingPermissions, 1)
})

t.test('only that route is open, and only when links are on', async (t) => {
  const { api } = await world(t)
  for (const path of ['/sessions', '/notifications', '/answer/x', '/answers'])
    t.equal((await fetch(api + path)).status, 401, path)
  const off = await world(t, { notifications: { answerLinks: false } as never })
  const { body } = await off.ask()
  t.equal(body.answerUrl, undefined)
  t.equal((await off.call('GET', '/answer?token=a.b')).status, 404)
})

t.test('an answer that is none says what is missing, and not in the names of fields', async (t) => {
  const { ask } = await world(t)
  const questions = [{ question: 'Which?', header: 'Base', options: [{ label: 'A' }, { label: 'B' }] }]
  const { link } = await ask({}, { questions }, 'AskUserQuestion')
  const rows: [form: string, said: string][] = [
    ['behavior=allow', 'Each question needs an answer.'],
    ['behavior=allow&choice-0=C', 'That is none of the options.'],
    ['behavior=allow&choice-0=A&choice-0=B', 'This question takes one option.'],
    [`behavior=allow&text-0=${'x'.repeat(2_001)}`, 'Write at most 2000 characters.'],
    ['', 'Press one of the two buttons.'],
    ['behavior=allow&behavior=deny', 'The form says one thing twice.'],
    ['behavior=deny&message=Yes&message=No', 'The form says one thing twice.'],
    ['behavior=allow&text-0=A&text-0=B', 'The form says one thing twice.'],
  ]
  for (const [form, said] of rows) {
    const refused = await post(link, form)
    t.equal(refused.status, 400, said)
    t.match(await refused.text(), `<h1>That is no answer</h1><p>${said} Go back to answer.</p>`)
  }
  const taken = await post(link, 'behavior=allow&choice-0=A')
  t.equal(taken.status, 200, 'and nothing of it counted')
  t.match(await taken.text(), '<h1>Answered</h1>')
})

t.test('all that its form lets somebody write is taken', async (t) => {
  const { ask, events } = await world(t)
  const questions = Array.from({ length: 4 }, (_, at) => ({ question: `${at}?`, options: [] }))
  const { link, id } = await ask({}, { questions }, 'AskUserQuestion')
  const words = '\u6F6E'.repeat(2_000)
  const form = Object.fromEntries(questions.map((_, at) => [`text-${at}`, words]))
  t.equal((await post(link, { behavior: 'allow', ...form })).status, 200)
  const answered = (await events(id)).find(({ type }) => type === 'permission_resolved')
  t.match(answered, { behavior: 'allow', updatedInput: { answers: { '3?': words } } })
})

t.test('whoever knocks too often has to wait', async (t) => {
  const { ask, call } = await world(t)
  const { link, id } = await ask()
  let last = await fetch(link)
  for (let knock = 0; knock < 70 && last.status === 200; knock++) last = await fetch(link)
  t.match(last, { status: 429 })
  t.ok(Number(last.headers.get('retry-after')) > 0)
  t.match(await last.text(), /Slow down/)
  t.equal((await post(link, { behavior: 'allow' })).status, 429)
  const words = await (await post(link, { behavior: 'deny', message: 'Not on Fridays' })).text()
  t.match(words, /What you have written.*<pre>Not on Fridays<\/pre>/, 'and loses no words by it')
  t.equal((await call('GET', `/sessions/${id}`)).status, 200, 'and nobody else')
})

t.test('whoever guesses at links keeps nobody from a link of their own, from the same address', async (t) => {
  const { ask } = await world(t)
  const [first, second] = [await ask(), await ask()]
  const guess = (n: number) => fetch(`${first.link.slice(0, -43)}${String(n).padStart(43, 'A')}`)
  let last = await guess(0)
  for (let knock = 1; knock < 70 && last.status === 404; knock++) last = await guess(knock)
  t.equal(last.status, 429, 'guesses are counted together')
  const forged = await post(`${first.link}x`, { message: 'Not on Fridays' })
  t.equal(forged.status, 429)
  t.notMatch(await forged.text(), 'Fridays')
  t.equal((await fetch(first.link)).status, 200)
  t.equal((await post(second.link, { behavior: 'deny' })).status, 200)
  t.equal((await post(second.link, { behavior: 'deny' })).status, 409)
})

t.test(`of ${RACES} races of a link, the API, the time limit and DELETE exactly one wins`, async (t) => {
  const { ask, call, clock, events } = await world(t, { sessionRetentionMs: 3_600_000 })
  const wins: Record<string, number> = {}
  const win = (who: string) => {
    wins[who] = (wins[who] ?? 0) + 1
    return 1
  }
  const overRest = async (id: string, requestId: string) => {
    const answer = { behavior: 'deny', message: 'rest' }
    const { status } = await call('POST', `/sessions/${id}/permissions/${requestId}`, answer)
    return status === 200 ? win('rest') : 0
  }
  for (let race = 0; race < RACES; race++) {
    const { id, requestId, link, decision } = await ask({ approvalTimeoutMs: 1_000 })
    const deletes = race % 5 === 0
    const contenders = [
      () => allowBy(link, race).then((status) => (status === 200 ? win('link') : 0)),
      () => later(() => overRest(id, requestId)),
      () => later(() => clock.advance(1_000)).then(() => 0),
      ...(deletes ? [() => later(() => call('DELETE', `/sessions/${id}`)).then(() => 0)] : []),
    ].sort(() => Math.random() - 0.5)
    const answered = (await Promise.all(contenders.map((contend) => contend()))).reduce((sum, won) => sum + won, 0)
    const { behavior, message } = (await decision) as { behavior: string; message?: string }
    const isRest = message === 'rest'
    if (answered > 1) t.fail(`race ${race}: two were told that they won`)
    if (answered === 1 && !(behavior === 'allow' || isRest || deletes))
      t.fail(`race ${race}: told that it won, and it did not`)
    if (answered === 0) win('clock or DELETE')
    if (deletes) continue
    const told = (await events(id)).filter(({ type }) => type === 'permission_resolved')
    if (told.length !== 1) t.fail(`race ${race}: ${told.length} settlements`)
    await call('DELETE', `/sessions/${id}`)
  }
  t.comment(wins)
  t.equal(
    Object.values(wins).reduce((sum, count) => sum + count, 0),
    RACES,
  )
})
