import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { until } from '../fixtures/build.js'
import { sessionsToCutOff } from '../fixtures/cut-off.js'
import { DEMO, reach, runDaemon, startDaemon, TOKEN } from '../fixtures/daemon-process.js'

t.test('a daemon keeps its sessions without being told to, and tells what a kill cut off', async (t) => {
  const first = await startDaemon(t)
  const { daemon, cwd } = first
  const sessions = await sessionsToCutOff(t, first)
  daemon.child.kill('SIGKILL')
  await daemon.exited

  const { call: again } = await reach(runDaemon(t, [], { cwd }))
  await sessions.areTold(again)
  await sessions.goOn(again)
})

t.test('two daemons cannot share a database; backup and doctor can, while it is in use', async (t) => {
  const { daemon, cwd, createSession } = await startDaemon(t)
  await createSession('hello')
  const other = { listen: { port: 0 }, allowUnauthenticated: true, profiles: [DEMO] }
  writeFileSync(join(cwd, 'other.json'), JSON.stringify(other))
  const second = runDaemon(t, ['--config', 'other.json'], { cwd })
  t.match(await second.exited, { code: 3 })
  t.match(second.stderr, `In use by process ${daemon.child.pid} `)

  const backup = runDaemon(t, ['backup', 'copy.db'], { cwd })
  t.match(await backup.exited, { code: 0 }, backup.stderr)
  t.ok(existsSync(join(cwd, 'copy.db')))
  const twice = runDaemon(t, ['backup', 'copy.db'], { cwd })
  t.match(await twice.exited, { code: 1 })
  t.match(twice.stderr, /^session-gateway: \S*copy\.db cannot be written: it exists already/)

  const doctor = runDaemon(t, ['doctor'], { cwd })
  t.match(await doctor.exited, { code: 0 }, doctor.stderr)
  t.match(doctor.stdout, /^ok: session-gateway\.db is sound/)
  t.match(doctor.stdout, /sessions +1 rows/)

  const restored = { ...other, storage: { sqlite: 'copy.db' } }
  writeFileSync(join(cwd, 'restored.json'), JSON.stringify(restored))
  const third = runDaemon(t, ['--config', 'restored.json'], { cwd })
  const { url } = await third.logged('listening')
  t.equal(
    ((await (await fetch(`${url}/sessions`)).json()) as unknown[]).length,
    1,
    'a backup is as good as the database',
  )
})

t.test('a database that is damaged, or of something else, is refused and left as it is', async (t) => {
  const cwd = t.testdir({ 'session-gateway.db': 'this is not a database, but it is somebody’s' })
  writeFileSync(
    join(cwd, 'gateway.json'),
    JSON.stringify({ listen: { port: 0 }, allowUnauthenticated: true, profiles: [DEMO] }),
  )
  const daemon = runDaemon(t, [], { cwd })
  t.match(await daemon.exited, { code: 3 })
  t.match(daemon.stderr, /session-gateway\.db/)
  const doctor = runDaemon(t, ['doctor'], { cwd })
  t.match(await doctor.exited, { code: 1 })
  t.match(doctor.stdout, /^damaged: session-gateway\.db/)
})

t.test('what a damaged page leaves is saved into a new database, which a daemon goes on with', async (t) => {
  const { daemon, cwd, createSession, call } = await startDaemon(t)
  const { id } = await createSession('hello')
  for (let index = 0; index < 20; index++) await createSession(`${index} ${'x'.repeat(2_000)}`)
  const ids = async () => ((await (await call('/sessions')).json()) as { id: string; status: string }[]) ?? []
  await until(async () => (await ids()).every(({ status }) => status === 'idle'))
  daemon.child.kill('SIGTERM')
  t.match(await daemon.exited, { code: 0 }, daemon.stderr)
  const path = join(cwd, 'session-gateway.db')
  t.equal(statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0, 0, 'nothing waits in the write-ahead log')

  const Driver = await loadDriver()
  const db = new Driver(path, { readOnly: true })
  const { pageno } = db
    .prepare(
      "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY pageno DESC LIMIT 1 OFFSET 3",
    )
    .get()
  db.close()
  const holed = readFileSync(path)
  holed.fill(0x7f, (pageno - 1) * 4096, pageno * 4096)
  writeFileSync(path, holed)
  const refused = runDaemon(t, [], { cwd })
  t.match(await refused.exited, { code: 3 })
  t.match(refused.stderr, /is damaged.*doctor --salvage FILE/)

  const salvage = runDaemon(t, ['doctor', '--salvage', 'saved.db'], { cwd })
  t.match(await salvage.exited, { code: 1 }, salvage.stderr)
  t.match(
    salvage.stdout,
    /^incomplete: saved\.db has what can be read of session-gateway\.db, which was left as it was/,
  )
  t.match(salvage.stdout, /events +\d+ rows, \d+ NOT COPIED: \d+ of session \w+/)
  t.ok(readFileSync(path).equals(holed), 'the damaged one is as it was')
  const twice = runDaemon(t, ['doctor', '--salvage', 'saved.db'], { cwd })
  t.match(await twice.exited, { code: 1 })
  t.match(twice.stderr, /saved\.db cannot be written: it exists already/)

  const config = JSON.parse(readFileSync(join(cwd, 'gateway.json'), 'utf8'))
  writeFileSync(join(cwd, 'saved.json'), JSON.stringify({ ...config, storage: { sqlite: 'saved.db' } }), {
    mode: 0o600,
  })
  const again = runDaemon(t, ['--config', 'saved.json'], { cwd })
  const url = String((await again.logged('listening')).url)
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const listed = (await (await fetch(`${url}/sessions`, { headers })).json()) as unknown[]
  t.equal(listed.length, 21)
  const body = JSON.stringify({ type: 'user_message', text: 'go on' })
  t.equal((await fetch(`${url}/sessions/${id}/commands`, { method: 'POST', headers, body })).status, 200)
})
