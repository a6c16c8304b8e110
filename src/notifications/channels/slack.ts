import { cutAt } from '../../lib/cut-at.js'
import { shown } from '../shown.js'
import { type ChannelMessage, headlineOf, type RenderContext, type RenderedMessage, requestOf } from './message.js'

/** Of a section's text, and of a button's URL. */
const MAX_TEXT = 3_000
/** Of what a tool is to be given, so that the message stays one that fits on a screen. */
const MAX_INPUT = 1_500
const FENCE = '```'

/** The body of a Slack incoming webhook: blocks, with a button that is a link, and the text that stands in the phone's notification. */
export function renderSlack(message: ChannelMessage, { answerUrl }: RenderContext): RenderedMessage {
  const headline = headlineOf(message)
  const { session, preview } = message
  const request = requestOf(message)
  const input = request && shown(cutAt(JSON.stringify(request.input, null, 1), MAX_INPUT))
  const blocks: object[] = [
    section(`*${escaped(headline)}*\n${escaped(preview)}`),
    ...(request && input !== '{}'
      ? [section(FENCE + cutAt(escaped(input!).replaceAll(FENCE, "'''"), MAX_TEXT - 2 * FENCE.length) + FENCE)]
      : []),
    {
      type: 'context',
      elements: [{ type: 'mrkdwn', verbatim: true, text: `${escaped(session.profile)} · ${escaped(session.id)}` }],
    },
    ...(answerUrl && answerUrl.length <= MAX_TEXT ? [{ type: 'actions', elements: [button(answerUrl)] }] : []),
  ]
  const body = Buffer.from(JSON.stringify({ text: escaped(`${headline}: ${preview}`), blocks }))
  return { headers: { 'content-type': 'application/json' }, body }
}

/** Verbatim: what looks like an address, a name or a mention stays the text that it is. */
const section = (text: string) => ({
  type: 'section',
  text: { type: 'mrkdwn', text: cutAt(text, MAX_TEXT), verbatim: true },
})

const button = (url: string) => ({
  ...{ type: 'button', style: 'primary', url, action_id: 'answer' },
  text: { type: 'plain_text', text: 'Look and answer' },
})

/** What Slack reads as markup, links and mentions included, begins with one of the three; half a character it does not take. */
const escaped = (text: string): string =>
  text
    .replace(/\p{Cs}/gu, '\uFFFD')
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
