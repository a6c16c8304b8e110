import t from 'tap'
import { Standstill } from '../../src/lib/standstill.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

function build() {
  const outer = new VirtualClock()
  const standstill = new Standstill(outer)
  const done: string[] = []
  const later = (delayMs: number, what: string) => standstill.clock.after(delayMs, () => done.push(what))
  return { outer, standstill, done, later }
}

t.test('what comes due meanwhile is done when it goes on, in its order; what does not, in its time', async (t) => {
  const { outer, standstill, done, later } = build()
  later(20, 'second')
  later(10, 'first')
  later(100, 'third')
  later(30, 'called off').cancel()
  const later2 = later(40, 'called off when due')
  standstill.stop()
  await outer.advance(50)
  t.same(done, [])
  later2.cancel()
  standstill.goOn()
  t.same(done, [], 'not in the midst of it')
  await outer.advance(0)
  t.same(done, ['first', 'second'])
  await outer.advance(50)
  t.same(done, ['first', 'second', 'third'])
  t.equal(outer.pendingTimers, 0)
})

t.test('one that stands still again at once holds up what was about to be done', async (t) => {
  const { outer, standstill, done, later } = build()
  later(10, 'it')
  standstill.stop()
  await outer.advance(10)
  standstill.goOn()
  standstill.stop()
  await outer.advance(10)
  t.same(done, [])
  standstill.goOn()
  await outer.advance(0)
  t.same(done, ['it'])
})

t.test('once it is over nothing is done any more, but that waits are given up', async (t) => {
  const { outer, standstill, done, later } = build()
  later(10, 'due before')
  later(30, 'due after')
  standstill.clock.after(30, () => done.push('given up'), 'always')
  standstill.stop()
  await outer.advance(20)
  standstill.end()
  standstill.goOn()
  t.ok(standstill.isOver)
  t.ok(standstill.stands)
  later(0, 'asked for later')
  await outer.advance(20)
  t.same(done, ['given up'])
})

t.test('who waits for it to go on is told', async (t) => {
  const { standstill } = build()
  t.notOk(standstill.goesOn)
  standstill.stop()
  const waiting = standstill.goesOn
  standstill.stop()
  t.equal(standstill.goesOn, waiting)
  standstill.goOn()
  await waiting
  t.notOk(standstill.stands)
})
