import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'
import { eventOf, firstWrite, jobOf, stateOf } from './sqlite-records.js'
import { compiled, sqliteAt, sqliteWorld, workerFile } from './sqlite-world.js'
import type { Confirmed } from './storage-writer.js'

const MUCH = 100_000_000
const big = (seq: number) => eventOf(seq, 'x'.repeat(100_000))

/** Tries until it is taken. */
async function eventually(write: () => Promise<unknown>): Promise<void> {
  for (;;)
    try {
      await write()
      return
    } catch {
      await new Promise((resolve) => setImmediate(resolve))
    }
}

t.test('full: what does not fit is refused whole, what fits is taken, and all works once there is space', async (t) => {
  const { storage } = await sqliteWorld(t, { pragmas: ['max_page_count = 150'] })
  const { journal, queue } = storage
  await journal.write(firstWrite('large'))
  await journal.write(firstWrite('small'))
  const written: number[] = []
  const full = { name: 'StorageError', code: 'SQLITE_FULL', message: /^there is no space left for .*gateway\.db/ }
  await t.rejects(async () => {
    for (let seq = 1; ; seq++) {
      await journal.write({ id: 'large', state: stateOf('large', { lastSeq: seq }), events: [big(seq)] })
      written.push(seq)
    }
  }, full)
  t.ok(written.length > 0)
  const after = written.length + 1
  const [refused, taken, job] = await Promise.allSettled([
    journal.write({ id: 'large', state: stateOf('large', { lastSeq: after }), events: [big(after)] }),
    journal.write({ id: 'small', state: stateOf('small', { title: 'changed' }), events: [eventOf(1)] }),
    queue.add(jobOf('j')),
  ])
  t.match([refused, taken.status, job.status], [{ status: 'rejected', reason: full }, 'fulfilled', 'fulfilled'])
  t.equal((await journal.get('large'))?.state.info.lastSeq, written.length, 'its state was not written either')
  t.equal((await journal.get('small'))?.state.info.title, 'changed')
  await journal.remove('large')
  await eventually(() => journal.write({ id: 'small', events: [big(2)] }))
  t.equal((await journal.read('small', 0, MUCH, MUCH)).length, 2)
})

const limits = spawnSync('prlimit', ['--version']).status === 0

