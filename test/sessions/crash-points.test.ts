import t, { type Test } from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { eventsOf, testStorage } from '../fixtures/journaled.js'
import { lived, mortal, type UntilDeath } from '../fixtures/mortal-storage.js'
import { ok } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'

const script: Script = {
  capabilities: { parking: 'native' },
  send: async (runner, text) => {
    // a storage that died under it refuses in the end
    if (text === 'wait') return runner.defer(`${runner.context.sessionId}-e`).catch(() => {})
    runner.say(`heard ${text}`)
    runner.complete()
  },
  settle: (runner) => {
    runner.say('it is done')
    runner.complete()
  },
}

/** What a caller was told, by the time the process ended. */
interface Told {
  created?: string
  accepted: string[]
  result?: true
  renamed?: true
  deleted?: true
}

/** A session's life: a turn, a park, its wake, a new title, its end. */
async function live({ registry, gateway }: World, told: Told, until: UntilDeath): Promise<void> {
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  told.created = id
  told.accepted.push('first')
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.send(id, { type: 'user_message', text: 'wait' })
  told.accepted.push('wait')
  await until(async () => (await registry.get(id))?.status === 'parked')
  const { applied } = await gateway.executions.submit(`${id}-e`, ok)
  if (applied) told.result = true
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.rename(id, 'Mine', UNLIMITED)
  told.renamed = true
  await registry.send(id, { type: 'user_message', text: 'last' })
  told.accepted.push('last')
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.close(id, 'client')
  told.deleted = true
}

type World = Awaited<ReturnType<typeof buildGateway>>

async function dieAt(t: Test, last: number, isDone: boolean): Promise<number> {
  const storage = testStorage()
  const { view, dead, operations } = mortal(storage, { last, isDone, parts: ['journal'] })
  const first = await buildGateway(t, { storage: view, script: { ...script } })
  const told: Told = { accepted: [] }
  await lived(first, dead, (until) => live(first, told, until))
  const at = `${isDone ? 'after' : 'before'} operation ${last}`

  const next = await buildGateway(t, { storage, script: { ...script } })
  const id = told.created
  if (id === undefined) {
    t.ok((await next.registry.list()).length <= 1, `${at}: nobody was told of a session`)
    return operations()
  }
  if (told.deleted) {
    t.same(await next.registry.list(), [], `${at}: what was deleted stays away`)
    return operations()
  }
  const info = await next.registry.get(id)
  // asked for, and not confirmed: done or not, and nothing in between
  if (!info) {
    t.ok(told.accepted.length === 3, `${at}: only a delete takes a session away`)
    return operations()
  }
  await until(
    async () => ['idle', 'parked'].includes((await next.registry.get(id))?.status ?? ''),
    `${at}: a session at rest`,
  )
  if ((await next.registry.get(id))?.status === 'parked') {
    await next.gateway.executions.submit(`${id}-e`, ok)
    await until(async () => (await next.registry.get(id))?.status === 'idle', `${at}: the wake`)
  }
  const events = await eventsOf(next, id)
  assertStory(t, events, told, at)
  if (told.renamed) t.equal((await next.registry.get(id))?.title, 'Mine', `${at}: its title`)
  await next.registry.send(id, { type: 'user_message', text: 'and now' })
  await until(async () => (await next.registry.get(id))?.status === 'idle', `${at}: a session that goes on`)
  await next.registry.close(id, 'client')
  const third = await buildGateway(t, { storage, script: { ...script } })
  t.same(await third.registry.list(), [], `${at}: gone for good`)
  return operations()
}

function assertStory(t: Test, events: readonly SessionEvent[], told: Told, at: string): void {
  const seqs = events.map(({ seq }) => seq)
  t.same(
    seqs,
    [...new Set(seqs)].sort((a, b) => a - b),
    `${at}: numbers rise`,
  )
  const said = events.flatMap((event) => (event.type === 'user_message' ? String(event.message.content) : []))
  t.same(said.slice(0, told.accepted.length), told.accepted, `${at}: every accepted message once, in order`)
  const results = events.filter(({ type }) => type === 'execution_result').length
  if (told.result) t.equal(results, 1, `${at}: the result once`)
  else t.ok(results <= 1, `${at}: the result at most once`)
  const turns = events.filter(({ type }) => type === 'turn_completed').length
  t.equal(turns, said.length, `${at}: every turn has an end`)
}

t.test('a process that is killed at any write leaves a session that the next one goes on with', async (t) => {
  const total = await dieAt(t, Number.POSITIVE_INFINITY, true)
  t.ok(total > 10, `${total} operations`)
  for (let last = 1; last <= total; last++) {
    await dieAt(t, last, false)
    await dieAt(t, last, true)
  }
})
