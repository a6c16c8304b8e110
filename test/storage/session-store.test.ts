import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sessionStoreConformance } from '../../src/sessions/kept/store-conformance.js'
import { createFileSessionStore } from '../../src/storage/file/session-store.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway } from '../fixtures/build.js'
import { forkCompiled } from '../fixtures/compiled.js'
import { buildParked, native, ok, someRecord } from '../fixtures/parked.js'

for (const { name, run } of sessionStoreConformance) {
  t.test(`memory: ${name}`, () => run(new MemorySessionStore()))
  t.test(`file: ${name}`, async (t) => {
    const dir = join(t.testdir(), 'parked')
    const opened = [createFileSessionStore({ dir })]
    t.teardown(() => Promise.all(opened.map((store) => store.close?.())))
    await run(opened[0]!, async () => {
      await opened[0]!.close?.()
      opened.push(createFileSessionStore({ dir }))
      return opened.at(-1)!
    })
  })
}

const records = (dir: string) => readdirSync(dir).filter((name) => name.endsWith('.json'))

async function holder(t: Test, dir: string, ...args: string[]) {
  const said: string[] = []
  const child = forkCompiled('test/fixtures/hold-session-store.ts', [dir, ...args])
  child.on('message', (message) => said.push(String(message)))
  t.teardown(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  const kill = async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return { child, said, kill }
}

t.test('directory and files are this account’s alone, and names tell nothing', async (t) => {
  const dir = join(t.testdir(), 'state', 'parked')
  const store = createFileSessionStore({ dir })
  await store.save(someRecord('secret-id'))
  t.equal(statSync(dir).mode & 0o777, 0o700)
  for (const name of readdirSync(dir)) t.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name)
  t.match(records(dir), [/^[0-9a-f]{64}\.json$/])
  await store.close?.()
  t.same(readdirSync(dir), records(dir), 'the lock is gone')
  await t.rejects(store.save(someRecord('late')), /is closed/)
})

t.test('a directory that everybody may write into is refused', async (t) => {
  const dir = t.testdir()
  chmodSync(dir, 0o777)
  await t.rejects(createFileSessionStore({ dir }).list(), /Every account of this machine/)
})

t.test('what cannot be read is reported at the start and left in place; the others are adopted', async (t) => {
  const dir = t.testdir()
  const store = createFileSessionStore({ dir })
  const before = await buildParked(t, { parking: { store } })
  await before.park()
  await before.gateway.close()
  const [name] = records(dir)
  const whole = readFileSync(join(dir, name!), 'utf8')
  const bad: Record<string, string> = {
    a: whole.slice(0, -40),
    b: whole.replace('"version":1', '"version":2'),
    c: '',
    d: '{"version":1,"record":{"id":"x"}}',
    e: 'null',
    // a copy of a session that is listed under its own file
    f: whole,
  }
  for (const [letter, text] of Object.entries(bad)) writeFileSync(join(dir, `${letter.repeat(64)}.json`), text)
  writeFileSync(join(dir, 'notes.txt'), 'not ours')
  writeFileSync(join(dir, 'from-elsewhere.json'), whole)
  mkdirSync(join(dir, `${'0'.repeat(64)}.json`))
  const errors: { message: string; context: object }[] = []
  const onError = ({ message }: Error, context: object) => void errors.push({ message, context })
  const after = await buildGateway(t, {
    parking: { store: createFileSessionStore({ dir }), onError },
    script: native,
  })
  t.same(
    (await after.registry.list()).map(({ id }) => id),
    [before.id],
  )
  t.equal(errors.length, 8)
  for (const { message, context } of errors) {
    t.same(context, { phase: 'adopt' })
    t.match(message, /left in place/)
    t.notMatch(message, '(: ', 'it says what is wrong with what')
  }
  t.ok(errors.some(({ message }) => message.includes('b'.repeat(64)) && message.includes('version')))
  t.ok(errors.some(({ message }) => message.includes('f'.repeat(64)) && message.includes(`of session ${before.id}`)))
  t.ok(errors.some(({ message }) => message.includes('0'.repeat(64)) && message.includes('cannot be read')))
  t.ok(errors.some(({ message }) => message.includes('from-elsewhere.json') && message.includes('another name')))
  for (const [letter, text] of Object.entries(bad))
    t.equal(readFileSync(join(dir, `${letter.repeat(64)}.json`), 'utf8'), text)
  t.same(await after.gateway.executions.submit('e1', ok), { applied: true, sessionId: before.id })
})

