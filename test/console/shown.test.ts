import t from 'tap'
import type { PermissionRequest, SessionEvent, SessionInfo } from '../../client/index.js'
import { runsOf } from '../../console/src/model/ansi.js'
import { diffOf, editsOf, splitRows } from '../../console/src/model/edits.js'
import { fileNameOf } from '../../console/src/model/file-name.js'
import { jsonText } from '../../console/src/model/json-text.js'
import { safeLink } from '../../console/src/model/links.js'
import { questionsOf } from '../../console/src/model/questions.js'
import { isSame } from '../../console/src/model/same.js'
import { hitsIn } from '../../console/src/model/search.js'
import { fitting, waitingCount } from '../../console/src/model/session-filter.js'
import { imageOf, outputsOf, summaryOf } from '../../console/src/model/tool-summary.js'

t.test('links lead to the web and to mail, say where, and nowhere else', async (t) => {
  t.strictSame(safeLink('https://example.org/a?b#c'), { href: 'https://example.org/a?b#c', target: 'example.org' })
  t.strictSame(safeLink('mailto:ann@example.org?body=x'), { href: 'mailto:ann@example.org', target: 'ann@example.org' })
  t.equal(safeLink('https://xn--pple-43d.com')?.target, 'xn--pple-43d.com')
  t.match(safeLink('https://аpple.com')?.target, /^xn--/, 'letters of another script are seen for what they are')
  for (const bad of [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    ' javascript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://x/1',
    'https://bank.example@evil.example/',
    'https://bank.example:x@evil.example/',
    '//evil.example',
    '/v1/sessions',
    '#/settings',
    'https://',
    'https://a\u202egpj.exe',
    'mailto:',
    '',
    `https://example.org/${'x'.repeat(5_000)}`,
  ])
    t.equal(safeLink(bad), undefined, JSON.stringify(bad.slice(0, 60)))
})

t.test('a file is saved under its own name, whatever script that is in, and with its ending', async (t) => {
  const names = {
    'report.md': 'report.md',
    '报告.md': '报告.md',
    'отчёт за май.tar.gz': 'отчёт-за-май.tar.gz',
    'Tides: a/b\u202e': 'Tides-a-b',
    'gpj.\u202eexe.png': 'gpj.-exe.png',
    '../../.env': 'env',
    '😀.md': 'file.md',
    '..': 'file',
    '': 'file',
    [`${'x'.repeat(200)}.csv`]: `${'x'.repeat(80)}.csv`,
    [`${'𠀀'.repeat(60)}.csv`]: `${'𠀀'.repeat(40)}.csv`,
  }
  for (const [name, saved] of Object.entries(names)) t.equal(fileNameOf(name, 'file'), saved, name)
})

t.test('of a terminal the colours stay, and nothing that hides', async (t) => {
  t.strictSame(runsOf('a\u001b[1;31mb\u001b[0mc'), [
    { text: 'a', style: '' },
    { text: 'b', style: 'fg1 b' },
    { text: 'c', style: '' },
  ])
  const hidden = runsOf('\u001b[8mhidden\u001b[28m\u001b[30;40mblack\u001b[2J\u001b[1A\u001b]52;c;eA==\u0007!')
  t.equal(hidden.map(({ text }) => text).join(''), 'hiddenblack!')
  t.strictSame(
    runsOf('\u001b[38;5;1mx\u001b[38;2;1;2;3my\u001b[48;5;200mz').map(({ style }) => style),
    ['fg1'],
  )
  const styles = (text: string) => runsOf(text).map(({ style }) => style)
  t.strictSame(styles('\u001b[38:5:1mx\u001b[4:3my\u001b[4:0mz'), ['fg1', 'fg1 u', 'fg1'], 'what colons keep together')
  t.strictSame(
    styles('\u001b[38:2::255:0:1mx\u001b[48:2::4:3:1my\u001b[58:2::1:3:4mz'),
    [''],
    'no part of a colour is a style',
  )
  t.strictSame(styles('\u001b[58;5;1mx\u001b[58;2;1;3;4my'), [''], 'nor of the colour of a line')
  t.ok(runsOf('\u001b[31mx\u001b[32my'.repeat(50_000)).length <= 5_001, 'and not without end')
})

t.test('JSON is written as far as it is shown', async (t) => {
  t.same(JSON.parse(jsonText({ a: [1, 'x', null, true, {}], b: { c: [] } }, 1_000).text), {
    a: [1, 'x', null, true, {}],
    b: { c: [] },
  })
  const items = Array.from({ length: 50_000 }, (_, index) => ({ index }))
  const cut = jsonText(items, 4_000)
  t.ok(cut.isCut)
  t.ok(cut.text.length <= 4_000)
  t.ok(jsonText('x'.repeat(10_000_000), 100).text.length <= 100)
  let deep: unknown = 1
  for (let depth = 0; depth < 50_000; depth++) deep = [deep]
  t.match(jsonText(deep, 100_000).text, /…/)
})

