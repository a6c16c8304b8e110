import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { hashToken } from '../../src/daemon/tokens.js'
import { until } from '../fixtures/build.js'
import { DEMO, runDaemon, TOKEN } from '../fixtures/daemon-process.js'
import { freePort } from '../fixtures/free-port.js'
import { runPlain } from '../fixtures/terminal.js'

const canMount = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0
const skip = !canMount && 'a small disk of its own is needed, which this account may not mount'

/** A daemon whose database is on a disk of a few megabytes. */
async function onSmallDisk(t: Test) {
  const cwd = t.testdir()
  // not among the fixtures, which nobody could remove while it is mounted
  const disk = mkdtempSync(join(tmpdir(), 'small-disk-'))
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk])
  t.teardown(() => {
    spawnSync('umount', ['-l', disk])
    rmdirSync(disk)
  })
  const config = {
    ...{ listen: { port: 0 }, profiles: [DEMO], profileStore: true, queue: {} },
    auth: { tokens: [{ name: 'ada', sha256: hashToken(TOKEN), canManageProfiles: true }] },
    storage: { sqlite: join(disk, 'gateway.db') },
  }
  writeFileSync(join(cwd, 'gateway.json'), JSON.stringify(config))
  const start = async () => {
    const daemon = runDaemon(t, [], { cwd })
    const { url } = await daemon.logged('listening')
    const call = async (method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) }
      const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
      const text = await response.text()
      return { status: response.status, json: text === '' ? undefined : JSON.parse(text) }
    }
    const kill = async () => {
      daemon.child.kill('SIGKILL')
      await daemon.exited
    }
    const isReady = async () => (await fetch(new URL('/readyz', String(url)))).status === 200
    return { call, kill, isReady }
  }
  const filler = join(disk, 'filler')
  return {
    cwd,
    disk,
    start,
    fill() {
      const { bavail, bsize } = statfsSync(disk)
      writeFileSync(filler, Buffer.alloc(bavail * bsize))
    },
    free: () => rmSync(filler),
  }
}

type Call = Awaited<ReturnType<Awaited<ReturnType<typeof onSmallDisk>>['start']>>['call']

/** What anybody can see, but for times and numbers that go on. */
async function seen(call: Call) {
  const lists = await Promise.all(['/sessions', '/jobs', '/profiles'].map((path) => call('GET', path)))
  return JSON.parse(JSON.stringify(lists, (name, value) => (/^last(Seq|ActivityAt)$/.test(name) ? undefined : value)))
}

t.test(
  'on a disk that is full nothing is half done: refused, and not there later or after a kill',
  { skip },
  async (t) => {
    const { start, fill, free } = await onSmallDisk(t)
    const first = await start()
    const { call } = first
    const { id } = (await call('POST', '/sessions', { cwd: '/tmp', prompt: 'hello', profile: 'demo' })).json
    await until(async () => (await call('GET', `/sessions/${id}`)).json.status === 'idle')
    const later = { session: { cwd: '/tmp', prompt: 'later', profile: 'demo' }, runAt: 4e12 }
    const { id: job } = (await call('POST', '/jobs', later)).json
    const profile = (name: string) => ({ name, engine: 'provider', provider: DEMO.provider })
    const made = await call('POST', '/profiles', profile('mine'))
    t.equal(made.status, 201, JSON.stringify(made.json))
    const big = 'x'.repeat(12_000)
    const heavy = { ...later, session: { cwd: '/tmp', prompt: big, profile: 'demo' } }
    const asked: [method: string, path: string, body?: object][] = [
      ['POST', '/sessions', { cwd: '/tmp', prompt: big, profile: 'demo' }],
      ['POST', `/sessions/${id}/commands`, { type: 'user_message', text: big }],
      ['PATCH', `/sessions/${id}`, { title: 'refused' }],
      ['DELETE', `/sessions/${id}`],
      ['POST', '/jobs', heavy],
      ['DELETE', `/jobs/${job}`],
      ['POST', '/profiles', { ...profile('more'), description: big }],
      ['PATCH', '/profiles/mine', { description: big }],
      ['DELETE', '/profiles/mine'],
    ]
    const isTaken = async (...request: Parameters<Call>) => (await call(...request)).status < 300
    let taken = 0
    /** The write-ahead log has room of its own, and more of it after a large write that did not fit: small ones use it up. */
    const useUp = async () => {
      while (await isTaken('PATCH', `/sessions/${id}`, { title: `taken ${taken}` })) taken++
    }
    fill()
    while (await isTaken('POST', '/jobs', heavy)) taken++
    const refused: string[] = []
    let before: unknown
    for (const [method, path, body] of asked) {
      await useUp()
      before = await seen(call)
      const { status, json } = await call(method, path, body)
      if (status < 300) continue
      refused.push(`${method} ${path}`)
      t.match({ status, code: json?.code }, { status: 503, code: 'SG_ERR_STORE_UNAVAILABLE' }, `${method} ${path}`)
      t.same(await seen(call), before, `${method} ${path}: nothing was done`)
    }
    t.ok(refused.length >= 7, `one of a page or two may fit: ${refused}`)
    await useUp()
    t.notOk(await first.isReady())
    before = await seen(call)
    free()
    await until(first.isReady, 'ready again by itself')
    t.same(await seen(call), before, 'nor when there is room')
    fill()
    while (await isTaken('POST', '/jobs', heavy)) taken++
    const atTheEnd = await seen(call)
    await first.kill()
    free()
    const next = await start()
    t.same(await seen(next.call), atTheEnd, 'nor after a kill')
    t.equal((await next.call('DELETE', `/jobs/${job}`)).json.status, 'canceled', 'and then it is taken')
    await next.kill()
    const last = await start()
    t.equal((await last.call('GET', `/jobs/${job}`)).json.status, 'canceled', 'for good')
  },
)

