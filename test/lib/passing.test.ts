import t from 'tap'
import { Passing } from '../../src/lib/passing.js'

const filled = (...values: string[]) => {
  const passing = new Passing<string>()
  const leave = Object.fromEntries(values.map((value) => [value, passing.add(value)]))
  return { passing, leave }
}

t.test('those that are there, in the order in which they came', async (t) => {
  t.same([...new Passing()], [])
  for (const gone of ['a', 'b', 'c']) {
    const { passing, leave } = filled('a', 'b', 'c')
    leave[gone]!()
    const rest = ['a', 'b', 'c'].filter((value) => value !== gone)
    t.same([...passing], rest, `without ${gone}`)
    leave[gone]!()
    t.same([...passing], rest, 'it leaves once')
    passing.add('d')
    t.same([...passing], [...rest, 'd'])
  }
})

t.test('one that all have left takes others', async (t) => {
  const { passing, leave } = filled('a', 'b')
  leave.b!()
  leave.a!()
  t.same([...passing], [])
  passing.add('c')
  t.same([...passing], ['c'])
})

t.test('whoever leaves while all are gone through is still met, and the others are', async (t) => {
  const { passing, leave } = filled('a', 'b', 'c')
  const met: string[] = []
  for (const value of passing) {
    met.push(value)
    for (const one of ['a', 'b']) leave[one]!()
  }
  t.same(met, ['a', 'b', 'c'])
  t.same([...passing], ['c'])
})
