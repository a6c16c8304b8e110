import t, { type Test } from 'tap'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import type { GatewayStorage } from '../../src/storage/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { bury, mortal } from '../fixtures/mortal-storage.js'
import { native } from '../fixtures/parked.js'

const PARTS = ['journal', 'idempotency'] as const
const KEY = { 'idempotency-key': 'k' }

const serve = (t: Test, storage: GatewayStorage) =>
  buildServer(t, { storage, authenticate: () => ({ name: 'm' }), script: native })

/**
 * A process that is killed at a write after it was asked to take an answer.
 * @param last counted from there; undefined: it is not killed
 * @returns how many writes there were
 */
async function dieAt(t: Test, isParked: boolean, last: number | undefined, isDone = true): Promise<number> {
  const storage = createMemoryStorage()
  const fate = { last: Number.POSITIVE_INFINITY, isDone, parts: PARTS }
  const { view, dead, operations } = mortal(storage, fate)
  const { call, registry, engine, worker, clock } = await serve(t, view)
  const request = { cwd: SOME_CWD, prompt: 'go', ...(isParked && { approvalTimeoutMs: 0 }) }
  const { id } = (await call('POST', '/sessions', request)).json
  await until(() => engine.last.sent.length === 1)
  void engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} }).catch(() => {})
  await until(() => registry.here(id)?.status === (isParked ? 'parked' : 'awaiting_approval'))
  await registry.durable(id)
  const { events } = (await call('GET', `/sessions/${id}/events`)).json
  const requestId = events.find(({ type }: { type: string }) => type === 'permission_requested').request.id
  const path = `/sessions/${id}/permissions/${requestId}`

  const before = operations()
  if (last !== undefined) fate.last = before + last
  const answered = call('POST', path, { behavior: 'allow' }, KEY).then(({ status }) => status)
  answered.catch(() => {})
  const told = await Promise.race([answered, dead])
  await bury(worker, clock)
  const writes = operations() - before

  const next = await serve(t, storage)
  const { status, json, headers } = await next.call('POST', path, { behavior: 'allow' }, KEY)
  const log = (await next.call('GET', `/sessions/${id}/events`)).json.events
  const resolved = log.filter(({ type }: { type: string }) => type === 'permission_resolved')
  const at = last === undefined ? 'not killed' : `${isDone ? 'after' : 'before'} write ${last}`
  t.match({ told, status }, told === undefined ? {} : { told: 200, status: 200 }, `${at}: what was told stays so`)
  t.equal(
    status,
    resolved[0]?.behavior === 'allow' || isParked ? 200 : 404,
    `${at}: the answer says what is in the log`,
  )
  if (status === 200) t.same(json, { resolved: true }, at)
  if (told === 200) t.equal(headers.get('idempotent-replayed'), 'true', at)
  await until(async () => {
    const { json } = await next.call('GET', `/sessions/${id}/events`)
    return json.events.filter(({ type }: { type: string }) => type === 'permission_resolved').length === 1
  }, `${at}: told once`)
  await bury(next.worker, next.clock)
  return writes
}

for (const isParked of [false, true])
  t.test(
    `a process that is killed at any write: an answer to a ${isParked ? 'parked' : 'live'} session is repeated as it was`,
    async (t) => {
      const total = await dieAt(t, isParked, undefined)
      t.ok(total >= 2, `${total} writes`)
      for (let last = 1; last <= total; last++)
        for (const isDone of [false, true]) await dieAt(t, isParked, last, isDone)
    },
  )

/** The same of the answers to two sessions, which are one request. */
async function dieAmongSeveral(t: Test, last: number | undefined, isDone = true): Promise<number> {
  const storage = createMemoryStorage()
  const fate = { last: Number.POSITIVE_INFINITY, isDone, parts: PARTS }
  const { view, dead, operations } = mortal(storage, fate)
  const { call, registry, engine, worker, clock } = await serve(t, view)
  const answers: { sessionId: string; requestId: string; behavior: 'allow' }[] = []
  for (const _one of [1, 2]) {
    const { id: sessionId } = (await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 }))
      .json
    await until(() => engine.last.sent.length === 1)
    void engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} }).catch(() => {})
    await until(() => registry.here(sessionId)?.status === 'parked')
    await registry.durable(sessionId)
    const [asked] = (await registry.get(sessionId))!.parked!.permissions!
    answers.push({ sessionId, requestId: asked!.id, behavior: 'allow' })
  }
  const before = operations()
  if (last !== undefined) fate.last = before + last
  const give = (world: { call: typeof call }) => world.call('POST', '/inbox/answers', { answers }, KEY)
  const answered = give({ call }).then(({ status }) => status)
  answered.catch(() => {})
  await Promise.race([answered, dead])
  await bury(worker, clock)
  const writes = operations() - before

  const next = await serve(t, storage)
  const at = last === undefined ? 'not killed' : `${isDone ? 'after' : 'before'} write ${last}`
  t.match((await give(next)).json, { results: [{ resolved: true }, { resolved: true }] }, at)
  for (const { sessionId } of answers)
    await until(async () => {
      const { json } = await next.call('GET', `/sessions/${sessionId}/events`)
      return json.events.filter(({ type }: { type: string }) => type === 'permission_resolved').length === 1
    }, `${at}: told once`)
  await bury(next.worker, next.clock)
  return writes
}

t.test('a process that is killed at any write: of several answers each is repeated as it was', async (t) => {
  const total = await dieAmongSeveral(t, undefined)
  t.ok(total >= 3, `${total} writes`)
  for (let last = 1; last <= total; last++) for (const isDone of [false, true]) await dieAmongSeveral(t, last, isDone)
})
