import t from 'tap'
import { bytes, count, duration, money, relative } from '../../console/src/model/format.js'
import { cut, visible, visibleLine, visibleOutput } from '../../console/src/model/visible.js'
import { texts } from '../../console/src/texts.js'

t.test('times are seen from now', async (t) => {
  const at = (ms: number) => relative(1e12 - ms, 1e12, texts.time)
  t.strictSame([0, 4_999, 5_000, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000, -90_000].map(at), [
    'now',
    'now',
    '5 s ago',
    '59 s ago',
    '1 min ago',
    '59 min ago',
    '1 h ago',
    '1 d ago',
    'in 1 min',
  ])
})

t.test('spans, sizes, counts and money are short and never say another unit than they mean', async (t) => {
  t.strictSame([0, 840, 3_210, 59_960, 250_000, 3_725_000].map(duration), [
    '0 ms',
    '840 ms',
    '3.2 s',
    '1 min 0 s',
    '4 min 10 s',
    '1 h 2 min',
  ])
  t.strictSame([0, 1023, 1024, 1_500_000, 5e13].map(bytes), ['0 B', '1023 B', '1 KB', '1.4 MB', '45.5 TB'])
  t.strictSame([0, 999, 1_000, 1_250, 34_400, 999_900, 2_100_000, 5e12].map(count), [
    '0',
    '999',
    '1k',
    '1.3k',
    '34k',
    '1M',
    '2.1M',
    '5000G',
  ])
  t.strictSame([0, 0.00001, 0.0042, 0.0999, 1.234].map(money), ['$0', '<$0.0001', '$0.0042', '$0.10', '$1.23'])
})

t.test(
  'what is not seen is spelled out, and an escape sequence hides nothing but what a tool has put out',
  async (t) => {
    t.equal(visible('a\u202eb\u2066c\u200b\ufeff'), 'a[U+202E]b[U+2066]c[U+200B][U+FEFF]')
    // a shell runs what stands in it
    t.equal(
      visible('ls\u001b]; rm -r x; #\u0007 \u009d;id\u009c'),
      'ls[U+001B]]; rm -r x; #[U+0007] [U+009D];id[U+009C]',
    )
    t.equal(
      visibleOutput('\u001b[31mred\u001b[0m\u001b]0;title\u0007!\u001b]8;;https://x\u001b\\link\u001b]8;;\u001b\\'),
      'red!link',
    )
    t.equal(visible('one\rtwo\r\nthree\u0008'), 'one\ntwo\nthree[U+0008]')
    t.equal(visible('tag\u{e0041}'), 'tag[U+E0041]')
    t.equal(visible('مرحبا 👩‍👩‍👧 हिन्दी'), 'مرحبا 👩‍👩‍👧 हिन्दी', 'what people write stays')
    t.equal(visibleLine('a\n\nb   c'), 'a b c')
    t.equal(visibleLine('x'.repeat(10_000_000)).length, 200)
    t.equal(cut('a😀b', 2), 'a', 'no half of a pair')
  },
)