t.test('a record that two sessions could claim is reported, and does not keep the gateway from starting', async (t) => {
  const dir = t.testdir()
  const store = createFileSessionStore({ dir })
  const executions = [{ executionId: 'same', toolName: 'x' }]
  await store.save(someRecord('one', { executions }))
  await store.save(someRecord('two', { executions }))
  await store.close?.()
  const errors: object[] = []
  const { gateway } = await buildGateway(t, {
    parking: { store: createFileSessionStore({ dir }), onError: (_error, context) => void errors.push(context) },
  })
  t.match(errors, [{ phase: 'adopt', sessionId: String }])
  t.ok(gateway.ready)
})

t.test('a second process is refused and told who holds it; once that one is gone it is let in', async (t) => {
  const dir = t.testdir()
  const { child, said, kill } = await holder(t, dir)
  t.same(said, ['held'])
  const store = createFileSessionStore({ dir })
  await t.rejects(store.list(), new RegExp(`In use by process ${child.pid} on host`))
  await t.rejects(buildGateway(t, { parking: { store } }), /In use by process/, 'the gateway does not start')
  await kill()
  t.same(await store.list(), [])
  await store.close?.()
})

t.test(
  'a directory that is away for a while, as a disk that is not mounted, is used again once it is back',
  async (t) => {
    const dir = join(t.testdir(), 'parked')
    const store = createFileSessionStore({ dir })
    await store.save(someRecord('mine'))
    renameSync(dir, `${dir}-away`)
    await t.rejects(store.save(someRecord('other')))
    renameSync(`${dir}-away`, dir)
    await store.save(someRecord('other'))
    t.equal(records(dir).length, 2)
    await store.close?.()
  },
)

t.test('a store whose lock was removed writes nothing any more, also when nobody has taken its place', async (t) => {
  const dir = t.testdir()
  const store = createFileSessionStore({ dir })
  await store.save(someRecord('mine'))
  rmSync(join(dir, '.lock'))
  const lost =
    /\.lock was removed while it was held, so that another process could take over\. .* end it, or start it again/
  await t.rejects(store.save(someRecord('mine')), lost)
  const { kill } = await holder(t, dir)
  const uses: (() => Promise<unknown>)[] = [
    () => store.save(someRecord('new')),
    () => store.delete('mine'),
    () => store.get('mine'),
  ]
  for (const use of uses) await t.rejects(use, lost)
  await kill()
  await t.rejects(store.delete('mine'), lost, 'who had it may have written')
  t.equal(records(dir).length, 1)
  await store.close?.()
  t.equal((await store.list()).length, 1, 'opened again, it takes up what is there')
  await store.close?.()
})

t.test('killed at any moment, it has what was confirmed, and every record can be read', async (t) => {
  for (const acknowledged of [1, 4, 9, 17]) {
    const dir = join(t.testdir(), String(acknowledged))
    const { child, said, kill } = await holder(t, dir, 'save')
    await new Promise<void>((resolve) => {
      const look = () => said.length > acknowledged && resolve()
      child.on('message', look)
      look()
    })
    await kill()
    const last = Number(said.at(-1))
    const store = createFileSessionStore({ dir })
    const unreadable: Error[] = []
    const found = await store.list((error) => unreadable.push(error))
    t.same(unreadable, [])
    t.ok(Math.max(...found.map(({ parkedAt }) => parkedAt)) >= last, `${last} or later`)
    await store.close?.()
  }
})

t.test('what a killed write left behind is cleared up, and what is being written is not', async (t) => {
  const dir = join(t.testdir(), 'parked')
  mkdirSync(dir, { mode: 0o700 })
  const stale = join(dir, `${'a'.repeat(64)}.json.123`)
  const fresh = join(dir, `${'b'.repeat(64)}.json.456`)
  for (const draft of [stale, fresh]) writeFileSync(draft, '{"version"')
  utimesSync(stale, 1, 1)
  const store = createFileSessionStore({ dir })
  t.same(await store.list(), [])
  t.notOk(existsSync(stale))
  t.ok(existsSync(fresh))
  await store.close?.()
})

