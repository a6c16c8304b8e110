import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { profileStoreConformance } from '../../src/profiles/store-conformance.js'
import { createFileProfileStore } from '../../src/storage/file/profile-store.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { forkCompiled } from '../fixtures/compiled.js'
import { buildCatalog, refusal } from '../fixtures/profiles.js'

for (const { name, run } of profileStoreConformance) {
  t.test(`memory: ${name}`, () => run(createMemoryProfileStore()))
  t.test(`file: ${name}`, async (t) => {
    const path = join(t.testdir(), 'profiles.json')
    const store = createFileProfileStore(path)
    await run(store, async () => {
      await store.close()
      return createFileProfileStore(path)
    })
  })
}

/** Another process at the store, and what it said so far. */
async function holder(t: Test, path: string, ...args: string[]) {
  const said: string[] = []
  const child = forkCompiled('test/fixtures/hold-profile-store.ts', [path, ...args])
  child.on('message', (message) => said.push(String(message)))
  t.teardown(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return { child, said }
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

const one = { name: 'one', engine: 'provider' as const }

t.test('the file and what is beside it are this account’s alone', async (t) => {
  const directory = join(t.testdir(), 'state', 'gateway')
  const path = join(directory, 'profiles.json')
  const store = createFileProfileStore(path)
  await store.save(one)
  t.equal(statSync(directory).mode & 0o777, 0o700)
  t.same(readdirSync(directory).sort(), ['profiles.json', 'profiles.json.lock'])
  for (const name of readdirSync(directory)) t.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name)
  chmodSync(path, 0o644)
  await store.save({ ...one, description: 'x' })
  t.equal(statSync(path).mode & 0o777, 0o600, 'a file that was opened up is closed again')
  await store.close()
  t.same(readdirSync(directory), ['profiles.json'])
})

t.test('nothing is made before it is used, and a list makes no file', async (t) => {
  const directory = join(t.testdir(), 'state')
  const store = createFileProfileStore(join(directory, 'profiles.json'))
  t.notOk(existsSync(directory))
  await store.close()
  t.same(await store.list(), [])
  await store.delete('nobody')
  t.same(readdirSync(directory), ['profiles.json.lock'])
  await store.close()
  await store.close()
})

t.test('a directory that everybody may write into is refused, one with a sticky bit is not', async (t) => {
  const directory = t.testdir()
  const path = join(directory, 'profiles.json')
  chmodSync(directory, 0o777)
  await t.rejects(createFileProfileStore(path).list(), /Every account/)
  chmodSync(directory, 0o1777)
  const store = createFileProfileStore(path)
  t.same(await store.list(), [])
  await store.close()
})

t.test('a file that is no profile store is reported, kept, copied, and never written', async (t) => {
  const corrupt: [string, string | Buffer, RegExp][] = [
    ['empty', '', /JSON/],
    ['cut off', '{"version":1,"profiles":[{"name":"one"', /JSON/],
    ['bytes', Buffer.from([0xff, 0x00, 0xfe]), /JSON/],
    ['nested too deep', `${'['.repeat(5000)}`, /nested/],
    ['a prototype', '{"version":1,"profiles":[{"name":"a","__proto__":{}}]}', /__proto__/],
    ['something else', '{"users":[]}', /version|profiles|users/],
    ['a list', '[]', /as profiles: contents: Expected object/],
    ['a later version', '{"version":2,"profiles":[]}', /version/],
    ['a bad name', '{"version":1,"profiles":[{"name":"../a"}]}', /profiles\.0\.name/],
    [
      'two of one name',
      '{"version":1,"profiles":[{"name":"a"},{"name":"b"},{"name":"a"}]}',
      /two profiles named a\. Repair/,
    ],
    ['an unknown field', '{"version":1,"profiles":[{"name":"a","secret":"x"}]}', /profiles\.0\.secret/],
  ]
  for (const [what, bytes, detail] of corrupt) {
    const directory = t.testdir()
    const path = join(directory, 'profiles.json')
    writeFileSync(path, bytes)
    const store = createFileProfileStore(path)
    await t.rejects(store.list(), detail, what)
    await t.rejects(store.save(one), /cannot be read as profiles/, what)
    await t.rejects(store.delete('one'), /Repair or remove it/, what)
    t.same(readFileSync(path), Buffer.from(bytes), 'left as it was')
    const copies = readdirSync(directory).filter((name) => name.includes('.corrupt-'))
    t.equal(copies.length, 1, 'kept once, however often it is read')
    t.same(readFileSync(join(directory, copies[0]!)), Buffer.from(bytes))
    t.equal(statSync(join(directory, copies[0]!)).mode & 0o777, 0o600)
    await t.rejects(
      buildCatalog({ store }),
      refusal('SG_ERR_OPTION', /^profileStore: .*profiles\.json cannot be read.*\.corrupt-/),
    )
    writeFileSync(path, '{"version":1,"profiles":[]}')
    await store.save(one)
    t.same(await store.list(), [one], 'repaired, it goes on')
    await store.close()
  }
})

t.test('a path that is a directory is an error, not an empty store', async (t) => {
  const store = createFileProfileStore(t.testdir())
  await t.rejects(store.list(), { code: 'EISDIR' })
  await store.close()
})

t.test('a linked file is replaced where it lies', async (t) => {
  const directory = t.testdir({ real: {} })
  const real = join(directory, 'real', 'profiles.json')
  writeFileSync(real, '{"version":1,"profiles":[]}')
  symlinkSync(real, join(directory, 'link.json'))
  const store = createFileProfileStore(join(directory, 'link.json'))
  await store.save(one)
  t.match(JSON.parse(readFileSync(real, 'utf8')), { profiles: [one] })
  t.same(readdirSync(join(directory, 'real')).sort(), ['profiles.json', 'profiles.json.lock'])
  await store.close()
})

t.test('two stores of one process share the file without losing anything', async (t) => {
  const path = join(t.testdir(), 'profiles.json')
  const [first, second] = [createFileProfileStore(path), createFileProfileStore(path)]
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      (index % 2 ? first : second).save({ name: `p${index}`, engine: 'provider' }),
    ),
  )
  t.equal((await first.list()).length, 20)
  await first.close()
  t.ok(existsSync(`${path}.lock`), 'the other one still holds it')
  await second.save(one)
  await second.close()
  t.notOk(existsSync(`${path}.lock`))
  t.equal((await first.list()).length, 21, 'and it can be used again')
  await first.close()
})

