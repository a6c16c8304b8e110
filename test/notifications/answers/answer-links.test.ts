import t, { type Test } from 'tap'
import type { PermissionRequest, ResolvePermissionRequest } from '../../../schemas/permissions.js'
import { GatewayError } from '../../../src/errors.js'
import { ANSWER_KEY, AnswerKeys, newAnswerKey } from '../../../src/notifications/answers/answer-keys.js'
import {
  AnswerLinks,
  type AnswerLinksOptions,
  type AnswerView,
  type Resolved,
} from '../../../src/notifications/answers/answer-links.js'
import { ANSWER_PAGE_HEADERS, answerPage } from '../../../src/notifications/answers/page.js'
import { createMemoryChannelStore } from '../../../src/storage/memory/channel-store.js'
import { notification } from '../../fixtures/told.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'

/** Links to one session with one request, as the registry would have it. */
function world(_t: Test, more: Partial<AnswerLinksOptions> = {}) {
  const clock = new VirtualClock()
  const store = createMemoryChannelStore()
  const told = { ...notification({}), ts: clock.now() }
  const state = { waits: true, there: true, isLate: false, answers: [] as ResolvePermissionRequest[] }
  const resolved: Resolved = { type: 'permission_resolved', requestId: 'r', behavior: 'deny', resolvedBy: 'client' }
  const links = new AnswerLinks({
    ...{ clock, keys: new AnswerKeys(store), pageUrl: 'https://gateway.example/v1/answer', ttlMs: 1_000, limits: {} },
    recipient: (channel) => (channel === 'phone' ? 'phone' : undefined),
    sessions: {
      async waiting() {
        if (!state.there) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
        return state.waits ? { request: told.request as PermissionRequest, session: told.session } : undefined
      },
      async resolve(_sessionId, _requestId, answer) {
        if (state.isLate) throw new GatewayError('SG_ERR_PERMISSION_NOT_FOUND')
        state.answers.push(answer)
      },
      profileOf: async () => told.session.profile,
      resolution: async () => ({ ...resolved, by: { principal: 'ann', channel: 'rest' } }),
    },
    ...more,
  })
  const tokenOf = async (channel = 'phone') => new URL((await links.urlFor(told, channel))!).searchParams.get('token')!
  const answer = (token: string, form: Record<string, string>) => links.answer(token, new URLSearchParams(form))
  return { clock, store, told, state, links, tokenOf, answer }
}

t.test('a link is looked at as often as one likes, and answers once', async (t) => {
  const { links, tokenOf, answer, state } = world(t)
  const token = await tokenOf()
  for (let look = 0; look < 3; look++)
    t.match(await links.look(token), { state: 'open', recipient: 'phone', canAllow: true })
  t.same(state.answers, [], 'whatever prefetches it')
  t.same(await answer(token, { behavior: 'deny', message: ' not that ' }), {
    taken: { behavior: 'deny', message: 'not that' },
  })
  t.same(state.answers, [{ behavior: 'deny', message: 'not that' }])
  state.waits = false
  for (const again of [await links.look(token), await answer(token, { behavior: 'allow' })]) {
    t.match(again, { state: 'settled', resolved: { behavior: 'deny', by: { principal: 'ann' } } })
    t.match(answerPage(again as AnswerView), /It was denied by ann, over the API, who was first/)
  }
})

t.test('whoever comes between the look and the answer was first', async (t) => {
  const { tokenOf, answer, state } = world(t)
  state.isLate = true
  t.match(await answer(await tokenOf(), { behavior: 'allow' }), { state: 'settled' })
})

