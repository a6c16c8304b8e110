import t from 'tap'
import type { InboxItem } from '../../client/index.js'
import { answersFrom, NOTHING, toggled, written } from '../../console/src/model/choices.js'
import {
  countsByTool,
  type Entry,
  isWaiting,
  merged,
  nextWaiting,
  stepped,
  summaryOf,
  withFate,
} from '../../console/src/model/inbox.js'
import { questionsOf } from '../../console/src/model/questions.js'

const item = (id: string, since: number, input: Record<string, unknown> = {}, toolName = 'Bash'): InboxItem => ({
  kind: toolName === 'AskUserQuestion' ? 'question' : 'permission',
  request: { id, toolName, toolUseId: `tool-${id}`, input },
  session: { id: 's', title: 't', profile: 'p', cwd: '/w' },
  since,
  seq: since,
})
const states = (entries: readonly Entry[]) => entries.map(({ item, fate }) => `${item.request.id} ${fate.state}`)

t.test('what is settled stays where it was, and what is new comes by its age', async (t) => {
  const first = merged([], [item('a', 1), item('b', 2), item('c', 5)], true)
  t.strictSame(states(first), ['a waiting', 'b waiting', 'c waiting'])
  const second = merged(first, [item('a', 1), item('new', 3), item('c', 5)], true)
  t.strictSame(states(second), ['a waiting', 'b elsewhere', 'new waiting', 'c waiting'])
  t.equal(merged(second, [item('a', 1), item('new', 3), item('c', 5)], true)[1]!.fate.state, 'elsewhere')
  t.strictSame(states(merged(second, [item('b', 2)], true))[1], 'b waiting', 'it was asked again')
})

t.test('a reading that began before our answer does not undo it', async (t) => {
  const entries = merged([], [item('a', 1), item('b', 2)], true)
  const sending = withFate(entries, entries[0]!.key, { state: 'sending', behavior: 'allow' })
  t.strictSame(states(merged(sending, [item('b', 2)], true)), ['a sending', 'b waiting'])
  const mine = withFate(sending, entries[0]!.key, { state: 'mine', behavior: 'allow' })
  t.strictSame(states(merged(mine, [item('a', 1), item('b', 2)], true)), ['a mine', 'b waiting'])
})

t.test('what lies beyond the pages that were read is not taken for answered', async (t) => {
  const entries = merged([], [item('a', 1), item('b', 2), item('z', 9)], true)
  t.strictSame(states(merged(entries, [item('b', 2)], false)), ['a elsewhere', 'b waiting', 'z waiting'])
})

t.test('keys walk over all, and an answer leads to the next that waits', async (t) => {
  const all = merged([], [item('a', 1), item('b', 2), item('c', 3)], true)
  const [a, b, c] = all.map(({ key }) => key) as [string, string, string]
  t.equal(stepped(all, undefined, 1), a)
  t.equal(stepped(all, undefined, -1), c)
  t.equal(stepped(all, c, 1), c)
  t.equal(stepped(all, b, -1), a)
  const answered = withFate(all, b, { state: 'mine', behavior: 'deny' })
  t.equal(nextWaiting(answered, a), c, 'not the one that is answered')
  t.equal(nextWaiting(withFate(answered, c, { state: 'mine', behavior: 'deny' }), b), a, 'before it, at the end')
  t.equal(answered.filter(isWaiting).length, 2)
  t.equal(stepped([], undefined, 1), undefined)
})

t.test('a line says what a tool would do, however large its input is', async (t) => {
  t.equal(summaryOf({ request: item('a', 1, { z: 'other', command: 'rm -r x' }).request }), 'rm -r x')
  t.equal(summaryOf({ request: item('a', 1, { list: [1], note: 'first text' }).request }), 'first text')
  t.equal(summaryOf({ request: item('a', 1, { b: 1, c: {} }).request }), 'b, c')
  t.equal(summaryOf({ request: item('a', 1, { command: 'x'.repeat(10_000_000) }).request }).length, 500)
  const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`k${at}`, at]))
  t.ok(summaryOf({ request: item('a', 1, many).request }).length < 100)
  t.strictSame(countsByTool(merged([], [item('a', 1), item('b', 2, {}, 'fs'), item('c', 3)], true)), [
    ['Bash', 2],
    ['fs', 1],
  ])
})

t.test('questions of one, of several, and own words', async (t) => {
  const { request } = item(
    'q',
    1,
    {
      questions: [
        { question: 'One?', header: 'H', options: [{ label: 'a' }, { label: 'b', description: 'bb' }] },
        { question: 'Some?', options: [{ label: 'x' }, { label: 'y' }], multiSelect: true },
      ],
    },
    'AskUserQuestion',
  )
  const questions = questionsOf(request)!
  t.equal(questions.length, 2)
  t.strictSame(answersFrom(questions, []), { answers: { 'One?': '', 'Some?': '' }, missing: [0, 1] })
  const one = toggled(toggled(NOTHING, 'a', false), 'b', false)
  const some = toggled(toggled(toggled(NOTHING, 'y', true), 'x', true), 'x', true)
  t.strictSame(answersFrom(questions, [one, toggled(some, 'x', true)]), {
    answers: { 'One?': 'b', 'Some?': 'x, y' },
    missing: [],
  })
  t.strictSame(written(one, 'mine', false), { labels: [], other: 'mine' }, 'instead of an option')
  t.strictSame(answersFrom(questions, [written(one, ' mine ', false), written(some, 'z', true)]).answers, {
    'One?': 'mine',
    'Some?': 'y, z',
  })
  t.strictSame(toggled(written(one, 'mine', false), 'a', false), { labels: ['a'], other: '' })
})
