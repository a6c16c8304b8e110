import t from 'tap'
import { PageBuilder } from '../../src/lib/paging.js'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, buildServer, SOME_CWD } from '../fixtures/build.js'
import { sqliteWorld } from '../storage/sqlite-world.js'

const MIB = 1024 * 1024
const COUNT = 200
const NEVER = 8_000_000_000_000
/** The largest that a caller can attach. */
const meta = { note: 'é'.repeat((16 * 1024 - 11) / 2) }

t.test('lists of the largest that can be made come in bounded pages, and all of it comes', async (t) => {
  const { storage } = await sqliteWorld(t)
  const { call } = await buildServer(t, { storage, maxSessions: 2 * COUNT, queue: {} })
  const session = { cwd: SOME_CWD, meta, title: 'é'.repeat(500) }
  const made: Record<string, string[]> = { '/sessions': [], '/jobs': [] }
  const job = { session: { ...session, prompt: 'p'.repeat(20_000) }, meta, runAt: NEVER }
  const make = async (path: string, body: unknown) => {
    for (let n = 0; n < COUNT; n++) {
      const { json } = await call('POST', path, body)
      if (json.id === undefined) throw new Error(json.detail)
      made[path]!.unshift(json.id)
    }
  }
  await Promise.all([make('/sessions', session), make('/jobs', job)])
  for (const [path, ids] of Object.entries(made)) {
    const found: string[] = []
    const sizes: number[] = []
    for (let next: string | undefined = path; next; ) {
      const { json, text, headers } = await call('GET', next)
      found.push(...json.map(({ id }: { id: string }) => id))
      sizes.push(Buffer.byteLength(text))
      next = /^<\/v1(.+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
    }
    t.same(found, ids, path)
    t.ok(Math.max(...sizes) <= 1.1 * MIB, `a page of ${path} is at most about 1 MiB`)
    t.ok(Math.min(...sizes.slice(0, -1)) >= 0.9 * MIB, `a page of ${path} is not cut needlessly`)
    // whatever the caller asks for
    t.ok((await call('GET', `${path}?limit=200`)).text.length <= 1.1 * MIB)
  }
})

t.test('of the largest pages of sessions one is made in a turn of the loop, however many ask for one', async (t) => {
  const { registry } = await buildGateway(t)
  for (let n = 0; n < 80; n++) await registry.create({ cwd: SOME_CWD, meta, title: 'é'.repeat(500) })
  const { stringify } = JSON
  const turns = [0]
  const nextTurn = () => {
    turns.push(0)
    turning = setImmediate(nextTurn)
  }
  let turning = setImmediate(nextTurn)
  JSON.stringify = ((value: unknown) => {
    const text = stringify(value)
    turns[turns.length - 1]! += Buffer.byteLength(text)
    return text
  }) as typeof JSON.stringify
  const asked = Array.from({ length: 4 }, () => registry.page({}, UNLIMITED))
  const pages = await Promise.all(asked).finally(() => {
    JSON.stringify = stringify
    clearImmediate(turning)
  })
  for (const { items, next } of pages) t.ok(items.length > 50 && next !== undefined, `${items.length} of them`)
  const longest = turns.reduce((most, bytes) => Math.max(most, bytes), 0)
  t.ok(longest >= 0.9 * MIB && longest <= 1.1 * MIB, `${longest} bytes in one turn`)
})

t.test('one row that is larger than a page is a page', async (t) => {
  const large = 'x'.repeat(1.5 * MIB)
  const page = new PageBuilder<string>()
  t.ok(page.add(large))
  t.notOk(page.add('y'), 'and nothing after it')
  t.same(page.items, [large])
  const before = new PageBuilder<string>()
  before.add('y')
  t.notOk(before.add(large), 'and nothing before it')
})

t.test('a list of jobs with long prompts leaves turns of the loop to everybody else', async (t) => {
  const { storage } = await sqliteWorld(t)
  const { call, worker } = await buildServer(t, { storage, queue: {} })
  const prompt = 'p'.repeat(900_000)
  for (let n = 0; n < 20; n++) await call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt }, runAt: NEVER })
  const { parse } = JSON
  const turns = [0]
  const nextTurn = () => {
    turns.push(0)
    turning = setImmediate(nextTurn)
  }
  let turning = setImmediate(nextTurn)
  JSON.parse = (text, reviver) => {
    turns[turns.length - 1]! += text.length
    return parse(text, reviver)
  }
  const { items, next } = await worker.queue!.page({}).finally(() => {
    JSON.parse = parse
    clearImmediate(turning)
  })
  t.same([items.length, next], [20, undefined])
  const longest = Math.max(...turns)
  t.ok(longest >= 2 * prompt.length, 'it was read from the database')
  // one job, or two where the answers of two calls come in the same turn
  t.ok(longest < 5 * prompt.length, `${longest} characters were read in one turn`)
})

t.test('no field that lists show can be as long as a caller likes', async (t) => {
  const { call } = await buildServer(t, { queue: {} })
  const long = 'x'.repeat(100_000)
  const session = { cwd: SOME_CWD, prompt: 'go' }
  const refused = [
    ['/sessions', { ...session, title: long }, 'title'],
    ['/sessions', { ...session, model: long }, 'model'],
    ['/jobs', { session: { ...session, model: long } }, 'session.model'],
    ['/jobs', { session, webhook: { url: `http://x.example/${long}` } }, 'webhook.url'],
  ] as const
  for (const [path, body, field] of refused)
    t.match(await call('POST', path, body), { status: 400, json: { errors: [{ path: field }] } })
  const { json } = await call('POST', '/sessions', session)
  const command = { type: 'set_model', model: long }
  t.match(await call('POST', `/sessions/${json.id}/commands`, command), {
    status: 400,
    json: { errors: [{ path: 'model' }] },
  })
})