t.test('a link ends with its time, its request, its key, its channel and its session', async (t) => {
  const { clock, links, tokenOf, told, state, store } = world(t)
  const token = await tokenOf()
  const other = await tokenOf('removed')
  await t.rejects(links.look(other), { code: 'SG_ERR_ANSWER_LINK' }, 'of a channel that is none')
  state.there = false
  await t.rejects(links.look(token), { code: 'SG_ERR_ANSWER_LINK_EXPIRED' })
  state.there = true
  await clock.advance(1_000)
  await t.rejects(links.look(token), { code: 'SG_ERR_ANSWER_LINK_EXPIRED' })
  t.equal(await links.urlFor(told, 'phone'), undefined, 'and nobody is sent a dead one')
  told.ts = clock.now()
  told.request!.expiresAt = clock.now() + 500
  const short = await tokenOf()
  await clock.advance(500)
  await t.rejects(links.look(short), { code: 'SG_ERR_ANSWER_LINK_EXPIRED' }, 'with its request')
  delete told.request!.expiresAt
  told.ts = clock.now()
  const before = await tokenOf()
  await links.look(before)
  await store.saveKey(ANSWER_KEY, newAnswerKey())
  await t.rejects(links.look(before), { code: 'SG_ERR_ANSWER_LINK' }, 'rotated beside it')
  await links.look(await tokenOf())
})

t.test(
  'a link of a channel that is told of the profile no more shows nothing of a request, settled or not',
  async (t) => {
    const channel: { profile?: string } = {}
    const { links, tokenOf, answer, state, told } = world(t, {
      recipient: (name, profile) => (profile === undefined || profile === channel.profile ? name : undefined),
    })
    channel.profile = told.session.profile
    const token = await tokenOf()
    state.waits = false
    t.match(await links.look(token), { state: 'settled' })
    channel.profile = 'another'
    await t.rejects(links.look(token), { code: 'SG_ERR_ANSWER_LINK' })
    await t.rejects(answer(token, { behavior: 'allow' }), { code: 'SG_ERR_ANSWER_LINK' })
    state.waits = true
    await t.rejects(links.look(token), { code: 'SG_ERR_ANSWER_LINK' })
  },
)

t.test('links may be limited, and a link is held to it whenever it was made', async (t) => {
  const free = world(t)
  const { store } = free
  const token = await free.tokenOf()
  const limitedTo = (limits: AnswerLinksOptions['limits']) => world(t, { limits, keys: new AnswerKeys(store) })
  const deny = limitedTo({ only: 'deny' })
  const view = await deny.links.look(token)
  t.match(view, { canAllow: false })
  t.notMatch(answerPage(view), /value="allow"/)
  await t.rejects(deny.answer(token, { behavior: 'allow' }), { code: 'SG_ERR_VALIDATION' })
  t.match(await deny.answer(token, { behavior: 'deny' }), { taken: { behavior: 'deny' } })
  const others = limitedTo({ tools: ['Read'] })
  t.equal(await others.links.urlFor(others.told, 'phone'), undefined)
  await t.rejects(others.links.look(token), { code: 'SG_ERR_ANSWER_LINK' })
  t.match(await limitedTo({ tools: ['Bash'] }).links.look(token), { state: 'open' })
})

t.test('only requests that wait have links', async (t) => {
  const { links, told } = world(t)
  const { request, ...rest } = told
  t.equal(await links.urlFor({ ...rest, type: 'turn_completed' }, 'phone'), undefined)
  t.ok(request)
})

