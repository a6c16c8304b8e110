import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { CarriedFiles, CarriedPiece } from '../../../src/engines/cli/carry/carried-files.js'
import { CarriedRunner, type WritingRunner } from '../../../src/engines/cli/carry/carried-runner.js'
import { Carrier } from '../../../src/engines/cli/carry/carrier.js'
import type { Runner, RunnerEvent, RunnerHost } from '../../../src/engines/runner.js'
import { until } from '../../fixtures/build.js'

const PATTERNS = ['projects/*/{id}.jsonl', 'projects/*/{id}/**']
const MAIN = 'projects/repo/s1.jsonl'

/** A storage that may fail. */
class Store implements CarriedFiles {
  kept: { piece: CarriedPiece; bytes: Buffer }[] = []
  failing = false

  async pieces() {
    return this.kept.map(({ piece }) => piece).sort((one, other) => one.offset - other.offset)
  }

  async read(_session: string, path: string, offset: number) {
    return this.kept.find(({ piece }) => piece.path === path && piece.offset === offset)?.bytes
  }

  async write(_session: string, piece: CarriedPiece, bytes: Buffer) {
    if (this.failing) throw new Error('away')
    this.kept = this.kept.filter((one) => one.piece.path !== piece.path || one.piece.offset < piece.offset)
    this.kept.push({ piece, bytes: Buffer.from(bytes) })
  }

  text(path = MAIN): string {
    const found = this.kept.filter(({ piece }) => piece.path === path)
    return found.map(({ bytes }) => String(bytes)).join('')
  }
}

function build(t: Test) {
  const root = t.testdir({ a: {}, b: {} })
  const store = new Store()
  const at = (node: string, path = MAIN) => join(root, node, path)
  const write = (node: string, text: string, path = MAIN) => {
    mkdirSync(dirname(at(node, path)), { recursive: true })
    writeFileSync(at(node, path), text)
  }
  const carrier = (node: string) =>
    new Carrier({ store, sessionId: 'session', configDir: join(root, node), patterns: PATTERNS })
  return { root, store, at, write, carrier, has: (node: string, path = MAIN) => readFileSync(at(node, path), 'utf8') }
}

t.test('what is added is kept, whole lines of it, and is there wherever the session goes on', async (t) => {
  const { store, at, write, carrier, has } = build(t)
  const a = carrier('a')
  t.equal(await a.carry('s1'), false, 'nothing is there yet')
  write('a', 'one\ntw')
  write('a', '{"of":"a helper"}\n', 'projects/repo/s1/subagents/h.jsonl')
  write('a', 'no lines', 'projects/repo/s1/tool-results/r.txt')
  write('a', 'another session\n', 'projects/repo/s2.jsonl')
  write('a', 'theirs\n', 'projects/s1/s2.jsonl')
  t.equal(await a.carry('s1'), true)
  t.equal(store.text(), 'one\n')
  appendFileSync(at('a'), 'o\nthree\n')
  await a.carry('s1')
  await a.carry('s1')
  t.same(
    store.kept.filter(({ piece }) => piece.path === MAIN).map(({ bytes }) => String(bytes)),
    ['one\n', 'two\nthree\n'],
    'each once',
  )
  await carrier('b').bring()
  t.equal(has('b'), 'one\ntwo\nthree\n')
  t.equal(has('b', 'projects/repo/s1/subagents/h.jsonl'), '{"of":"a helper"}\n')
  t.equal(has('b', 'projects/repo/s1/tool-results/r.txt'), 'no lines')
  t.notOk(existsSync(at('b', 'projects/repo/s2.jsonl')) || existsSync(at('b', 'projects/s1/s2.jsonl')), 'no neighbour')
  t.equal(statSync(at('b')).mode & 0o077, 0, 'it is nobody else’s to read')
})

t.test('a file that has grown where it is stays, one that went another way is replaced', async (t) => {
  const { store, at, write, carrier, has } = build(t)
  write('a', 'one\n')
  await carrier('a').carry('s1')
  appendFileSync(at('a'), 'cut off\n')
  await carrier('a').bring()
  t.equal(has('a'), 'one\ncut off\n', 'nothing else went on')
  const b = carrier('b')
  await b.bring()
  appendFileSync(at('b'), 'two\n')
  await b.carry('s1')
  await carrier('a').bring()
  t.equal(has('a'), 'one\ntwo\n')
  t.equal(store.text(), 'one\ntwo\n')
})

