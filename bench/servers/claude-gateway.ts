import { cliEngine } from '../../src/engines/cli/index.js'
import { createWorkerServer } from '../../src/server.js'
import { answer } from '../lib/child.js'
import type { ClaudeWorld } from '../lib/claude-world.js'

/** The gateway as it is shipped, with the real agent. */
const { claudeSdk, env } = JSON.parse(process.argv[2]!) as ClaudeWorld
const worker = createWorkerServer(
  { allowUnauthenticated: true, profiles: [{ name: 'claude' }] },
  { createCliRunner: cliEngine({ claudeSdk, env }), env: {} },
)
const { url } = await worker.listen(0)

answer({ url: () => url })