t.test('edits are found in what agents write, and compared', async (t) => {
  const path = '/a.ts'
  t.strictSame(editsOf({ file_path: path, old_string: 'a', new_string: 'b' }), [{ path, before: 'a', after: 'b' }])
  t.equal(
    editsOf({
      file_path: path,
      edits: [
        { old_string: 'a', new_string: 'b' },
        { old_string: 'c', new_string: 'd' },
      ],
    }).length,
    2,
  )
  t.strictSame(editsOf({ path, content: 'x' }), [{ path, before: undefined, after: 'x' }])
  t.strictSame(editsOf({}, [{ type: 'diff', path, oldText: 'a', newText: 'b' }]), [{ path, before: 'a', after: 'b' }])
  t.strictSame(editsOf({ command: 'ls' }), [])
  t.strictSame(editsOf({ path: 'x' }), [])
  const lines = Array.from({ length: 30 }, (_, index) => `line ${index}`)
  const changed = lines.with(3, 'three').toSpliced(20, 1)
  const diff = diffOf({ path, before: lines.join('\n'), after: changed.join('\n') })
  t.strictSame([diff.added, diff.removed], [1, 2])
  t.strictSame(
    diff.rows.find(({ kind }) => kind === 'add'),
    { kind: 'add', text: 'three', new: 4 },
  )
  const split = splitRows(diff.rows)
  t.ok(
    split.some(([left, right]) => left?.text === 'line 3' && right?.text === 'three'),
    'side by side',
  )
  const huge = diffOf({ path, before: 'x\n'.repeat(400_000), after: 'y\n'.repeat(400_000) })
  t.ok(huge.isCut)
  t.ok(huge.rows.length <= 2_000)
})

t.test('results are shown by what they are; an image lies in them or is none', async (t) => {
  t.strictSame(outputsOf('x'), [{ type: 'text', text: 'x' }])
  t.strictSame(outputsOf([{ type: 'text', text: 'x' }, { odd: 1 }]), [
    { type: 'text', text: 'x' },
    { type: 'json', value: { odd: 1 } },
  ])
  t.equal(outputsOf(Array.from({ length: 50_000 }, () => ({ type: 'text', text: 'x' }))).length, 1)
  const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
  t.strictSame(imageOf({ type: 'image', source }), { mime: 'image/png', data: 'AAAA' })
  t.strictSame(imageOf({ type: 'image', data: 'AAAA', mimeType: 'image/webp' }), { mime: 'image/webp', data: 'AAAA' })
  for (const bad of [
    { ...source, media_type: 'image/svg+xml' },
    { ...source, media_type: 'text/html' },
    { ...source, data: 'AA"onerror=' },
    { type: 'url', url: 'https://x' },
  ])
    t.equal(imageOf({ type: 'image', source: bad }), undefined)
  t.equal(summaryOf({ description: 'd', command: 'ls -l' }), 'ls -l')
  t.equal(summaryOf({ command: ['ls', '-l'] }), 'ls -l')
  t.equal(summaryOf(null), '')
})

t.test('a question is one in its own shape alone', async (t) => {
  const request = (input: object, toolName = 'AskUserQuestion') => ({ toolName, input }) as unknown as PermissionRequest
  const questions = [{ question: 'Which?', header: 'H', options: [{ label: 'A', description: 'a' }, { odd: 1 }] }]
  t.strictSame(questionsOf(request({ questions })), [
    { question: 'Which?', header: 'H', options: [{ label: 'A', description: 'a' }], multiSelect: false },
  ])
  t.equal(questionsOf(request({ questions }, 'Bash')), undefined)
  t.equal(questionsOf(request({ questions: [{}] })), undefined)
  t.equal(questionsOf(request({})), undefined)
})

t.test('search finds what somebody may have read', async (t) => {
  const event = {
    type: 'assistant_message',
    seq: 7,
    ts: 1,
    message: { content: [{ type: 'text', text: 'One Two three' }] },
  }
  t.match(hitsIn([event as unknown as SessionEvent], 'two'), [
    { seq: 7, before: 'One ', match: 'Two', after: ' three' },
  ])
  t.strictSame(hitsIn([event as unknown as SessionEvent], 'four'), [])
  const saying = (text: string) => ({ ...event, message: { content: text } }) as unknown as SessionEvent
  t.match(hitsIn([saying(`${'İ'.repeat(80)} a.b( ${'x'.repeat(80)}`)], 'A.B('), [
    { before: `…${'İ'.repeat(59)} `, match: 'a.b(', after: ` ${'x'.repeat(59)}…` },
  ])
  t.strictSame(hitsIn([saying('acb(')], 'a.b('), [])
})

