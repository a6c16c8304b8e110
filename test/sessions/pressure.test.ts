import t, { type Test } from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
/** How long readers, and a storage, are waited for. */
const READERS_MS = 10_000
const STORAGE_MS = 8_000

/** What an engine says, as fast as it may: ten messages a turn of the event loop. */
class Burst {
  readonly done: Promise<void>
  said = 0
  isDone = false
  timesSlowed = 0

  constructor(runner: ScriptedRunner, messages: number, text = '') {
    this.done = this.#say(runner, messages, text).then(() => {
      this.isDone = true
    })
  }

  async #say({ host }: ScriptedRunner, messages: number, text: string): Promise<void> {
    while (this.said < messages) {
      host.emit({ type: 'engine_event', payload: { n: ++this.said, text } })
      if (host.drained) this.timesSlowed++
      await host.drained
      if (this.said % 10 === 0) await turn()
    }
  }
}

const toldTo = (sink: FakeSink): number[] =>
  sink.events.flatMap((event) => (event.type === 'engine_event' ? [(event.payload as { n: number }).n] : []))
const upTo = (messages: number) => Array.from({ length: messages }, (_, index) => index + 1)

async function open({ registry, engine }: Awaited<ReturnType<typeof buildGateway>>, prompt = 'go') {
  const { id } = await registry.create({ cwd: SOME_CWD, prompt })
  const session = await registry.open(id, UNLIMITED)
  const runner = engine.last
  await until(() => runner.sent.length === 1, 'the prompt')
  const attach = async (isSlow: boolean) => {
    const sink = new FakeSink()
    sink.slow = isSlow
    const attachment = session.attach(sink, { afterSeq: session.log.lastSeq })
    await until(() => sink.writes.length > 0, 'attached')
    return { sink, attachment, session }
  }
  return { id, session, runner, attach }
}

/** A session in memory whose log keeps a hundred events. */
async function build(t: Test, options: BuildOptions = {}) {
  const world = await buildGateway(t, { eventLog: { maxEvents: 100 }, ...options })
  return { ...world, ...(await open(world)) }
}

t.test('an engine waits for its only reader, which is slow and is not cut', async (t) => {
  const { runner, attach } = await build(t)
  const { sink, attachment } = await attach(true)
  const burst = new Burst(runner, 1_000)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait')
  await turns()
  t.ok(burst.said > 50 && burst.said < 100, `${burst.said} are said`)
  await until(() => {
    attachment.resume()
    return burst.isDone && toldTo(sink).length === 1_000
  }, 'all of it')
  t.equal(sink.closed, undefined)
  t.same(toldTo(sink), upTo(1_000))
})

t.test('a reader that does not read is waited for once, for ten seconds, and is cut', async (t) => {
  const { runner, attach, clock } = await build(t)
  const { sink, attachment } = await attach(true)
  const burst = new Burst(runner, 1_000)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait')
  await clock.advance(READERS_MS - 1)
  t.ok(runner.host.drained)
  await clock.advance(1)
  await until(() => burst.isDone, 'the end of the burst')
  t.equal(burst.timesSlowed, 1)
  attachment.resume()
  await until(() => sink.closed, 'the cut')
  t.match(sink.closed, { code: 1013, reason: 'too_slow' })
})

t.test('a reader that was given up counts again once it has come so far', async (t) => {
  const { runner, attach, clock } = await build(t)
  const { sink, attachment } = await attach(true)
  await new Burst(runner, 40).done
  const more = new Burst(runner, 15)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait')
  await clock.advance(READERS_MS)
  await more.done
  await until(() => {
    attachment.resume()
    return sink.events.at(-1)?.seq === attachment.cursor && attachment.cursor >= 55
  }, 'the head')
  new Burst(runner, 1_000)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait again')
  t.equal(sink.closed, undefined)
})

t.test('nobody waits for a slow reader while another one keeps up, nor for one that leaves', async (t) => {
  const { runner, attach } = await build(t)
  const slow = await attach(true)
  const quick = await attach(false)
  const burst = new Burst(runner, 1_000)
  await burst.done
  await until(() => toldTo(quick.sink).length === 1_000, 'all of it')
  t.equal(burst.timesSlowed, 0)

  slow.session.detach(quick.attachment)
  slow.session.detach(slow.attachment)
  const { session, attachment } = await attach(true)
  const next = new Burst(runner, 1_000)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait')
  session.detach(attachment)
  await next.done
  t.equal(next.timesSlowed, 1)
})

t.test('who comes meanwhile and reads sets the pace', async (t) => {
  const { runner, attach } = await build(t)
  await attach(true)
  const burst = new Burst(runner, 1_000)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait')
  const quick = await attach(false)
  await burst.done
  await until(() => toldTo(quick.sink).at(-1) === 1_000, 'the end')
  t.equal(quick.sink.closed, undefined)
})

