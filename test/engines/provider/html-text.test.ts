import t from 'tap'
import { htmlToText } from '../../../src/engines/provider/html-text.js'

const read = (html: string) => htmlToText(html, new URL('https://example.com/a/b'))

const CASES: [html: string, text: string][] = [
  ['', ''],
  ['plain   words\n here', 'plain words here'],
  ['<title>T</title><h1>Gr&uuml;&szlig;e</h1><p>one</p><p>two<br>three</p>', 'T\n\nGrüße\n\none\n\ntwo\nthree'],
  ['<ul><li>a</li><li>b <b>c</b></li></ul>', '- a\n- b c'],
  ['<p>see <a href="../x?q=1">this</a>.</p>', 'see this (https://example.com/x?q=1).'],
  ['<a href="javascript:alert(1)">x</a> <a>y</a> <a href="http://[">z</a>', 'x y z'],
  ['<script>bad()</script><style>p{}</style><p>ok</p><nav>menu</nav>', 'ok'],
  ['<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>', '1 2\n3'],
  ['<pre>  a\n    b</pre>', '  a\n    b'],
  ['<img alt="a cat"><p>unclosed <i>words', 'a cat\n\nunclosed words'],
  ['</script></nav></p>text', 'text'],
  ['a &lt;b&gt; c', 'a <b> c'],
]
for (const [html, text] of CASES) {
  t.test(JSON.stringify(html), async (t) => {
    t.equal(read(html), text)
  })
}

const SIZE = 1_000_000
const HOSTILE: [title: string, html: string][] = [
  ['nested', 'start<div>'.repeat(SIZE / 10)],
  ['nested skipped', `start${'<svg>'.repeat(SIZE / 5)}`],
  ['spaces', `start<pre>${' '.repeat(SIZE)}x`],
  ['attributes', `start<a ${'x=1 '.repeat(SIZE / 4)}>`],
  ['links', '<a href=x>start'.repeat(SIZE / 15)],
  ['closers', `start${'</p>'.repeat(SIZE / 4)}`],
  ['an open tag', `start<${'a'.repeat(SIZE)}`],
  ['an open comment', `start<!--${'-'.repeat(SIZE)}`],
]
for (const [title, html] of HOSTILE) {
  t.test(`a hostile page ends: ${title}`, async (t) => {
    const began = process.cpuUsage().user
    t.match(read(html), /start/)
    t.ok(process.cpuUsage().user - began < 5_000_000, 'in seconds of computing at the very most')
  })
}
