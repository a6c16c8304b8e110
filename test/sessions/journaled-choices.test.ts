import t, { type Test } from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, echo } from '../fixtures/journaled.js'

for (const isTaken of [true, false])
  t.test(`what became of a choice is kept before it is said: it was ${isTaken ? 'taken' : 'refused'}`, async (t) => {
    const { registry, engine, journal, kill, again } = await buildJournaled(t, { script: echo() })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first', model: 'first' })
    await until(async () => (await registry.get(id))?.status === 'idle')
    await registry.durable(id)
    const runner = engine.last
    let isAsked = false
    runner.setModel = async (model) => {
      isAsked = true
      // the choice itself is kept
      journal.hold()
      if (!isTaken) throw new Error('no such model')
      runner.host.emit({ type: 'model_changed', model: model! })
    }
    let isSaid = false
    const said = registry.send(id, { type: 'set_model', model: 'other' }).catch(({ code }) => code)
    void said.then(() => (isSaid = true))
    await until(() => isAsked)
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    t.notOk(isSaid, 'not yet')
    journal.release()
    t.equal(await said, isTaken ? undefined : 'SG_ERR_ENGINE_REFUSED')
    kill()
    const { registry: next, engine: nextEngine } = await again()
    t.equal((await next.get(id))?.model, isTaken ? 'other' : 'first')
    await next.send(id, { type: 'user_message', text: 'second' })
    t.equal(nextEngine.last.context.config.model, isTaken ? 'other' : 'first')
  })

/**
 * A session whose engine has not taken a mode in the time for which it is waited for.
 * @param refusal of an engine that waits itself for its agent, and not for ever
 */
async function lateMode(t: Test, refusal?: string) {
  const world = await buildJournaled(t, { script: echo() })
  const { registry, engine, clock } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first', permissionMode: 'bypassPermissions' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.durable(id)
  const runner = engine.last
  let goOn: (() => void) | undefined
  runner.setPermissionMode = async (mode) => {
    const taken = new Promise<void>((resolve) => {
      goOn = resolve
    }).then(() => runner.host.emit({ type: 'permission_mode_changed', mode }))
    if (refusal !== undefined) throw new Error(refusal)
    await taken
  }
  const command = { type: 'set_permission_mode', mode: 'default' } as const
  const refused = { code: 'SG_ERR_ENGINE_REFUSED', message: refusal ?? /in time/ }
  const asked = t.rejects(registry.send(id, command), refused)
  await until(() => goOn !== undefined)
  await clock.advance(30_000)
  await asked
  /** Has the engine take it after all. */
  const take = async () => {
    goOn?.()
    await until(async () => (await registry.get(id))?.permissionMode === 'default')
  }
  /** With what the engine of the next process is made. */
  const nextConfig = async () => {
    await registry.durable(id)
    world.kill()
    const next = await world.again()
    await next.registry.send(id, { type: 'user_message', text: 'second' })
    return next.engine.last.context.config
  }
  return { id, registry, runner, take, nextConfig }
}

t.test(
  'a mode that its engine has only after nobody waits for that any more is that of the next engine, too',
  async (t) => {
    for (const refusal of [undefined, 'The agent does not answer.']) {
      const { take, nextConfig } = await lateMode(t, refusal)
      await take()
      t.equal((await nextConfig()).permissionMode, 'default', refusal ?? 'silent')
    }
  },
)

t.test(
  'a mode that was refused is not chosen by an engine that goes to another one, or to that after another was chosen',
  async (t) => {
    const other = await lateMode(t, 'The agent does not answer.')
    other.runner.host.emit({ type: 'permission_mode_changed', mode: 'dontAsk' })
    t.equal((await other.nextConfig()).permissionMode, 'bypassPermissions')

    const { id, registry, runner, take, nextConfig } = await lateMode(t, 'The agent does not answer.')
    runner.setPermissionMode = async () => {}
    await registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' })
    await take()
    t.equal((await nextConfig()).permissionMode, 'dontAsk')
  },
)

t.test('a mode that its engine takes late is kept beside a model that is chosen meanwhile, taken or not', async (t) => {
  for (const isModelTaken of [true, false]) {
    const { id, registry, runner, take, nextConfig } = await lateMode(t)
    let answer: ((refusal?: Error) => void) | undefined
    runner.setModel = () =>
      new Promise<void>((resolve, reject) => {
        answer = (refusal) => (refusal ? reject(refusal) : resolve())
      })
    const chosen = registry.send(id, { type: 'set_model', model: 'other' })
    await until(() => answer !== undefined)
    await take()
    answer?.(isModelTaken ? undefined : new Error('no such model'))
    await (isModelTaken ? chosen : t.rejects(chosen, { message: /no such model/ }))
    const config = await nextConfig()
    t.equal(config.permissionMode, 'default', `the model was ${isModelTaken ? 'taken' : 'refused'}`)
    t.equal(config.model, isModelTaken ? 'other' : undefined)
  }
})