t.test(
  'a disk that fails: nothing is confirmed that is not there, and it goes on',
  { skip: !limits && 'no prlimit' },
  async (t) => {
    const path = join(t.testdir(), 'gateway.db')
    const writer = fileURLToPath(compiled('test/storage/storage-writer.ts'))
    // writes beyond the limit fail, as on a disk that is broken
    const limited = 'ulimit -S -f 2000; exec "$0" "$@"'
    const child = spawn('sh', ['-c', limited, process.execPath, writer, path, workerFile().href, 'persist'], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    t.teardown(() => void child.kill('SIGKILL'))
    let upTo = 0
    const problems: string[] = []
    const told = (enough: () => boolean) =>
      new Promise<void>((resolve, reject) => {
        child.once('exit', (code, signal) => reject(new Error(`the writer ended: ${code ?? signal}`)))
        const look = (message: unknown) => {
          if (typeof message === 'string') problems.push(message)
          else upTo = (message as Confirmed & { upTo: number }).upTo
          if (!enough()) return
          child.off('message', look)
          resolve()
        }
        child.on('message', look)
      })
    await told(() => problems.length >= 5)
    t.match(problems[0], /^the disk failed while reading or writing .*gateway\.db \(SQLITE_IOERR \d+: /)
    const before = upTo
    t.ok(before > 5)
    t.equal(spawnSync('prlimit', ['--pid', String(child.pid), '--fsize=unlimited:unlimited']).status, 0)
    await told(() => upTo >= before + 100)
    child.kill('SIGKILL')
    await once(child, 'exit')
    const storage = sqliteAt(t, path)
    await storage.open()
    const events = await storage.journal.read('persistent', 0, MUCH, MUCH)
    t.ok(events.length >= upTo)
    t.same(
      events.map(({ seq }) => seq),
      events.map((_, at) => at + 1),
    )
  },
)

/** A thread that answers every call with what the expression gives for its batch; batches of three wait until told to `go`. */
function answering(t: Test, expression: string) {
  const dir = t.testdir()
  const worker = join(dir, 'worker.mjs')
  writeFileSync(
    worker,
    `import { parentPort } from 'node:worker_threads'
     parentPort.on('message', (calls) => {
       if (!calls) process.exit()
       const answer = ${expression}
       const reply = () => parentPort.postMessage({ results: calls.map(() => answer), failures: [] })
       if (calls.length === 3) go.onmessage = reply
       else reply()
     })
     const go = new BroadcastChannel('go')
     parentPort.postMessage({ opened: true })`,
  )
  const storage = createSqliteStorage({ path: join(dir, 'gateway.db') }, { worker: pathToFileURL(worker) })
  t.teardown(() => storage.close())
  return storage
}

t.test('calls of a turn travel together, and those that come meanwhile gather by turns', async (t) => {
  const storage = answering(t, 'calls.length')
  await storage.open()
  const calls = (count: number) => Promise.all(Array.from({ length: count }, () => storage.queue.dailyTokens('x')))
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  t.same(await calls(1), [1])
  const first = calls(3)
  await turn()
  const meanwhile: Promise<number[]>[] = []
  for (const count of [1, 400, 300, 900, 2]) {
    meanwhile.push(calls(count))
    await turn()
  }
  const go = new BroadcastChannel('go')
  go.postMessage('go')
  go.close()
  t.same(await first, [3, 3, 3])
  const sizes = (await Promise.all(meanwhile)).map((results) => [...new Set(results)])
  t.same(sizes, [[701], [701], [701], [900], [2]], 'whole turns, about 500 calls at a time')
})

t.test('a thread that ends is told to everybody who waits, and to all after them', async (t) => {
  const storage = answering(t, 'calls.length > 1 ? process.exit(1) : 0')
  await storage.open()
  t.equal(await storage.queue.dailyTokens('x'), 0)
  const ended = { code: 'STORAGE_ENDED', message: /The thread of .*gateway\.db has ended/ }
  await Promise.all([t.rejects(storage.queue.dailyTokens('x'), ended), t.rejects(storage.journal.list(), ended)])
  await t.rejects(storage.journal.write(firstWrite('s')), ended)
  await storage.close()
  await storage.open()
  t.equal(await storage.queue.dailyTokens('x'), 0, 'opened again, it works again')
})

t.test('a process may end while the storage is open, but not before it knows what became of a write', async (t) => {
  const path = join(t.testdir(), 'gateway.db')
  const writer = fileURLToPath(compiled('test/storage/storage-writer.ts'))
  const child = spawn(process.execPath, [writer, path, workerFile().href, 'once'], { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  t.equal(code, 0)
  const storage = sqliteAt(t, path)
  await storage.open()
  t.match(await storage.journal.list(), [{ id: 'once' }])
})

t.test('a process that ends itself while the database works ends as it says, and has all or nothing', async (t) => {
  const writer = fileURLToPath(compiled('test/storage/storage-writer.ts'))
  const folder = t.testdir()
  for (const afterMs of [10, 30, 50, 70]) {
    const path = join(folder, `${afterMs}.db`)
    const child = spawn(process.execPath, [writer, path, workerFile().href, 'leave', `${afterMs}`], {
      stdio: ['ignore', 'inherit', 'pipe'],
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    const [code, signal] = await once(child, 'close')
    t.strictSame({ code, signal, said }, { code: 7, signal: null, said: '' })
    const storage = sqliteAt(t, path)
    await storage.open()
    const kept = (await storage.check()).tables.events?.rows
    t.ok(kept === 0 || kept === 15_000, `${kept} events`)
    await storage.close()
  }
})

t.test('the events of a removed session are swept in the background, after a crash too', async (t) => {
  const world = await sqliteWorld(t)
  await world.storage.journal.write(firstWrite('s'))
  for (let seq = 1; seq <= 20_000; seq += 1_000)
    await world.storage.journal.write({ id: 's', events: Array.from({ length: 1_000 }, (_, at) => eventOf(seq + at)) })
  await world.storage.journal.remove('s')
  await world.storage.close()
  const left = (await world.reopen()).check()
  t.match(await left, { ok: true, orphans: { events: 0 } })
  await world.storage.journal.write(firstWrite('other'))
  while ((await world.storage.check()).unswept > 0);
  // a check counts one after the other, beside the sweep
  t.equal((await world.storage.check()).tables.events?.rows, 0)
})