t.test('what is confirmed is on the disk by its name, and what is there is not refused', async (t) => {
  const dir = join(t.testdir(), 'parked')
  const store = createFileSessionStore({ dir })
  await store.list()
  const done: string[] = []
  let broken = false
  const { open, rename, unlink } = files
  const restore = () => {
    Object.assign(files, { open, rename, unlink })
    syncBuiltinESMExports()
  }
  t.teardown(restore)
  const told =
    <Args extends unknown[]>(what: string, act: (...args: Args) => Promise<void>) =>
    async (...args: Args) => {
      await act(...args)
      done.push(what)
      if (broken && what !== 'rename') throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
    }
  const opened: typeof open = async (path, ...how) => {
    const handle = await open(path, ...how)
    const { sync, close } = handle
    handle.sync = told(path === dir ? 'sync' : 'another', () => sync.call(handle))
    handle.close = told('close', () => close.call(handle))
    return handle
  }
  Object.assign(files, { open: opened, rename: told('rename', rename), unlink: told('unlink', unlink) })
  syncBuiltinESMExports()
  const doneSince = () => done.splice(0).filter((what) => what !== 'close')
  const saved = async (parkedAt: number) => {
    await store.save(someRecord('one', { parkedAt }))
    t.same(doneSince(), ['rename', 'sync'])
    t.match(await store.get('one'), { parkedAt })
  }
  await saved(1)
  broken = true
  await saved(2)
  broken = false
  await store.delete('one')
  t.same(doneSince(), ['unlink', 'sync'])
  restore()
  await store.close?.()
})

t.test('a directory that could not be looked through is nobody’s once its store is closed', async (t) => {
  const dir = join(t.testdir(), 'parked')
  const store = createFileSessionStore({ dir })
  t.teardown(() => store.close?.())
  const { readdir } = files
  const restore = () => {
    files.readdir = readdir
    syncBuiltinESMExports()
  }
  t.teardown(restore)
  const refuse = () => Promise.reject(Object.assign(new Error('EIO: i/o error, scandir'), { code: 'EIO' }))
  Object.assign(files, { readdir: refuse })
  syncBuiltinESMExports()
  await t.rejects(store.save(someRecord('one')), { code: 'EIO' })
  t.notOk(existsSync(join(dir, '.lock')), 'it is not held in vain')
  restore()
  await store.save(someRecord('one'))
  t.ok(existsSync(join(dir, '.lock')))
  await store.close?.()
  t.notOk(existsSync(join(dir, '.lock')))
})

t.test(
  'a write that is put in its place while a store of the same process is opened keeps that from nothing',
  async (t) => {
    const dir = join(t.testdir(), 'parked')
    mkdirSync(dir, { mode: 0o700 })
    // there when the directory is read, and gone when it is looked at
    symlinkSync('gone', join(dir, `${'a'.repeat(64)}.json.123`))
    const store = createFileSessionStore({ dir })
    t.same(await store.list(), [])
    await store.close?.()
  },
)

t.test('a file that cannot be closed, as on a network drive that is full or away, ends nobody', async (t) => {
  const dir = join(t.testdir(), 'parked')
  const store = createFileSessionStore({ dir })
  t.teardown(() => store.close?.())
  await store.save(someRecord('one'))
  const unhandled: unknown[] = []
  const onUnhandled = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', onUnhandled)
  const { open } = files
  t.teardown(() => {
    process.off('unhandledRejection', onUnhandled)
    files.open = open
    syncBuiltinESMExports()
  })
  files.open = async (...given) => {
    const handle = await open(...given)
    const { close } = handle
    handle.writeFile = async () => {
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    }
    handle.close = async () => {
      await close.call(handle)
      throw Object.assign(new Error('EIO: i/o error, close'), { code: 'EIO' })
    }
    return handle
  }
  syncBuiltinESMExports()
  t.match(await store.get('one'), { id: 'one' })
  await t.rejects(store.save(someRecord('one')), { code: 'ENOSPC' }, 'what went wrong first is told')
  t.match(await store.get('one'), { id: 'one' })
  await new Promise((resolve) => setTimeout(resolve, 0))
  t.same(unhandled, [])
})
