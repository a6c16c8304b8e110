import t from 'tap'
import type { Message, MessageBlock } from '../../../schemas/events.js'
import { shownOf } from '../../../src/engines/provider/cut-off.js'
import { providerEngine } from '../../../src/engines/provider/index.js'
import type { CutOffTurn } from '../../../src/engines/runner.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { open } from './host.js'

const said = (...content: unknown[]): Message => ({ role: 'assistant', content: content as MessageBlock[] })
const text = (text: string) => ({ type: 'text', text })
const thinking = (thinking: string) => ({ type: 'thinking', thinking })
const call = (id: string, name = 'fs_read', input: unknown = {}) => ({ type: 'tool_use', id, name, input })
const result = (id: string, content: unknown, rest: object = {}): Message => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: id, content, ...rest } as MessageBlock],
})
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }

const LOST = 'The files of the session are as they were before the turn'
const FILES_LOST =
  '(This turn was cut off: the process that ran it ended. The files of the session are as they were before the turn, some that it delivered aside; what else it wrote to them is lost.)'
const CUT = `${'x'.repeat(200_000)}\n[100000 more characters were left out]`
const asked = (content: string | RegExp) => ({ role: 'user', content })
const shownCall = (toolCallId: string, rest: object = {}) => ({ type: 'tool-call', toolCallId, ...rest })
const output = (toolCallId: string, value: unknown, type = 'text') => ({
  type: 'tool-result',
  toolCallId,
  output: { type, value },
})

interface Row {
  what: string
  turns: CutOffTurn[]
  shown: object[]
  model?: string
  takesImages?: boolean
  sealsThinking?: boolean
}

