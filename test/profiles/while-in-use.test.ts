import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { JobInfo } from '../../schemas/jobs.js'
import type { CreateProfileRequest } from '../../schemas/profiles.js'
import type { Gateway } from '../../src/gateway.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { native, ok } from '../fixtures/parked.js'
import { MANAGER } from '../fixtures/profiles.js'

const NAME = 'managed'
const PROVIDER = { id: 'openai-compatible', model: 'm', baseUrl: 'http://one.example' }

/** What happens to the profile, and how what waits for it is told; absent: it is still itself. */
interface Change {
  what: string
  engine: 'provider' | 'cli'
  apply(
    profiles: Gateway['profiles'],
    again: CreateProfileRequest,
    directory: (name: string) => string,
  ): Promise<unknown>
  reason?: RegExp
}

const GONE = /^Profile "managed" no longer exists\.$/
const SOMEONE_ELSE = /^Profile "managed" now runs as someone else\.$/

const CHANGES: Change[] = [
  ...(['provider', 'cli'] as const).flatMap((engine): Change[] => [
    { what: 'deleted', engine, apply: (profiles) => profiles.remove(NAME, MANAGER), reason: GONE },
    {
      what: 'deleted and created again, exactly as it was',
      engine,
      apply: async (profiles, again) => {
        await profiles.remove(NAME, MANAGER)
        await profiles.create(again, MANAGER)
      },
      reason: SOMEONE_ELSE,
    },
    {
      what: 'described anew',
      engine,
      apply: (profiles) => profiles.update(NAME, { description: 'the same one' }, MANAGER),
    },
  ]),
  {
    what: 'pointed to another server',
    engine: 'provider',
    apply: (profiles) => profiles.update(NAME, { provider: { ...PROVIDER, baseUrl: 'http://two.example' } }, MANAGER),
    reason: SOMEONE_ELSE,
  },
  {
    what: 'given the key of another account',
    engine: 'provider',
    apply: (profiles) => profiles.update(NAME, { provider: { ...PROVIDER, apiKeyEnv: 'ANOTHER_KEY' } }, MANAGER),
    reason: SOMEONE_ELSE,
  },
  {
    what: 'pointed to another directory',
    engine: 'cli',
    apply: (profiles, _again, directory) => profiles.update(NAME, { configDir: directory('two') }, MANAGER),
    reason: SOMEONE_ELSE,
  },
  {
    what: 'given to the other engine',
    engine: 'cli',
    apply: (profiles) => profiles.update(NAME, { engine: 'provider', configDir: null, provider: PROVIDER }, MANAGER),
    reason: SOMEONE_ELSE,
  },
]

/** A gateway with one declared profile, which nothing may fall back to, and one managed profile that is about to change. */
async function build(t: Test, { engine, apply }: Change) {
  const roots = t.testdir()
  const directory = (name: string) => {
    const path = join(roots, name)
    mkdirSync(path, { recursive: true })
    return path
  }
  const world = await buildGateway(t, {
    profileStore: createMemoryProfileStore(),
    allowedConfigDirRoots: [roots],
    env: { ANOTHER_KEY: 'sk' },
    managedProfiles: { endpoints: [{ baseUrl: PROVIDER.baseUrl, apiKeyEnv: 'ANOTHER_KEY' }] },
    queue: { maxConcurrency: 1 },
    script: native,
  })
  const { profiles, executions } = world.gateway
  const queue = world.gateway.queue!
  const request: CreateProfileRequest =
    engine === 'cli' ? { name: NAME, configDir: directory('one') } : { name: NAME, engine, provider: PROVIDER }
  await profiles.create(request, MANAGER)
  const session = (profile = NAME) => ({ cwd: SOME_CWD, prompt: 'go', profile })
  const job = async ({ id }: JobInfo) => (await queue.get(id))!
  const status = async (id: string) => (await world.registry.get(id))?.status
  /** The session of `id` waits for the result of execution `e1`. */
  const park = async (id: string) => {
    await world.engine.last.defer('e1')
    await until(async () => (await status(id)) === 'parked', 'a parked session')
  }
  const runs = async (count: number) => until(() => world.engine.runners[count - 1]?.sent.length === 1, `run ${count}`)
  const change = () => apply(profiles, request, directory)
  return { ...world, executions, queue, session, job, status, park, runs, change }
}

