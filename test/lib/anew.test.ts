import t from 'tap'
import { Anew } from '../../src/lib/anew.js'

t.test('never works twice at once, also for who asks in the moment in which a run is over', async (t) => {
  let atWork = 0
  let runs = 0
  const anew = new Anew(async () => {
    t.equal(atWork++, 0)
    runs++
    await new Promise(setImmediate)
    atWork--
  })
  const first = anew.done()
  const second = anew.done()
  const later = Array.from({ length: 20 }, async (_, ticks) => {
    await first
    for (let tick = 0; tick < ticks; tick++) await undefined
    return anew.done()
  })
  await Promise.all([second, ...later])
  t.equal(runs, 3, 'one for all who came before the second began, and one for those who came after')
})
