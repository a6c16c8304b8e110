import t from 'tap'
import { Listeners } from '../../src/lib/listeners.js'

type Events = { created: { id: string }; counted: number }

/** Listeners with a record of what was told to whom, and of what went wrong. */
function listeners() {
  const told: string[] = []
  const errors: string[] = []
  const set = new Listeners<Events>((error, event) => errors.push(`${event}: ${error.message}`))
  return { set, told, errors }
}

const microtasks = () => new Promise<void>((done) => setImmediate(done))

t.test('a listener is told in the next microtask, in the order of events and of listeners', async (t) => {
  const { set, told } = listeners()
  set.on('created', ({ id }) => told.push(`first ${id}`))
  set.on('counted', (count) => told.push(`counted ${count}`))
  set.on('created', ({ id }) => told.push(`second ${id}`))
  set.emit('created', { id: 'a' })
  set.emit('counted', 1)
  set.emit('created', { id: 'b' })
  t.strictSame(told, [], 'nothing inside the emit')
  await Promise.resolve()
  t.strictSame(told, ['first a', 'second a', 'counted 1', 'first b', 'second b'])
  set.emit('counted', 2)
  await Promise.resolve()
  t.equal(told.at(-1), 'counted 2', 'and again')
})

t.test('what a listener emits comes after what was emitted before', async (t) => {
  const { set, told } = listeners()
  set.on('created', ({ id }) => {
    told.push(`first ${id}`)
    if (id === 'a') set.emit('created', { id: 'caused' })
    told.push(`first ${id}, done`)
  })
  set.on('created', ({ id }) => told.push(`second ${id}`))
  set.emit('created', { id: 'a' })
  set.emit('created', { id: 'b' })
  await microtasks()
  t.strictSame(told, [
    'first a',
    'first a, done',
    'second a',
    'first b',
    'first b, done',
    'second b',
    'first caused',
    'first caused, done',
    'second caused',
  ])
})

t.test('who listens', async (t) => {
  t.test('only those who listened when it was emitted', async (t) => {
    const { set, told } = listeners()
    set.emit('counted', 1)
    set.on('counted', (count) => told.push(`late ${count}`))
    set.emit('counted', 2)
    await microtasks()
    t.strictSame(told, ['late 2'])
  })

  t.test('not those who left before they were told', async (t) => {
    const { set, told } = listeners()
    const leaves = set.on('counted', () => told.push('left'))
    set.emit('counted', 1)
    leaves()
    leaves()
    await microtasks()
    t.strictSame(told, [])
  })

  t.test('nor those whom another listener removed', async (t) => {
    const { set, told } = listeners()
    set.on('counted', () => {
      told.push('first')
      removed()
    })
    const removed = set.on('counted', () => told.push('second'))
    set.emit('counted', 1)
    await microtasks()
    t.strictSame(told, ['first'])
  })

  t.test('one function that listens twice is told twice, and leaves one at a time', async (t) => {
    const { set, told } = listeners()
    const listener = (count: number) => told.push(String(count))
    const leaves = set.on('counted', listener)
    set.on('counted', listener)
    set.emit('counted', 1)
    await microtasks()
    leaves()
    set.emit('counted', 2)
    await microtasks()
    t.strictSame(told, ['1', '1', '2'])
  })

  t.test('has', async (t) => {
    const { set } = listeners()
    t.notOk(set.has('counted'))
    const leaves = [set.on('counted', () => {}), set.on('counted', () => {})]
    t.ok(set.has('counted'))
    t.notOk(set.has('created'))
    leaves[0]!()
    t.ok(set.has('counted'))
    leaves[1]!()
    t.notOk(set.has('counted'))
  })
})

t.test('a listener that fails harms nobody else', async (t) => {
  t.test('by throwing', async (t) => {
    const { set, told, errors } = listeners()
    set.on('counted', () => {
      throw new Error('broken')
    })
    set.on('counted', (count) => told.push(String(count)))
    set.emit('counted', 1)
    set.emit('counted', 2)
    await microtasks()
    t.strictSame(told, ['1', '2'])
    t.strictSame(errors, ['counted: broken', 'counted: broken'])
  })

  t.test('by rejecting, which is not waited for', async (t) => {
    const { set, told, errors } = listeners()
    set.on('created', async () => {
      await microtasks()
      throw 'no Error at all'
    })
    set.on('created', ({ id }) => told.push(id))
    set.emit('created', { id: 'a' })
    await Promise.resolve()
    t.strictSame(told, ['a'])
    t.strictSame(errors, [])
    await microtasks()
    await microtasks()
    t.strictSame(errors, ['created: no Error at all'])
  })

  t.test('an onError that throws is the host to blame, and costs nobody a delivery', async (t) => {
    const told: string[] = []
    const set = new Listeners<Events>((error) => {
      throw error
    })
    set.on('counted', () => {
      throw new Error('unheard')
    })
    set.on('counted', (count) => told.push(String(count)))
    const uncaught: string[] = []
    const stop = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', (error) => uncaught.push(error.message))
    t.teardown(() => {
      process.removeAllListeners('uncaughtException')
      for (const listener of stop) process.on('uncaughtException', listener)
    })
    set.emit('counted', 1)
    set.emit('counted', 2)
    await microtasks()
    await microtasks()
    t.strictSame(told, ['1', '2'])
    t.strictSame(uncaught, ['unheard', 'unheard'])
  })
})
