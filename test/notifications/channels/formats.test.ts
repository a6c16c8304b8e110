import t from 'tap'
import { oneLine } from '../../../src/lib/one-line.js'
import type { ToldNotification } from '../../../src/notifications/channels/message.js'
import { headlineOf, tagOf } from '../../../src/notifications/channels/message.js'
import { renderNtfy } from '../../../src/notifications/channels/ntfy.js'
import { renderSlack } from '../../../src/notifications/channels/slack.js'
import { newVapidKeys, renderWebPush } from '../../../src/notifications/channels/web-push.js'
import { PushService } from '../../fixtures/push-service.js'
import { notification } from '../../fixtures/told.js'

const URL_OF_ANSWER = 'https://gateway.example/v1/answer?token=abc.def'
const context = { id: 's:7', now: 1_000, answerUrl: URL_OF_ANSWER }
const long = 'ü'.repeat(5_000)

t.test('what is about one request has one tag, and what is not has its own', async (t) => {
  const asked = notification({})
  const reminder: ToldNotification = { ...asked, reminder: 1 }
  const { session, preview } = asked
  const settled = {
    type: 'permission_resolved',
    sessionId: 's',
    seq: 9,
    ts: 1,
    preview,
    session,
    requestId: 'r',
  } as const
  t.equal(tagOf(asked), tagOf(reminder))
  t.equal(tagOf(asked), tagOf(settled))
  t.not(tagOf(asked), tagOf(notification({ request: { ...asked.request!, id: 'other' } })))
  t.not(tagOf(asked), tagOf(notification({ sessionId: 'other' })))
  t.match(tagOf(asked), /^[\w-]{32}$/, 'fit for the Topic of a push service and the sequence id of ntfy')
  t.equal(headlineOf(asked), 'Needs an answer: The report')
  t.equal(headlineOf(reminder), 'Still waiting: The report')
})

t.test('Slack: blocks with a link, and nothing of an agent is markup', async (t) => {
  const told = notification({ preview: '<!channel> & <https://evil.example|click>', input: { command: 'echo ```<b>' } })
  const { headers, body } = renderSlack(told, context)
  t.equal(headers['content-type'], 'application/json')
  const { text, blocks } = JSON.parse(body.toString())
  t.equal(text, 'Needs an answer: The report: &lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;')
  const whole = JSON.stringify(blocks)
  t.notMatch(whole, /<!channel>|<https/)
  t.equal(whole.split('```').length, 3, 'one fence, opened and closed')
  t.match(blocks.at(-1), { type: 'actions', elements: [{ type: 'button', url: URL_OF_ANSWER }] })
  const without = JSON.parse(renderSlack(told, { ...context, answerUrl: undefined }).body.toString())
  t.notOk(
    without.blocks.some(({ type }: { type: string }) => type === 'actions'),
    'no button without a link',
  )
  for (const input of [{ command: '&'.repeat(9_000) }, { command: '`'.repeat(9_000) }]) {
    const { blocks } = JSON.parse(renderSlack(notification({ input }), context).body.toString())
    for (const { text } of blocks) t.ok((text?.text.length ?? 0) <= 3_000, 'Slack takes it')
  }
})