const ROWS: Row[] = [
  { what: 'nothing that was cut off', turns: [], shown: [] },
  { what: 'a message without an answer', turns: [{ prompt: 'go', messages: [] }], shown: [asked('go')] },
  { what: 'neither a message nor an answer', turns: [{ prompt: ' \n', messages: [] }], shown: [] },
  {
    what: 'an answer that broke off',
    turns: [{ prompt: 'go', messages: [said(thinking('hm'), text('I be'), text('gin'))] }],
    shown: [asked('go'), { role: 'assistant', content: 'I begin' }],
  },
  {
    what: 'of a result that came, and was not told, as much as of any other',
    turns: [
      {
        prompt: 'go',
        messages: [said(call('a')), result('a', 'x'.repeat(300_000)), said(call('b')), result('b', CUT)],
      },
    ],
    shown: [
      asked('go'),
      { role: 'assistant', content: [shownCall('a')] },
      { role: 'tool', content: [output('a', CUT)] },
      { role: 'assistant', content: [shownCall('b')] },
      { role: 'tool', content: [output('b', `${CUT}\n\n${FILES_LOST}`)] },
    ],
  },
  {
    what: 'results right after their calls, in the order of these, whenever they came',
    turns: [
      {
        prompt: 'go',
        messages: [
          said(text('Both.'), call('a', 'fs_read', { path: 'x' }), call('b')),
          result('b', 'second'),
          result('a', [text('first')], { is_error: true }),
          said(call('c')),
          result('c', ''),
        ],
      },
    ],
    shown: [
      asked('go'),
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Both.' },
          shownCall('a', { toolName: 'fs_read', input: { path: 'x' } }),
          shownCall('b'),
        ],
      },
      { role: 'tool', content: [output('a', 'first', 'error-text'), output('b', 'second')] },
      { role: 'assistant', content: [shownCall('c')] },
      { role: 'tool', content: [output('c', RegExp(`^\n\n\\(This turn was cut off: .*${LOST}`))] },
    ],
  },
  {
    what: 'a call without a result, which may have taken effect',
    turns: [{ prompt: 'go', messages: [said(call('a'), call('b')), result('a', 'done')] }],
    shown: [
      asked('go'),
      { role: 'assistant', content: [shownCall('a'), shownCall('b')] },
      {
        role: 'tool',
        content: [
          output('a', 'done'),
          output('b', RegExp(`may or may not have taken effect.*${LOST}`, 's'), 'error-text'),
        ],
      },
    ],
  },
  {
    what: 'a call that nobody had allowed, and those behind it, which do not begin before',
    turns: [
      {
        prompt: 'go',
        messages: [
          said(call('refused')),
          result('refused', 'No.', { is_error: true }),
          said(call('a'), call('b'), call('c'), call('d')),
          result('b', 'done'),
        ],
        denied: ['refused', 'c'],
      },
    ],
    shown: [
      asked('go'),
      { role: 'assistant' },
      { role: 'tool', content: [output('refused', 'No.', 'error-text')] },
      { role: 'assistant' },
      {
        role: 'tool',
        content: [
          output('a', /may or may not have taken effect/, 'error-text'),
          output('b', 'done'),
          output('c', /did not run/, 'error-text'),
          output('d', RegExp(`did not run.*${LOST}`, 's'), 'error-text'),
        ],
      },
    ],
  },
  {
    what: 'a result without its call, whose beginning was too long ago',
    turns: [{ prompt: 'go', messages: [result('a', 'lost'), said(call('b')), result('b', 'kept')] }],
    shown: [
      asked('go'),
      { role: 'assistant', content: [shownCall('b')] },
      { role: 'tool', content: [output('b', /^kept\n\n/)] },
    ],
  },
  {
    what: 'several turns, whose ids are each their own',
    turns: [
      { prompt: 'one', messages: [said(call('a')), result('a', 'of one')] },
      { prompt: 'two', messages: [said(call('a'))] },
    ],
    shown: [
      asked('one'),
      { role: 'assistant' },
      { role: 'tool', content: [output('a', /^of one\n\n/)] },
      asked('two'),
      { role: 'assistant' },
      { role: 'tool', content: [output('a', /may or may not/, 'error-text')] },
    ],
  },
  {
    what: 'a turn whose message is lost: no transcript begins with the model',
    turns: [{ messages: [said(text('so'))] }],
    shown: [asked(/not known/), { role: 'assistant', content: 'so' }],
  },
  {
    what: 'names and ids that a vendor refuses, and an input that is none',
    turns: [{ prompt: 'go', messages: [said(call('a|b', 'do it', 'text')), result('a|b', 'x')] }],
    shown: [
      asked('go'),
      { role: 'assistant', content: [shownCall(/^call_[\w-]+$/ as never, { toolName: 'unknown_do_it', input: {} })] },
      { role: 'tool', content: [{ toolCallId: /^call_[\w-]+$/, toolName: 'unknown_do_it' }] },
    ],
  },
  {
    what: 'blank text beside a call, and half a character',
    turns: [{ prompt: 'go\ud800', messages: [said(text('\n'), call('a', 'fs_read', { path: '\udc00' }))] }],
    shown: [
      asked('go\ufffd'),
      { role: 'assistant', content: [shownCall('a', { input: { path: '\ufffd' } })] },
      { role: 'tool' },
    ],
  },
  {
    what: 'an image, where the provider takes it',
    turns: [{ prompt: 'go', messages: [said(call('a')), result('a', [text('see'), image])] }],
    takesImages: true,
    shown: [
      asked('go'),
      { role: 'assistant' },
      {
        role: 'tool',
        content: [
          output(
            'a',
            [
              text('see'),
              { type: 'image-data', data: 'AAAA', mediaType: 'image/png' },
              { type: 'text', text: RegExp(LOST) },
            ],
            'content',
          ),
        ],
      },
    ],
  },
  {
    what: 'an image, where it does not',
    turns: [{ prompt: 'go', messages: [said(call('a')), result('a', [text('see'), image, { type: 'odd', n: 1 }])] }],
    shown: [
      asked('go'),
      { role: 'assistant' },
      { role: 'tool', content: [output('a', /^see\n\[An image was left out.*\n\{"type":"odd","n":1\}\n\(This turn/)] },
    ],
  },
  {
    what: 'what was thought before a call, to a model that refuses a call without',
    turns: [{ prompt: 'go', messages: [said(thinking('hm'), call('a'), thinking('behind'))] }],
    shown: [
      asked('go'),
      { role: 'assistant', content: [{ type: 'reasoning', text: 'hm' }, shownCall('a')] },
      { role: 'tool' },
    ],
  },
  ...[{ sealsThinking: true }, { model: 'claude-opus' }].map((to) => ({
    what: `no thinking, whose seal is gone, to ${JSON.stringify(to)}`,
    turns: [{ prompt: 'go', messages: [said(thinking('hm'), text('so'), call('a'))] }],
    ...to,
    shown: [
      asked('go'),
      { role: 'assistant', content: [{ type: 'text', text: 'so' }, shownCall('a')] },
      { role: 'tool' },
    ],
  })),
]

t.test('a model is shown of a turn that was cut off', async (t) => {
  for (const { what, turns, shown, model = 'some', takesImages = false, sealsThinking = false } of ROWS) {
    const messages = shownOf(turns, model, { takesImages, sealsThinking })
    t.match(messages, shown, what)
    t.equal(messages.length, shown.length, what)
    for (const [index, { content }] of messages.entries())
      if (Array.isArray(content))
        t.equal(content.length, (shown[index] as { content?: unknown[] }).content?.length ?? content.length, what)
  }
})

t.test('what a provider refuses to read of it is taken out, and the session goes on', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const cutOff = [{ prompt: 'go', messages: [said(call('a')), result('a', 'x'.repeat(20_000))] }]
  const provider = { id: 'openai-compatible', baseUrl: url, model: 'some' }
  const { runner, host } = await open(providerEngine(), { provider, cutOff })
  t.teardown(() => runner.close())
  runner.send(script({ status: 400, message: 'prompt is too long' }))
  const { errors } = await host.turn(1)
  t.match(errors?.join(' '), /only the beginning of the last results of tools is kept/)
  runner.send('ping')
  t.match(await host.turn(2), { subtype: 'success', result: 'pong' })
  t.match(requests.at(-1)?.body.messages, [
    { role: 'system' },
    { role: 'user', content: 'go' },
    { role: 'assistant', tool_calls: [{ id: 'a' }] },
    { role: 'tool', content: /^x{8000}\n/ },
    { role: 'user', content: 'ping' },
  ])
})

t.test('an id that a call of it has is no other call’s', async (t) => {
  const { url } = await startModelEndpoint(t)
  const cutOff = [{ prompt: 'go', messages: [said(call('a')), result('a', 'x')] }]
  const provider = { id: 'openai-compatible', baseUrl: url, model: 'some' }
  const { runner, host } = await open(providerEngine(), { provider, cutOff })
  t.teardown(() => runner.close())
  runner.send(script({ tools: [{ tool: 'fs_list', id: 'a' }] }, { text: 'done' }))
  await host.turn(1)
  t.not(host.results.a, 'told under another id')
  t.equal(Object.keys(host.results).length, 1)
})
