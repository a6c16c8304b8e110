import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import type { InboxAnswerResult, InboxItem } from '../../schemas/notifications.js'
import type { Principal } from '../../src/principal.js'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { rounds } from '../fixtures/rounds.js'
import type { Script } from '../fixtures/scripted-engine.js'

const SESSIONS = rounds(400, 10_000)
const PROFILES = 200
const AT_ONCE = 100

/** Asks in its first turn and waits, and says what it was told. */
const script: Script = {
  capabilities: { parking: 'native' },
  start: (runner) => {
    runner.init()
    const isRestored = runner.context.restore !== undefined
    if (isRestored) void ask(runner)
  },
  send: (runner) => void ask(runner),
}
const ask = async (runner: Parameters<NonNullable<Script['send']>>[0]) => {
  const { behavior } = await runner.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} })
  runner.say(behavior)
  runner.complete()
}

const nameOf = (n: number) => `profile-${n}`
const somePrincipal = fc.oneof(
  { weight: 1, arbitrary: fc.constant<Principal>({}) },
  {
    weight: 4,
    arbitrary: fc
      .array(fc.nat(PROFILES + 5).map(nameOf), { maxLength: 12 })
      .map((allowedProfiles): Principal => ({ allowedProfiles })),
  },
)

t.test(`of ${SESSIONS} sessions that are parked on disk everybody sees and answers exactly their own`, async (t) => {
  const path = join(t.testdir(), 'gateway.db')
  const start = () =>
    buildServer(t, {
      ...{ script, storage: createSqliteStorage({ path }) },
      profiles: Array.from({ length: PROFILES }, (_, n) => ({
        ...{ name: nameOf(n), engine: 'provider', provider: { id: 'scripted' } },
      })),
      authenticate: ({ headers }) => JSON.parse(String(headers['x-principal'])) as Principal,
    })
  type World = Awaited<ReturnType<typeof start>>
  const as = (principal: object) => ({ 'x-principal': JSON.stringify(principal) })

  /** Profiles of the sessions that wait, by id, oldest first. */
  const waiting = new Map<string, string>()
  const first = await start()
  for (let n = 0; n < SESSIONS; n++) {
    // none of some profiles, and some of others
    const profile = nameOf((n * n * 7919) % PROFILES)
    const { id } = await first.registry.create({ cwd: SOME_CWD, profile, prompt: 'x', approvalTimeoutMs: 0 })
    waiting.set(id, profile)
  }
  const isParked = ({ registry }: World, id: string) => registry.here(id)?.status === 'parked'
  for (const id of waiting.keys()) await until(() => isParked(first, id), 'a parked session')

  const all = async ({ call, api }: World, principal: Principal, limit: number): Promise<InboxItem[]> => {
    const items: InboxItem[] = []
    for (let next: string | undefined = `/inbox?limit=${limit}`; next; ) {
      const { status, json, headers } = await call('GET', next, undefined, as(principal))
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(json)}`)
      items.push(...json)
      const link = /<([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
      next = link?.slice(new URL(api).pathname.length)
    }
    return items
  }
  const check = (world: World, numRuns: number) =>
    fc.assert(
      fc.asyncProperty(somePrincipal, fc.integer({ min: 20, max: 200 }), async (principal, limit) => {
        const { allowedProfiles } = principal
        const mine = [...waiting].filter(([, profile]) => !allowedProfiles || [...allowedProfiles].includes(profile))
        const found = (await all(world, principal, limit)).map(({ session }) => `${session.id} ${session.profile}`)
        // those that were asked at the same time have no order that anybody could know
        const expected = mine.map(([id, profile]) => `${id} ${profile}`)
        if (found.sort().join() !== expected.sort().join())
          throw new Error(`${found.length} found, ${expected.length} expected`)
        const { json } = await world.call('GET', '/inbox/count', undefined, as(principal))
        if (json.permissions !== mine.length || json.questions !== 0)
          throw new Error(`${JSON.stringify(json)} of ${mine.length}`)
      }),
      { numRuns },
    )
  await check(first, 25)
  const ages = (items: InboxItem[]) => items.map(({ since }) => since)
  const before = await all(first, {}, 200)
  t.same(ages(before), ages(before).toSorted(), 'oldest first')
  await first.worker.close()

  const second = await start()
  await check(second, 25)
  t.same(
    (await all(second, {}, 200)).map(({ request, seq }) => ({ request, seq })),
    before.map(({ request, seq }) => ({ request, seq })),
    'the same after a restart, in the same order',
  )

  const [own, other] = [nameOf((7919 * 1) % PROFILES), nameOf((7919 * 4) % PROFILES)]
  const someone = { allowedProfiles: [own], name: 'ann' }
  const asked = before.filter(({ session: { profile } }) => profile === own || profile === other).slice(0, AT_ONCE)
  t.ok(asked.some(({ session }) => session.profile === own) && asked.some(({ session }) => session.profile === other))
  const answers = asked.map(({ session, request }) => ({
    ...{ sessionId: session.id, requestId: request.id, behavior: 'deny' },
  }))
  const { json } = await second.call('POST', '/inbox/answers', { answers }, as(someone))
  t.same(
    (json.results as InboxAnswerResult[]).map((result) => (result.resolved ? 'resolved' : result.code)),
    asked.map(({ session }) => (session.profile === own ? 'resolved' : 'SG_ERR_SESSION_NOT_FOUND')),
  )
  for (const { session } of asked) if (session.profile === own) waiting.delete(session.id)
  const answered = asked.filter(({ session }) => session.profile === own)
  await until(
    () => answered.every(({ session }) => second.registry.here(session.id)?.status === 'idle'),
    'the end of the turns that were answered',
  )
  const log = (await second.call('GET', `/sessions/${answered[0]!.session.id}/events`, undefined, as({}))).json.events
  t.match(
    log.find(({ type }: { type: string }) => type === 'permission_resolved'),
    { behavior: 'deny', by: { principal: 'ann', channel: 'inbox' } },
  )
  t.ok(
    [...waiting.keys()].every((id) => isParked(second, id)),
    'and all others sleep on',
  )
  await check(second, 10)
})
