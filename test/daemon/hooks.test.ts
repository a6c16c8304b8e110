import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadHooks, unusableHooks } from '../../src/daemon/hooks.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const load = (t: Test, code: string) => loadHooks(join(t.testdir({ 'hooks.mjs': code }), 'hooks.mjs'))

t.test('hooks are the named exports', async (t) => {
  const { hooks, problems } = await load(
    t,
    'export const authenticate = () => "me"; export async function onEvent() {}',
  )
  t.strictSame(problems, [])
  t.strictSame(Object.keys(hooks).sort(), ['authenticate', 'onEvent'])
  t.equal(hooks.authenticate?.({} as never), 'me')
})

t.test('what cannot be a hook is told, not left out', async (t) => {
  const refused: [code: string, message: RegExp][] = [
    ['export const authentcate = () => 1', /exports authentcate: unknown hook; did you mean authenticate\?/],
    ['export default {}', /exports default: unknown hook/],
    ['export const authenticate = "me"', /exports authenticate, which is not a function/],
    ['const authenticate = () => 1', /exports none of authenticate, /],
    ['throw new Error("boom")', /hooks\.mjs could not be imported: boom/],
    ['import "./nope.mjs"', /could not be imported: Cannot find module .*nope\.mjs/],
    ['export const =', /could not be imported/],
  ]
  for (const [code, message] of refused)
    await t.test(code, async (t) => t.match((await load(t, code)).problems, [{ path: 'hooks', message }]))
  t.match((await loadHooks('/nope/hooks.mjs')).problems, [{ message: '/nope/hooks.mjs: there is no such file' }])
  const folder = t.testdir({})
  t.match((await loadHooks(folder)).problems, [{ message: `${folder} is a directory; name the module in it` }])
})

t.test('a module that never becomes ready is told after two minutes', async (t) => {
  const clock = new VirtualClock()
  const file = join(t.testdir({ 'hooks.mjs': 'await new Promise(() => {})' }), 'hooks.mjs')
  const loading = loadHooks(file, clock)
  await clock.advance(120_000)
  t.match((await loading).problems, [{ path: 'hooks', message: /hooks\.mjs could not be imported: .*two minutes/ }])
})

t.test('a hook whose section is missing would never be called', async (t) => {
  const hooks = { onEvent: () => {}, onDispatch: () => {}, onNotification: () => {} }
  t.match(unusableHooks(hooks, {}), [{ message: /onEvent.*"queue"/ }, { message: /onDispatch.*"executions"/ }])
  t.strictSame(unusableHooks(hooks, { queue: {}, executions: { tools: [] } }), [])
})
