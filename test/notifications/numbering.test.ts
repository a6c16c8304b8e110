import fc from 'fast-check'
import t from 'tap'
import { Numbering } from '../../src/notifications/numbering.js'

t.test(
  'shows everything that came about, in order, and nothing before what is still being written before it',
  async () => {
    // which of those that are under way settles next, and whether something came of it
    const steps = fc.array(fc.record({ takes: fc.nat(3), settles: fc.nat(5), isWritten: fc.boolean() }), {
      maxLength: 60,
    })
    fc.assert(
      fc.property(steps, (given) => {
        const shown: number[] = []
        const written: number[] = []
        const numbering = new Numbering<number>(7, (number, item) => {
          if (number !== item) throw new Error(`${item} is shown as ${number}`)
          shown.push(number)
        })
        const underWay: number[] = []
        const settle = (at: number, isWritten: boolean) => {
          const [number] = underWay.splice(at % underWay.length, 1)
          if (isWritten) written.push(number!)
          numbering.settle(number!, isWritten ? number : undefined)
          const open = Math.min(...underWay, Number.POSITIVE_INFINITY)
          const due = written.filter((one) => one < open).sort((a, b) => a - b)
          if (shown.join() !== due.join()) throw new Error(`${shown} is shown, ${due} is due`)
        }
        for (const { takes, settles, isWritten } of given) {
          for (let n = 0; n < takes; n++) underWay.push(numbering.take())
          if (underWay.length > 0) settle(settles, isWritten)
        }
        while (underWay.length > 0) settle(0, true)
      }),
    )
  },
)
