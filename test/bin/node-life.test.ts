import { once } from 'node:events'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { SCHEMA_VERSION } from '../../src/storage/postgres/schema.js'
import { until } from '../fixtures/build.js'
import { DEMO, runDaemon, startDaemon } from '../fixtures/daemon-process.js'
import { processesOf, whenGone, whenStopped } from '../fixtures/processes.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

const AGENT = fileURLToPath(new URL('../fixtures/scripted-acp-agent.mjs', import.meta.url))
/** The lease of nodes that are to lose it. */
const RUNS_OUT_MS = 5_000
const TAKEN = 'this node goes on with what another one had'

if (hasPostgres()) {
  const server = await postgres()

  /** A daemon that is one node of a schema; with a long lease no load makes it lose that. */
  const startNode = async (t: Test, node: string, schema: string, leaseMs = 60_000) => {
    const started = await startDaemon(t, {
      storage: { postgres: { url: server.url(), schema } },
      cluster: {
        ...{ node, url: 'http://127.0.0.1:0', listen: { host: '127.0.0.1', port: 0 } },
        ...{ secret: 'between the nodes of this test alone', leaseMs },
      },
      agents: [{ name: 'scripted', command: process.execPath, args: [AGENT], modes: { default: 'ask' } }],
      profiles: [DEMO, { name: 'agent', engine: 'cli', agent: 'scripted' }],
      // the same at each of them
      allowedCwdRoots: [process.cwd()],
      shutdownTimeoutMs: 2_000,
    })
    const { cwd, call } = started
    const create = async (profile: string, prompt: string) => {
      const answer = await call('/sessions', { profile, cwd: join(cwd, 'work'), prompt })
      t.equal(answer.status, 201)
      return ((await answer.json()) as { id: string }).id
    }
    const agents = () => processesOf(undefined, started.daemon.child.pid!)
    return { ...started, create, agents }
  }

  t.test('a node that is stopped for longer than its lease is one anew, and what it had is others’', async (t) => {
    const first = await startNode(t, 'a', 'stopped', RUNS_OUT_MS)
    const second = await startNode(t, 'b', 'stopped', RUNS_OUT_MS)
    const witness = join(first.cwd, 'witness')
    const id = await first.create('agent', JSON.stringify([{ witness }, { hang: true }]))
    const files = [witness, `${witness}.tool`]
    await until(() => files.every((file) => existsSync(file) && statSync(file).size > 5))
    const working = first.agents()
    t.equal(working.length, 2)

    first.daemon.child.kill('SIGSTOP')
    for (const pid of working) await whenStopped(pid)
    await second.daemon.logged(TAKEN)
    const stoppedAt = files.map((file) => statSync(file).size)
    await until(async () => {
      const session = (await (await second.call(`/sessions/${id}`)).json()) as { status: string }
      return session.status === 'idle'
    }, 'the end of its turn, at the other node')

    first.daemon.child.kill('SIGCONT')
    await first.daemon.logged('joined again')
    for (const pid of working) await whenGone(pid)
    t.same(
      files.map((file) => statSync(file).size),
      stoppedAt,
      'its agent and the tool did nothing more',
    )
    t.equal((await first.call(`/sessions/${id}`)).status, 200, 'at the address that it had')
    t.ok(await first.create('demo', 'hello'))
    const lost = first.daemon.lines().filter(({ msg }) => /another one has taken over/.test(String(msg)))
    t.equal(lost.length, 1)
    t.equal(first.daemon.child.exitCode, null)
    first.daemon.child.kill('SIGTERM')
    t.match(await first.daemon.exited, { code: 0 })
  })

  t.test('a node whose database comes back with less than it confirmed says so, and joins again', async (t) => {
    const { daemon, create, call } = await startNode(t, 'a', 'forgetful')
    const id = await create('demo', 'hello')
    const isIdle = async () => ((await (await call(`/sessions/${id}`)).json()) as { status: string }).status === 'idle'
    await until(isIdle, 'the end of its turn')
    // in one transaction: nothing that is written comes between what is taken back and the cut
    await server.query(`UPDATE forgetful.members SET batch = batch - 2;
      SELECT pg_terminate_backend(backend::integer) FROM forgetful.members`)
    await daemon.logged('joined again')
    const said = daemon.lines().map(({ msg }) => String(msg))
    t.equal(said.filter((msg) => /without what it had confirmed to this node/.test(msg)).length, 1)
    t.notOk(said.some((msg) => /another one has taken over/.test(msg)))
    t.equal((await call(`/sessions/${id}`)).status, 200)
    t.ok(await create('demo', 'hello'))
  })

  t.test('a node that leaves hands over at once', async (t) => {
    const first = await startNode(t, 'a', 'leaving')
    const second = await startNode(t, 'b', 'leaving')
    const id = await first.create('demo', 'hello')
    await until(
      async () => ((await (await first.call(`/sessions/${id}`)).json()) as { status: string }).status === 'idle',
    )
    first.daemon.child.kill('SIGTERM')
    t.match(await first.daemon.exited, { code: 0 })
    await until(async () => (await second.call(`/sessions/${id}`)).status === 200)
    const answer = await second.call(`/sessions/${id}/commands`, { type: 'user_message', text: 'and on' })
    t.ok(answer.status < 300, `${answer.status}`)
  })

  t.test('a node whose port for the others is taken could not start: trying again may mend it', async (t) => {
    const taken = createServer().listen(0, '127.0.0.1')
    t.teardown(() => taken.close())
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const cwd = t.testdir()
    const config = {
      allowUnauthenticated: true,
      listen: { port: 0 },
      profiles: [DEMO],
      storage: { postgres: { url: server.url(), schema: 'taken' } },
      cluster: {
        ...{ node: 'a', url: `http://127.0.0.1:${port}`, listen: { host: '127.0.0.1', port } },
        secret: 'between the nodes of this test alone',
      },
    }
    writeFileSync(join(cwd, 'gateway.json'), JSON.stringify(config))
    const daemon = runDaemon(t, [], { cwd })
    t.match(await daemon.exited, { code: 3 })
    t.match(daemon.stderr, new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}: another process does`))
  })

  t.test('a node that can never join again ends, and says why', async (t) => {
    const { daemon } = await startNode(t, 'a', 'newer', RUNS_OUT_MS)
    await server.query(`INSERT INTO newer.schema_versions VALUES (${SCHEMA_VERSION + 1}, now(), NULL)`)
    await server.query('DELETE FROM newer.members; DELETE FROM newer.leases')
    t.match(await daemon.exited, { code: 3 })
    t.match(daemon.stderr, /written by a newer version/)
  })
}