t.test('what finds no room on a disk says on which, and leaves nothing there', { skip }, async (t) => {
  const { cwd, disk, start, fill, free } = await onSmallDisk(t)
  const { kill } = await start()
  await kill()
  const elsewhere = join(cwd, 'elsewhere.db')
  const run = (...args: string[]) => runPlain(args, { cwd })
  t.match(await run('backup', elsewhere), { code: 0 })
  const config = JSON.parse(readFileSync(join(cwd, 'gateway.json'), 'utf8'))
  writeFileSync(join(cwd, 'gateway.json'), JSON.stringify({ ...config, storage: { sqlite: elsewhere } }))
  for (const name of readdirSync(disk)) rmSync(join(disk, name))
  fill()
  const target = join(disk, 'new.db')
  const noRoom = { code: 1, stderr: new RegExp(`no space left for ${target}`) }
  t.match(await run('backup', target), noRoom)
  t.match(await run('doctor', '--salvage', target), noRoom)
  t.match(await run('init', join(disk, 'gateway.json')), { code: 2, stderr: /could not be written: ENOSPC/ })
  const migrated = await run('migrate', '--from', elsewhere, '--to', target)
  t.match(migrated, { code: 1, stderr: /new\.db cannot be used as a database: ENOSPC/ })
  t.strictSame(readdirSync(disk), ['filler'])
  free()
  // for the lock and the beginning of the database
  writeFileSync(join(disk, 'filler'), Buffer.alloc(3.9 * 1024 * 1024))
  t.match(await run('migrate', '--from', elsewhere, '--to', target), noRoom)
  t.strictSame(readdirSync(disk).sort(), ['filler', 'new.db'], 'an empty one, which the next takes')
})

for (const pretty of [false, true])
  t.test(
    `a daemon whose ${pretty ? 'pretty ' : ''}log cannot be written serves on`,
    { skip: !existsSync('/dev/full') },
    async (t) => {
      const cwd = t.testdir()
      const port = await freePort()
      const config = { listen: { port }, profiles: [DEMO], allowUnauthenticated: true, storage: 'memory' }
      const hooks = 'export const authenticate = () => process.stdout.write("asked\\n") || true'
      writeFileSync(join(cwd, 'hooks.mjs'), hooks)
      writeFileSync(join(cwd, 'gateway.json'), JSON.stringify({ ...config, hooks: './hooks.mjs', log: { pretty } }))
      const daemon = runDaemon(t, [], { cwd, logTo: '/dev/full' })
      const ask = () => fetch(`http://127.0.0.1:${port}/v1/profiles`).then(({ status }) => status)
      await until(() => ask().catch(() => daemon.child.exitCode !== null), 'it serves, or has ended')
      t.equal(await ask(), 200)
      daemon.child.kill('SIGTERM')
      t.match(await daemon.exited, { code: 0 })
    },
  )
