import t from 'tap'
import { newId } from '../../src/lib/new-id.js'

t.test('an id is a random UUID, and no two are the same', async (t) => {
  const ids = Array.from({ length: 1_000 }, newId)
  t.equal(new Set(ids).size, ids.length)
  for (const id of ids)
    if (!/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)) t.fail(id)
  // every digit takes every value that it may: none was lost on the way from bytes to text
  const digits = ids.map((id) => id.replaceAll('-', ''))
  for (let at = 0; at < 32; at++) {
    const seen = new Set(digits.map((id) => id[at]))
    t.equal(seen.size, at === 12 ? 1 : at === 16 ? 4 : 16, `digit ${at}`)
  }
})
