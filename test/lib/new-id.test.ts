import { test } from 'tap'
import { newId } from '../../src/lib/clock.js'

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('ids are UUIDs of version 4, each another one, in which every random bit is on as often as off', async (t) => {
  const ids = Array.from({ length: 10_000 }, newId)
  t.same(
    ids.filter((id) => !UUID_V4.test(id)),
    [],
  )
  t.equal(new Set(ids).size, ids.length)
  const on = Array<number>(128).fill(0)
  for (const id of ids)
    [
      ...BigInt(`0x${id.replaceAll('-', '')}`)
        .toString(2)
        .padStart(128, '0'),
    ].forEach((bit, at) => {
      on[at] = on[at]! + Number(bit)
    })
  const fixed = on.flatMap((count, at) => (count === 0 || count === ids.length ? at : []))
  t.same(fixed, [48, 49, 50, 51, 64, 65], 'version and variant')
  // ten standard deviations
  t.same(
    on.filter((count, at) => !fixed.includes(at) && Math.abs(count - ids.length / 2) > 500),
    [],
  )
})
