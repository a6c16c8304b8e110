import t from 'tap'
import { KeyedLock } from '../../src/lib/keyed-lock.js'

t.test('work with one key runs in the order of the calls, with another at the same time', async (t) => {
  const lock = new KeyedLock()
  const log: string[] = []
  const open: Record<string, () => void> = {}
  const work = (name: string) => async () => {
    log.push(`${name} begins`)
    await new Promise<void>((resolve) => {
      open[name] = resolve
    })
    log.push(`${name} ends`)
    return name
  }
  const all = [lock.run('a', work('one')), lock.run('a', work('two')), lock.run('b', work('other'))]
  await new Promise(setImmediate)
  t.same(log, ['one begins', 'other begins'])
  open.one!()
  await new Promise(setImmediate)
  t.same(log.slice(2), ['one ends', 'two begins'])
  open.two!()
  open.other!()
  t.same(await Promise.all(all), ['one', 'two', 'other'])
})

t.test('a failure is its caller’s alone', async (t) => {
  const lock = new KeyedLock()
  const failed = lock.run('a', () => {
    throw new Error('no')
  })
  const next = lock.run('a', () => 'next')
  await t.rejects(failed, /no/)
  t.equal(await next, 'next')
  t.equal(await lock.run('a', () => 'later'), 'later')
})