t.test('what an agent wrote is shown as what it is, and an input that is not shown is not allowed', async (t) => {
  const { links, tokenOf, told, answer } = world(t)
  Object.assign(told.session, { title: '<script>alert(1)</script>' })
  told.request!.input = { command: 'echo "\u202Egnirts\u202C" > <b>\u200b.txt', other: 'it\'s & "quoted"' }
  const page = answerPage(await links.look(await tokenOf()))
  t.notMatch(page, /<script|<b>|[\u202E\u200B]/)
  t.match(page, /&lt;script&gt;alert\(1\)/)
  t.match(page, /\\u\{202e\}gnirts/, 'a mark that turns the reading direction is written out')
  t.notMatch(page, /<script|https?:|url\(| on\w+=/, 'no script, and nothing is loaded')
  told.request!.input = { command: 'cd web\nnpm test', 'a<b': '', limits: { seconds: 5 } }
  const lines = answerPage(await links.look(await tokenOf()))
  t.match(lines, '<h2>command</h2><pre>cd web\nnpm test</pre><h2>a&lt;b</h2><pre>&quot;&quot;</pre>')
  t.match(lines, '<h2>limits</h2><pre>{\n  &quot;seconds&quot;: 5\n}</pre>')
  told.request!.input = { command: 'x'.repeat(300_000) }
  const token = await tokenOf()
  const large = await links.look(token)
  t.match(large, { canAllow: false, isWhole: false })
  t.match(answerPage(large), /can only be denied here/)
  await t.rejects(answer(token, { behavior: 'allow' }), { code: 'SG_ERR_VALIDATION' })
})

t.test('the page lets nothing in, and nobody hears of it', async (t) => {
  const policy = ANSWER_PAGE_HEADERS['content-security-policy']
  t.match(
    policy,
    /^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
  )
  t.match(ANSWER_PAGE_HEADERS, {
    'referrer-policy': 'no-referrer',
    'x-robots-tag': /noindex/,
    'cache-control': 'no-store',
  })
})

const QUESTIONS = {
  questions: [
    {
      question: 'Which database?',
      header: 'Storage',
      options: [{ label: 'SQLite' }, { label: 'Postgres', description: 'on many nodes' }],
    },
    { question: 'What else?', multiSelect: true, options: [{ label: 'Docs' }, { label: 'Tests' }] },
    { question: 'Any name?', options: 'not a list' },
  ],
}

t.test('a question is answered by its options and in words', async (t) => {
  const { links, tokenOf, told, state } = world(t)
  Object.assign(told.request!, { toolName: 'AskUserQuestion', input: QUESTIONS })
  const token = await tokenOf()
  const page = answerPage(await links.look(token))
  t.match(page, /type="radio" name="choice-0" value="Postgres"/)
  t.match(page, /type="checkbox" name="choice-1" value="Docs"/)
  t.match(page, /name="text-2"/)
  // the enter key presses the first button of the form that it is pressed in
  const [answering = '', denying = ''] = page.split('<form').slice(1)
  t.match(answering, /<button name="behavior" value="allow">Answer/)
  t.notMatch(answering, /name="message"|value="deny"/)
  t.match(denying, /name="message".*<button class="deny" name="behavior" value="deny">/s)
  t.notMatch(denying, /value="allow"|choice-|text-/)
  const send = (form: string) => links.answer(token, new URLSearchParams(form))
  const right = 'behavior=allow&choice-0=Postgres&choice-1=Docs&choice-1=Tests&text-1=a+demo&text-2=Fox'
  t.match(await send(right), { taken: { behavior: 'allow' } })
  t.same(state.answers, [
    {
      behavior: 'allow',
      updatedInput: {
        answers: { 'Which database?': 'Postgres', 'What else?': 'Docs, Tests, a demo', 'Any name?': 'Fox' },
      },
    },
  ])
  for (const [form, path] of [
    [right.replace('Postgres', 'Oracle'), 'choice-0'],
    [`${right}&choice-0=SQLite`, 'choice-0'],
    [right.replace('text-2=Fox', 'text-2=+'), 'choice-2'],
    [right.replace('Fox', 'x'.repeat(2_001)), 'text-2'],
    [right.replace('behavior=allow', 'behavior=maybe'), 'behavior'],
    ['', 'behavior'],
    [`${right}&behavior=deny`, 'behavior'],
    [`${right}&text-2=Wolf`, 'text-2'],
    ['behavior=deny&message=Yes&message=No', 'message'],
  ] as const)
    await t.rejects(send(form), { code: 'SG_ERR_VALIDATION', errors: [{ path }] }, form.slice(0, 60))
  t.equal(state.answers.length, 1)
})
