import { MessageChannel } from 'node:worker_threads'
import { Clock } from 'clock-mock'
import t, { type Test } from 'tap'
import { startLongTimer } from '../../src/lib/clock.js'

/** Node's own timers, standing still until they are advanced. */
const clock = new Clock()
const MAX_DELAY_MS = 2 ** 31 - 1
const DAY_MS = 24 * 60 * 60 * 1000

/** Counts how often the timer has fired. */
function start(t: Test, delayMs: number) {
  t.teardown(clock.enter())
  const counter = { fired: 0, cancel: () => timer.cancel() }
  const timer = startLongTimer(delayMs, () => counter.fired++)
  return counter
}

for (const delayMs of [
  1,
  1000,
  MAX_DELAY_MS,
  MAX_DELAY_MS + 1,
  3e9,
  2 * MAX_DELAY_MS,
  2 * MAX_DELAY_MS + 1,
  365 * DAY_MS,
]) {
  t.test(`${delayMs} ms`, async (t) => {
    const timer = start(t, delayMs)
    // In steps no longer than Node's own limit, as time passes anyway.
    for (let left = delayMs - 1; left > 0; left -= MAX_DELAY_MS) clock.advance(Math.min(left, MAX_DELAY_MS))
    t.equal(timer.fired, 0, 'not a millisecond early')
    clock.advance(1)
    t.equal(timer.fired, 1)
    for (let step = 0; step < 5; step++) clock.advance(MAX_DELAY_MS)
    t.equal(timer.fired, 1, 'once')
  })
}

for (const delayMs of [0, -1, -Infinity, Number.NaN]) {
  t.test(`${delayMs} fires at the next occasion, never inside the call`, async (t) => {
    const timer = start(t, delayMs)
    t.equal(timer.fired, 0)
    clock.advance(1)
    t.equal(timer.fired, 1)
  })
}

t.test('Infinity never fires', async (t) => {
  const timer = start(t, Number.POSITIVE_INFINITY)
  for (let step = 0; step < 100; step++) clock.advance(MAX_DELAY_MS)
  t.equal(timer.fired, 0)
  timer.cancel()
})

t.test('cancel', async (t) => {
  for (const [name, before] of [
    ['at once', 0],
    ['in the first stretch', 1000],
    ['in the second stretch', MAX_DELAY_MS + 1000],
  ] as const) {
    t.test(name, async (t) => {
      const timer = start(t, 3e9)
      for (let left: number = before; left > 0; left -= MAX_DELAY_MS) clock.advance(Math.min(left, MAX_DELAY_MS))
      timer.cancel()
      timer.cancel()
      for (let step = 0; step < 5; step++) clock.advance(MAX_DELAY_MS)
      t.equal(timer.fired, 0)
    })
  }

  t.test('after it fired', async (t) => {
    const timer = start(t, 10)
    clock.advance(10)
    timer.cancel()
    t.equal(timer.fired, 1)
  })
})

t.test('it does not keep the process alive', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  const timer = startLongTimer(3e9, () => {})
  t.equal(timers(), before)
  timer.cancel()
  const ordinary = setTimeout(() => {}, 1000)
  t.equal(timers(), before + 1, 'as an ordinary one does')
  clearTimeout(ordinary)
})

/** Keeps the process from doing anything else, as a stop or a busy machine does. */
function holdUp(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

t.test('a process that was held up hears what came meanwhile before it gives up', async (t) => {
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  const told: string[] = []
  const heard = new Promise<void>((resolve) => {
    port1.once('message', () => {
      told.push('the answer')
      late.cancel()
      resolve()
    })
  })
  const late = startLongTimer(20, () => told.push('too late'))
  const other = new Promise<void>((resolve) => startLongTimer(20, () => resolve()))
  port2.postMessage('the answer')
  holdUp(500)
  await Promise.all([heard, other])
  t.same(told, ['the answer'])
})