t.test('a file that its agent writes anew is kept anew from where it differs', async (t) => {
  const { store, write, carrier, has } = build(t)
  const a = carrier('a')
  for (const text of ['one\n', 'one\ntwo\n', 'one\nTWO\nthree\n', 'one\n', 'ONE\n']) {
    write('a', text)
    await a.carry('s1')
    t.equal(store.text(), text)
  }
  const long = `${'x'.repeat(1023)}\n`.repeat(3_000)
  write('a', long)
  await a.carry('s1')
  t.equal(store.kept.length, 3, 'in pieces')
  await carrier('b').bring()
  t.equal(has('b'), long)
})

t.test('no link is followed, and no id leads elsewhere', async (t) => {
  const { root, store, at, write, carrier } = build(t)
  write('a', 'secret\n', 'elsewhere/s1.jsonl')
  mkdirSync(at('a', 'projects/repo'), { recursive: true })
  symlinkSync(at('a', 'elsewhere/s1.jsonl'), at('a'))
  symlinkSync(at('a', 'elsewhere'), at('a', 'projects/linked'))
  for (const id of ['s1', '../elsewhere/s1', '*', '', '..']) t.equal(await carrier('a').carry(id), false, id)
  t.same(store.kept, [])

  rmSync(at('a'))
  write('a', 'mine\n')
  await carrier('a').carry('s1')
  mkdirSync(join(root, 'outside'))
  mkdirSync(at('b', 'projects'), { recursive: true })
  symlinkSync(join(root, 'outside'), at('b', 'projects/repo'))
  await t.rejects(carrier('b').bring(), /leads elsewhere/)
  t.notOk(existsSync(join(root, 'outside/s1.jsonl')))
})

/** A runner whose agent says what the test says. */
class Scripted implements WritingRunner {
  readonly capabilities = { permissionModes: [] } as unknown as Runner['capabilities']
  host!: RunnerHost
  written: WritingRunner['written'] = { sessionId: 's1' }
  onClose = () => {}

  async start(host: RunnerHost) {
    this.host = host
  }

  send() {}

  async interrupt() {}

  async close() {
    this.onClose()
  }
}

async function runnerOf(t: Test, { isRestored = false } = {}) {
  const world = build(t)
  const inner = new Scripted()
  const told: string[] = []
  const host = {
    emit: ({ type }: RunnerEvent) => void told.push(type),
    requestPermission: async () => {
      told.push('asked')
      return { behavior: 'deny' }
    },
    waitForExecutions: () => void told.push('waits'),
  } as unknown as RunnerHost
  const runner = new CarriedRunner({ runner: inner, carrier: world.carrier('a'), isRestored, sessionId: 'session' })
  return { ...world, inner, runner, told, host }
}

const end = { type: 'turn_completed' } as RunnerEvent
const after = { type: 'context_usage' } as RunnerEvent

t.test('the end of a turn is told when what was written down is kept, and what comes after it later', async (t) => {
  const { store, write, inner, runner, told, host } = await runnerOf(t)
  await runner.start(host)
  write('a', 'one\n')
  inner.host.emit({ type: 'plan_updated' } as RunnerEvent)
  t.same(told, ['plan_updated'], 'what comes before it is told at once')
  store.failing = true
  inner.written = { sessionId: 's1', last: 'two' }
  inner.host.emit(end)
  inner.host.emit(after)
  void inner.host.requestPermission({} as never)
  inner.host.waitForExecutions()
  write('a', 'one\ntwo\n')
  inner.written = { sessionId: 's1' }
  store.failing = false
  await until(() => told.includes('waits'), 'all is told')
  t.same(told.slice(0, 3), ['plan_updated', 'turn_completed', 'context_usage'])
  t.same(told.slice(3).sort(), ['asked', 'waits'])
  t.equal(store.text(), 'one\ntwo\n', 'with what it wrote last')
})

t.test('what is written as the agent ends is kept before it is told to be gone', async (t) => {
  const { store, write, inner, runner, host } = await runnerOf(t)
  await runner.start(host)
  inner.onClose = () => write('a', 'at the end\n')
  await runner.close()
  t.equal(store.text(), 'at the end\n')
})

t.test('a storage that takes nothing keeps no agent from ending', async (t) => {
  const { store, write, runner, host } = await runnerOf(t)
  await runner.start(host)
  write('a', 'one\n')
  store.failing = true
  await runner.close()
  t.same(store.kept, [])
})

t.test('a session that goes on is brought before its agent starts, and that fails when it cannot be', async (t) => {
  const { store, write, carrier, runner, inner, has, host } = await runnerOf(t, { isRestored: true })
  write('b', 'kept\n')
  await carrier('b').carry('s1')
  await runner.start(host)
  t.equal(has('a'), 'kept\n')
  t.ok(inner.host)

  const other = await runnerOf(t, { isRestored: true })
  other.store.pieces = () => Promise.reject(new Error('away'))
  await t.rejects(other.runner.start(other.host), /away/)
  t.notOk(other.inner.host, 'no agent has started')
  t.ok(store)
})
