import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import fastify from 'fastify'
import { serializerCompiler } from '../../plugins/json.js'
import { InboxItem } from '../../schemas/notifications.js'
import { createWorkerServer } from '../../src/server.js'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'
import { type Script, ScriptedRunner } from '../../test/fixtures/scripted-engine.js'
import { answer } from '../lib/child.js'

const PROFILES = 200
/** Where the sessions are kept, and in which folder. */
const [kind, folder] = process.argv.slice(2) as ['memory' | 'sqlite', string]

/** The gateway as it is shipped, on an engine that asks in every turn and waits without limit; a caller sees the profiles that it names. */
const script: Script = {
  capabilities: { parking: 'native' },
  send: (runner) => {
    const input = { command: 'npm test', description: 'Runs the tests of the package that was just changed.' }
    void runner.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input })
  },
}
const worker = createWorkerServer({
  authenticate: ({ headers }) => {
    const names = headers['x-profiles'] as string | undefined
    return names === undefined ? {} : { allowedProfiles: names.split(',') }
  },
  profiles: Array.from({ length: PROFILES }, (_, n) => ({
    ...{ name: `profile-${n}`, engine: 'provider' as const, provider: { id: 'bench' } },
  })),
  createEngineRunner: (context) => new ScriptedRunner(context, script),
  ...(kind === 'sqlite' && { storage: createSqliteStorage({ path: join(folder, 'gateway.db') }) }),
})
const { url } = await worker.listen(0)

/** The same items through the same serializer, with nothing behind them. */
const bare = fastify()
bare.setSerializerCompiler(serializerCompiler)
let items: unknown[] = []
bare.get('/bare', { schema: { response: { 200: Type.Array(InboxItem) } } }, async () => items)
const bareUrl = await bare.listen({ port: 0, host: '127.0.0.1' })

answer({
  url: () => url,
  bareUrl: () => bareUrl,
  setBare: (given: unknown[]) => {
    items = given
  },
  /** Parks as many more approvals. */
  async park(count: number): Promise<void> {
    const ids: string[] = []
    for (let n = 0; n < count; n++) {
      const request = { cwd: tmpdir(), profile: `profile-${n % PROFILES}`, prompt: 'Go on.', approvalTimeoutMs: 0 }
      ids.push((await worker.registry.create(request)).id)
    }
    while (ids.some((id) => worker.registry.here(id)?.status !== 'parked'))
      await new Promise((resolve) => setTimeout(resolve, 20))
  },
})