for (const change of CHANGES) {
  const { what, engine: kind, reason } = change
  t.test(`a ${kind} profile is ${what}`, async (t) => {
    t.test('while a session runs: it goes on as who it was', async (t) => {
      const { registry, engine, session, runs, change: apply, status } = await build(t, change)
      const { id } = await registry.create(session())
      await runs(1)
      await apply()
      t.equal(await status(id), 'running')
      engine.last.complete()
      await until(async () => (await status(id)) === 'idle')
      await registry.send(id, { type: 'user_message', text: 'go on' })
      t.same(
        engine.last.sent.map(({ text }) => text),
        ['go', 'go on'],
      )
      engine.last.complete()
      await until(async () => (await status(id)) === 'idle')
      t.equal(engine.runners.length, 1)
      t.notOk(engine.last.closed)
      t.match(await registry.get(id), { profile: NAME, engine: kind, numTurns: 2 })
    })

    t.test('while a session runs that is parked later: the same rule as for a parked one', async (t) => {
      const { registry, engine, executions, session, runs, park, change: apply, status } = await build(t, change)
      const { id } = await registry.create(session())
      await runs(1)
      await apply()
      await park(id)
      t.same(await executions.submit('e1', ok), { applied: true, sessionId: id })
      await until(async () => (await status(id)) === (reason ? 'failed' : 'running'))
      t.equal(engine.runners.length, reason ? 1 : 2)
    })

    t.test('while a session is parked', async (t) => {
      const { registry, engine, executions, session, runs, park, change: apply, status } = await build(t, change)
      const { id } = await registry.create(session())
      await runs(1)
      await park(id)
      await apply()
      t.equal(await status(id), 'parked', 'it waits on: nothing runs in its name meanwhile')
      t.same(await executions.submit('e1', ok), { applied: true, sessionId: id })
      if (reason) {
        await until(async () => (await status(id)) === 'failed')
        t.match(await registry.get(id), { profile: NAME, statusDetail: reason })
        t.equal(engine.runners.length, 1, 'no engine was built for it')
      } else {
        await until(async () => (await status(id)) === 'running')
        t.equal(engine.runners.length, 2)
        t.same(engine.last.settled, [{ executionId: 'e1', result: ok }])
        t.equal(engine.last.context.profile.name, NAME)
      }
    })

    t.test('while a job is queued', async (t) => {
      const { engine, queue, session, runs, job, change: apply } = await build(t, change)
      const before = await queue.submit({ session: session('scripted') })
      const waiting = await queue.submit({ session: session() })
      await runs(1)
      await apply()
      t.match(await job(waiting), { status: 'queued' })
      engine.last.complete()
      await until(async () => (await job(before)).status === 'succeeded')
      if (reason) {
        await until(async () => (await job(waiting)).status === 'failed')
        t.match(await job(waiting), { profile: NAME, error: reason })
        t.equal(engine.runners.length, 1, 'it ran as nobody')
      } else {
        await runs(2)
        t.equal(engine.last.context.profile.name, NAME)
        engine.last.complete()
        await until(async () => (await job(waiting)).status === 'succeeded')
      }
    })

    t.test('between two attempts of a job', async (t) => {
      const { engine, queue, session, runs, job, clock, change: apply } = await build(t, change)
      const retried = await queue.submit({ session: session(), attempts: 2, retryDelayMs: 1_000 })
      await runs(1)
      engine.last.complete({ subtype: 'error_during_execution', isError: true, errors: ['overloaded'] })
      await until(async () => (await job(retried)).attempt === 2)
      await apply()
      await clock.advance(60_000)
      if (reason) {
        await until(async () => (await job(retried)).status === 'failed')
        t.match(await job(retried), { error: reason })
        t.equal(engine.runners.length, 1)
      } else {
        await runs(2)
        t.equal(engine.last.context.profile.name, NAME)
      }
    })

    t.test('while a job is parked', async (t) => {
      const { engine, executions, queue, session, runs, job, park, change: apply } = await build(t, change)
      const parked = await queue.submit({ session: session() })
      await runs(1)
      await park((await job(parked)).sessionId!)
      await until(async () => (await job(parked)).status === 'parked')
      await apply()
      await executions.submit('e1', ok)
      if (reason) {
        await until(async () => (await job(parked)).status === 'failed')
        t.match(await job(parked), { profile: NAME, error: reason })
        t.equal(engine.runners.length, 1)
      } else {
        await until(async () => (await job(parked)).status === 'running')
        engine.last.complete()
        await until(async () => (await job(parked)).status === 'succeeded')
      }
    })
  })
}
