import t from 'tap'
import { Freshness } from '../../src/lib/freshness.js'

t.test('reads once, and again when the version is another one', async (t) => {
  let version = 1
  let reads = 0
  const freshness = new Freshness(
    async () => version,
    async () => void reads++,
  )
  await freshness.check()
  await freshness.check()
  t.equal(reads, 1)
  version = 2
  await Promise.all([freshness.check(), freshness.check(), freshness.check()])
  t.equal(reads, 2)
})

t.test('who comes while somebody asks is told by an answer that was asked for after it came', async (t) => {
  let version = 1
  const asked: (() => void)[] = []
  const freshness = new Freshness(
    () => new Promise((resolve) => asked.push(() => resolve(version))),
    async () => {},
  )
  const first = freshness.check()
  const [second, third] = [freshness.check(), freshness.check()]
  t.equal(asked.length, 1)
  asked[0]!()
  await first
  version = 2
  await new Promise(setImmediate)
  t.equal(asked.length, 2, 'one question for both of them')
  asked[1]!()
  await Promise.all([second, third])
})

t.test('what could not be read is read again by the next one', async (t) => {
  let fails = true
  let reads = 0
  const freshness = new Freshness(
    async () => 1,
    async () => {
      if (fails) throw new Error('away')
      reads++
    },
  )
  await t.rejects(freshness.check(), /away/)
  fails = false
  await freshness.check()
  t.equal(reads, 1)
})
