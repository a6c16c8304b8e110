import t, { type Test } from 'tap'
import type { SessionFiles } from '../../src/engines/runner.js'
import { UNLIMITED } from '../../src/principal.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'

/** A session that has delivered files in its first turn, and whose process died then. */
async function delivered(test: Test, contents: Record<string, string>) {
  let at = 1
  const written = new Map<string, { text: string; at: number }>()
  const files: SessionFiles = {
    list: () => [...written].map(([path, { text, at }]) => ({ path, bytes: text.length, modifiedAt: at })),
    read: (path) => (written.has(path) ? Buffer.from(written.get(path)!.text) : undefined),
  }
  const snapshot = () => ({
    ...{ engine: 'scripted', state: null },
    files: Object.fromEntries([...written].map(([path, { text }]) => [path, Buffer.from(text).toString('base64')])),
  })
  const world = await buildJournaled(test, { script: { files, snapshot } })
  const { registry, engine, again } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  const deliver = (host: typeof engine.last.host, path: string, text: string) => {
    written.set(path, { text, at: at++ })
    host.emit({ type: 'file_delivered', path, bytes: text.length })
  }
  for (const [path, text] of Object.entries(contents)) deliver(engine.last.host, path, text)
  await registry.durable(id)
  const next = async () => {
    written.clear()
    return again()
  }
  return { ...world, id, next, deliver }
}

t.test('a file that was delivered is there after a crash in its turn, with an engine or without', async (t) => {
  const { id, next, deliver } = await delivered(t, { 'report.md': 'done', 'own.md': 'old' })
  const { registry, engine } = await next()
  const filesOf = async () => {
    const { files } = await registry.open(id, UNLIMITED)
    const contents = files?.list().map(({ path, bytes }) => [path, bytes, files.read(path)?.toString()])
    return contents?.sort()
  }
  const both = [
    ['own.md', 3, 'old'],
    ['report.md', 4, 'done'],
  ]
  t.same(await filesOf(), both)
  await registry.send(id, { type: 'user_message', text: 'on' })
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  t.same(await filesOf(), both, 'whether the engine that goes on takes them or not')
  t.same(engine.last.context.restore?.files, { 'report.md': 'ZG9uZQ==', 'own.md': 'b2xk' }, 'which is given them')
  deliver(engine.last.host, 'own.md', 'newer')
  engine.last.complete()
  await registry.durable(id)
  const after = [['own.md', 5, 'newer'], both[1]]
  t.same(await filesOf(), after)
  await registry.close(id, 'client').catch(() => {})
})

t.test('of an ended session, too', async (t) => {
  const { id, next } = await delivered(t, { 'report.md': 'done' })
  const { registry } = await next()
  await registry.send(id, { type: 'close' })
  const session = await registry.open(id, UNLIMITED)
  t.ok(session.ended)
  t.equal(session.files?.read('report.md')?.toString(), 'done')
})

t.test('what is too large to be written down with each change is not kept', async (t) => {
  const { id, next } = await delivered(t, { 'large.md': 'x'.repeat(300_000), 'small.md': 'y' })
  const { registry } = await next()
  const { files } = await registry.open(id, UNLIMITED)
  t.same(
    files?.list().map(({ path }) => path),
    ['small.md'],
  )
})
