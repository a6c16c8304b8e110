import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { createWorkerServer } from '../../src/server.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js'
import { answer } from '../lib/child.js'

/** One of several gateways on a PostgreSQL, on an engine that does nothing. Arguments: its name, and the URL of the database. */
const [name, database] = process.argv.slice(2) as [string, string]
/** One that nobody listens at. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

const port = await freePort()
const worker = createWorkerServer({
  allowUnauthenticated: true,
  profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
  createEngineRunner: (context) => new ScriptedRunner(context, {}),
  storage: createPostgresStorage({ url: database, schema: 'nodes' }),
  cluster: {
    node: name,
    url: `http://127.0.0.1:${port}`,
    listen: { host: '127.0.0.1', port },
    secret: 'of the nodes of a benchmark, 32 characters',
  },
})
const { url } = await worker.listen(0)

answer({
  url: () => url,
  createSession: async () => (await worker.registry.create({ cwd: tmpdir() })).id,
})