t.test('search finds nothing in what is not shown', async (t) => {
  const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGVsbG8=' } }
  const call = { type: 'tool_use', id: 'call_7', name: 'Bash', input: { type: 'kind of thing' } }
  const result = {
    type: 'tool_result',
    tool_use_id: 'call_7',
    content: [{ type: 'text', text: 'the text itself' }, png],
  }
  const events = [
    { type: 'assistant_message', uuid: 'u-1', message: { role: 'assistant', model: 'm-1', content: [call] } },
    { type: 'user_message', uuid: 'u-2', commandId: 'c-1', message: { role: 'user', content: [result, null, 'x'] } },
    {
      type: 'permission_requested',
      request: { id: 'r-1', toolUseId: 'call_7', toolName: 'Bash', input: { a: 'asked' } },
    },
    { type: 'permission_resolved', requestId: 'r-1', behavior: 'deny', resolvedBy: 'client', message: 'told why' },
    { type: 'execution_result', executionId: 'e-1', output: { type: 'json', value: { a: ['ran'] } } },
    { type: 'turn_completed', subtype: 'error_max_turns', result: 'again', errors: ['went wrong'] },
    { type: 'session_closed', reason: 'client' },
    { type: 'execution_dispatched', executionId: 'e-2', toolName: 'Deploy', backend: 'remote' },
  ].map((event, at) => ({ seq: at + 1, ts: 1, ...event }) as unknown as SessionEvent)
  const found = (text: string) => hitsIn(events, text).map(({ seq, before, match }) => [seq, `${before}${match}`])
  for (const hidden of [
    'message',
    'u-1',
    'call_7',
    'base64',
    'aGVsbG8',
    'm-1',
    'c-1',
    'r-1',
    'e-1',
    'e-2',
    'remote',
    'error_max',
    'client',
  ])
    t.strictSame(found(hidden), [], hidden)
  t.strictSame(found('text'), [[2, 'the text']], 'and not the name of its type before it')
  for (const [seq, shown] of [
    [1, 'kind'],
    [1, 'Bash'],
    [3, 'asked'],
    [4, 'told'],
    [5, 'ran'],
    [6, 'went'],
    [8, 'Deploy'],
  ] as const)
    t.strictSame(found(shown), [[seq, shown]])
})

t.test('the list is narrowed by words, status and profile', async (t) => {
  const session = (id: string, more: object) =>
    ({ id, title: id, status: 'idle', profile: 'p', cwd: '/w', pendingPermissions: 0, ...more }) as SessionInfo
  const all = [
    session('a', { status: 'running' }),
    session('b', { status: 'awaiting_approval', pendingPermissions: 1 }),
    session('c', { status: 'closed', profile: 'q' }),
    session('d', { status: 'parked', pendingPermissions: 1 }),
  ]
  const ids = (filter: 'all' | 'waiting' | 'active' | 'over', profile = '', search = '') =>
    fitting(all, { filter, profile, search }, ({ id }) => `last of ${id}`)
      .map(({ id }) => id)
      .join('')
  t.equal(ids('all'), 'abcd')
  t.equal(ids('waiting'), 'bd')
  t.equal(ids('active'), 'abd')
  t.equal(ids('over'), 'c')
  t.equal(ids('all', 'q'), 'c')
  t.equal(ids('all', '', 'LAST of b'), 'b')
  t.equal(waitingCount(all, { hasMore: false, requests: 7 }), 2, 'all are there')
  t.equal(waitingCount(all, { hasMore: true, requests: 2 }), 2, 'all that wait are')
  t.equal(waitingCount(all, { hasMore: true, requests: 7 }), undefined)
})

t.test('what was folded anew and says the same is not drawn anew', async (t) => {
  const input = { command: 'x'.repeat(10) }
  const item = (text: string, endedAt = 5) => ({
    ...{ kind: 'message', seq: 1, ts: 1 },
    parts: [
      { type: 'text', text },
      { type: 'tool', input, status: 'succeeded', endedAt, permission: { request: { id: 'a' } } },
    ],
  })
  t.ok(isSame(item('a'), item('a')))
  t.notOk(isSame(item('a'), item('b')))
  t.notOk(isSame(item('a'), item('a', 6)))
  t.notOk(isSame(item('a'), { ...item('a'), model: 'm' }))
  t.notOk(isSame([1, 2], [1]))
  t.notOk(isSame([], {}))
  t.notOk(isSame(new Map([[1, 2]]), new Map()))
  t.notOk(isSame(null, {}))
})