t.test(
  'what an agent writes is shown as it is, whatever marks it holds, and never keeps a message from being sent',
  async (t) => {
    const hostile = '\u202Egpj.exe\u2066 <!channel> <!here> *bold* @everyone ```\r\nx-actions: view\r\n\0\u200B'
    // cut in the middle of a character, and one that is half from the beginning
    const halves = [`${'x'.repeat(1_486)}${'🦊'.repeat(2_000)}`, `${'x'.repeat(1_487)}${'🦊'.repeat(2_000)}`, '\uD83E']
    for (const text of [hostile, ...halves, 'y'.repeat(1_000_000)]) {
      const told = notification({ title: text, preview: oneLine(text), input: { command: text } })
      const slack = renderSlack(told, context).body.toString()
      JSON.parse(slack, (_key, value) => {
        if (typeof value === 'string') t.notMatch(value, /\p{Cs}/u, 'no half character, which Slack refuses')
        return value
      })
      t.ok(slack.length < 20_000, `${slack.length}`)
      const { blocks } = JSON.parse(slack)
      const input = blocks[1].text.text as string
      t.notMatch(input, /[\u202E\u2066\u200B]/, 'nothing turns the text around')
      t.notMatch(slack, /<!/)
      for (const { text, elements = [] } of blocks)
        for (const one of [text, ...elements])
          if (one?.type === 'mrkdwn') t.equal(one.verbatim, true, 'no name or address is made a link or a mention')
      const ntfy = renderNtfy(told, context)
      for (const value of Object.values(ntfy.headers)) t.match(value, /^[ -~]*$/)
      t.same(Object.keys(ntfy.headers).sort(), [
        ...['actions', 'click', 'content-type', 'priority', 'tags', 'title', 'x-sequence-id'],
      ])
      t.ok(ntfy.body.length <= 4_096)
      const [, , ...shown] = ntfy.body.toString().split('\n')
      t.notMatch(shown.join('\n'), /[\u202E\u2066\u200B\0]/)
      t.notMatch(ntfy.body.toString(), /\uFFFD\uFFFD/, 'cut at a whole character')
    }
  },
)

t.test('ntfy: headers that are ASCII whatever a session is called, and a body that is no attachment', async (t) => {
  const { headers, body } = renderNtfy(
    notification({ title: `Bericht über 🦊 ${long}`, input: { command: long } }),
    context,
  )
  t.match(headers, { priority: '4', click: URL_OF_ANSWER, 'x-sequence-id': /^[\w-]{1,64}$/ })
  t.match(JSON.parse(headers.actions!), [{ action: 'view', url: URL_OF_ANSWER }])
  for (const value of Object.values(headers)) t.match(value, /^[ -~]*$/)
  const words = headers.title!.split(' ')
  for (const word of words) t.ok(word.length <= 75, `${word.length} characters`)
  const decoded = words
    .map((word) => Buffer.from(/^=\?UTF-8\?B\?(.*)\?=$/.exec(word)![1]!, 'base64').toString())
    .join('')
  t.ok(decoded.startsWith('Needs an answer: Bericht über 🦊'), decoded)
  t.ok(body.length <= 4_096)
  t.notMatch(body.toString(), /\uFFFD/, 'cut at a whole character')
  t.same(renderNtfy(notification({}), { ...context, answerUrl: undefined }).headers.actions, undefined)
})

t.test('web push: a browser can read it, its service knows the sender', async (t) => {
  const service = await PushService.start(t)
  const browser = service.subscribe()
  const keys = newVapidKeys()
  service.publicKey = keys.publicKey
  const from = { subject: 'mailto:ops@example.com', ...keys }
  const send = async (told: ToldNotification, id: string) => {
    const { headers, body } = renderWebPush(told, { ...context, id }, { to: browser, from })
    const { status } = await fetch(browser.endpoint, { method: 'POST', headers, body: new Uint8Array(body) })
    return status
  }
  t.equal(await send(notification({}), 'a'), 201)
  t.equal(
    await send(notification({ title: long, preview: long, profile: long }), 'b'),
    201,
    'however long the words are',
  )
  const expiring = notification({})
  expiring.request!.expiresAt = 61_000
  t.equal(await send(expiring, 'c'), 201)
  t.same(service.faults, [])
  t.match(browser.received[0], {
    message: {
      ...{ id: 'a', type: 'permission_requested', sessionId: 's', seq: 7, requestId: 'r', url: URL_OF_ANSWER },
      ...{ title: 'Needs an answer: The report', body: 'Bash asks to run', tag: tagOf(notification({})) },
    },
    headers: { topic: tagOf(notification({})), urgency: 'high', ttl: '86400' },
  })
  t.equal(browser.received[2]?.headers.ttl, '60', 'kept no longer than it is waited for')
  const other = renderWebPush(notification({}), context, { to: browser, from: { ...from, ...newVapidKeys() } })
  await fetch(browser.endpoint, { method: 'POST', headers: other.headers, body: new Uint8Array(other.body) })
  t.match(service.faults, [/another key/], 'the stand-in does look')
})