t.test('a second process is refused and told who holds it; once that one is gone it is let in', async (t) => {
  const path = join(t.testdir(), 'profiles.json')
  const { child } = await holder(t, path)
  const store = createFileProfileStore(path)
  const held = new RegExp(`In use by process ${child.pid} on host ${hostname()}, started at \\d{4}-\\d\\d-\\d\\dT`)
  await t.rejects(store.list(), held)
  await t.rejects(store.save(one), held)
  await t.rejects(buildCatalog({ store }), refusal('SG_ERR_OPTION', held))
  t.notOk(existsSync(path))
  await kill(child)
  await store.save(one)
  const told = await holder(t, path)
  t.match(told.said[0], `process ${process.pid} on`)
  await store.close()
})

t.test('of many that find an abandoned lock one gets it', async (t) => {
  const path = join(t.testdir(), 'profiles.json')
  await kill((await holder(t, path)).child)
  t.ok(existsSync(`${path}.lock`))
  const all = await Promise.all(Array.from({ length: 4 }, () => holder(t, path)))
  t.equal(all.filter(({ said }) => said[0] === 'held').length, 1)
  t.equal(all.filter(({ said }) => said[0]?.startsWith('In use by process')).length, 3)
})

t.test('whose lock it is', async (t) => {
  const directory = t.testdir()
  const path = join(directory, 'profiles.json')
  const lock = `${path}.lock`
  const mine = { pid: process.ppid, host: hostname(), startedAt: Date.now() }
  const refused: [string, string, RegExp][] = [
    [
      'another host’s, of which nobody here can tell',
      JSON.stringify({ ...mine, pid: 4_194_304, host: 'elsewhere' }),
      /process 4194304 on host elsewhere/,
    ],
    [
      'that of a thread of ours',
      JSON.stringify({ ...mine, pid: process.pid }),
      /by this process, \d+: by another thread/,
    ],
    ['a running process’, born nobody knows when', JSON.stringify(mine), new RegExp(`process ${process.ppid} `)],
    ['no lock', 'what?', /is no lock file/],
    ['an empty one', '', /is no lock file/],
    ['of a process that cannot be', JSON.stringify({ ...mine, pid: -1 }), /is no lock file/],
    ['of a time that cannot be', JSON.stringify({ ...mine, startedAt: 1e300 }), /is no lock file/],
  ]
  for (const [what, text, detail] of refused) {
    writeFileSync(lock, text)
    const store = createFileProfileStore(path)
    await t.rejects(store.list(), detail, what)
    await store.close()
    t.equal(readFileSync(lock, 'utf8'), text, 'it is left alone')
    t.same(readdirSync(directory), ['profiles.json.lock'])
  }
  for (const [what, holder] of [
    ['of a process that is gone', { ...mine, pid: 4_194_304 }],
    ['of a number that another process has by now', { ...mine, birth: 'another-boot/1' }],
  ] as const) {
    writeFileSync(lock, JSON.stringify(holder))
    const store = createFileProfileStore(path)
    t.same(await store.list(), [], what)
    await store.close()
    t.same(readdirSync(directory), [])
  }
})

t.test(
  'a lock that was taken from us by hand ends the use of the file, and is not removed under its new holder',
  async (t) => {
    const path = join(t.testdir(), 'profiles.json')
    const store = createFileProfileStore(path)
    await store.save(one)
    const theirs = JSON.stringify({ pid: 1, host: 'elsewhere', startedAt: 0 })
    writeFileSync(`${path}.lock`, theirs)
    await t.rejects(store.save({ ...one, name: 'late' }), /was removed while it was held/)
    await t.rejects(store.delete(one.name), /was removed while it was held/)
    t.match(readFileSync(path, 'utf8'), `"${one.name}"`)
    await store.close()
    t.equal(readFileSync(`${path}.lock`, 'utf8'), theirs)
  },
)

t.test('killed at any moment, it has what was confirmed, and can be read', async (t) => {
  for (const acknowledged of [1, 2, 5, 9]) {
    const directory = join(t.testdir(), String(acknowledged))
    mkdirSync(directory)
    const path = join(directory, 'profiles.json')
    const { child, said } = await holder(t, path, 'save')
    await new Promise<void>((resolve) => {
      const look = () => said.length > acknowledged && resolve()
      child.on('message', look)
      look()
    })
    await kill(child)
    const store = createFileProfileStore(path)
    const names = (await store.list()).map(({ name }) => name)
    t.same(
      said.slice(1).filter((name) => !names.includes(name)),
      [],
      `${acknowledged} or more confirmed`,
    )
    await store.close()
  }
})