t.test('what is asked of a session passes while its engine waits', async (t) => {
  const world = await build(t)
  const { id, runner, session, registry, attach, engine } = world
  await attach(true)
  const burst = new Burst(runner, 200)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait')

  const decision = runner.host.requestPermission({ toolName: 'x', toolUseId: 'u', input: { a: 1 } })
  const requestId = session.pendingPermissions[0]!.id
  await session.answerPermission(requestId, { behavior: 'allow' })
  t.match(await decision, { behavior: 'allow' })
  t.ok(runner.host.drained, 'it still waits')

  let whileAsked: unknown = 'not asked'
  runner.setModel = async () => {
    whileAsked = runner.host.drained
  }
  await registry.send(id, { type: 'set_model', model: 'other' })
  t.equal(whileAsked, undefined, 'its answer is not slowed')

  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait again')
  await registry.send(id, { type: 'interrupt' })
  t.equal(runner.host.drained, undefined, 'what is left of the turn is not slowed')
  await burst.done
  await until(() => !session.busy, 'the end of the turn')

  await registry.send(id, { type: 'user_message', text: 'on' })
  await until(() => runner.sent.length === 2, 'the next turn')
  const next = new Burst(runner, 200)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait in the next turn')
  await registry.close(id)
  await next.done
  t.equal(session.ended, true)
  t.equal(runner.closed, true)

  const other = await open({ ...world, engine })
  t.equal(other.runner.host.drained, undefined)
})

t.test(
  'an engine that is to end its turn by a denial is not slowed: what it says of that end comes behind the rest',
  async (t) => {
    const { runner, session, attach } = await build(t)
    await attach(true)
    const burst = new Burst(runner, 200)
    await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait')
    const decision = runner.host.requestPermission({ toolName: 'x', toolUseId: 'u', input: {} })
    await session.answerPermission(session.pendingPermissions[0]!.id, { behavior: 'deny', interrupt: true })
    t.match(await decision, { behavior: 'deny', interrupt: true })
    t.equal(runner.host.drained, undefined)
    await burst.done
  },
)

t.test('one session that waits is nothing to another', async (t) => {
  const world = await build(t)
  const first = await world.attach(true)
  new Burst(world.runner, 200)
  await until(() => world.runner.host.drained !== undefined, 'an engine that is asked to wait')
  const other = await open(world)
  const { sink } = await other.attach(false)
  const burst = new Burst(other.runner, 500)
  await burst.done
  await until(() => toldTo(sink).length === 500, 'all of it')
  t.equal(burst.timesSlowed, 0)
  t.ok(world.runner.host.drained)
  first.session.detach(first.attachment)
})

const KB = 'x'.repeat(1_024)

t.test('an engine waits for a journal that is behind, and is never a log ahead of it', async (t) => {
  const world = await buildJournaled(t, { eventLog: { maxEvents: 100 } })
  const { journal } = world
  const { id, runner, session } = await open(world)
  await session.durable()
  journal.hold()
  const burst = new Burst(runner, 4_000, KB)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait')
  await turns()
  t.ok(burst.said > 900 && burst.said < 1_100, `${burst.said} KB are said`)
  journal.release()
  await burst.done
  t.ok(burst.timesSlowed > 1)
  await session.durable()
  t.equal(runner.host.drained, undefined)
  const events = await eventsOf(world, id)
  t.same(
    events.flatMap((event) => (event.type === 'engine_event' ? [(event.payload as { n: number }).n] : [])),
    upTo(4_000),
  )
})

t.test('a journal that takes nothing is waited for no longer than its callers wait', async (t) => {
  const world = await buildJournaled(t)
  const { journal, clock } = world
  const { runner, session } = await open(world)
  await session.durable()
  journal.hold()
  const burst = new Burst(runner, 2_000, KB)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait')
  await clock.advance(STORAGE_MS)
  await burst.done
  t.equal(burst.timesSlowed, 1, 'and not again before it has caught up')
  journal.release()
  await session.durable()
  journal.hold()
  new Burst(runner, 2_000, KB)
  await until(() => runner.host.drained !== undefined, 'an engine that is asked to wait again')
  journal.release()
})

t.test('with a journal no engine waits for a reader, and the reader goes on from there', async (t) => {
  const world = await buildJournaled(t, { eventLog: { maxEvents: 100 } })
  const { runner, attach } = await open(world)
  const { sink, attachment } = await attach(true)
  const burst = new Burst(runner, 1_000)
  await burst.done
  t.equal(burst.timesSlowed, 0)
  await until(() => {
    attachment.resume()
    return toldTo(sink).length === 1_000
  }, 'all of it')
  t.same(toldTo(sink), upTo(1_000))
  t.equal(sink.closed, undefined)
})
