import t from 'tap'
import { asRefusal } from '../../src/errors.js'
import { caught } from '../../src/lib/caught.js'

/** Whoever asks it anything is thrown at, even who asks what it is. */
const untouchable = new Proxy(
  {},
  {
    get: () => {
      throw new Error('not even that')
    },
    getPrototypeOf: () => {
      throw new Error('not even that')
    },
  },
)

t.test('what a host throws is told of, also where it cannot be looked at', async (t) => {
  const told: string[] = []
  const tell = ({ message }: Error) => void told.push(message)
  caught(() => {
    throw untouchable
  }, tell)
  caught(() => Promise.reject(untouchable), tell)
  await new Promise(setImmediate)
  const words = 'What was thrown is no Error, and cannot be looked at.'
  t.same(told, [words, words])
  t.match(asRefusal(untouchable), { code: 'SG_ERR_INTERNAL' })
})
