import { tmpdir } from 'node:os'
import type { RunnerEvent } from '../../src/engines/runner.js'
import { createWorkerServer } from '../../src/server.js'
import { ScriptedEngine } from '../../test/fixtures/scripted-engine.js'
import { answer } from '../lib/child.js'

/** The gateway with its console, open to everybody, on an engine that says what it is told to. */
const engine = new ScriptedEngine()
const worker = createWorkerServer({
  allowUnauthenticated: true,
  console: true,
  profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
  createEngineRunner: engine.create,
  eventLog: { maxEvents: 1_000_000, maxBytes: 2 ** 30 },
})
const { url } = await worker.listen(0)

/** What agents say: a sentence or two, a call, its output. */
function* said(count: number): Generator<RunnerEvent> {
  for (let n = 0; n < count; n++) {
    const uuid = `m${n}`
    const id = `call-${n - (n % 3)}`
    const content =
      n % 3 === 0
        ? [
            {
              type: 'text',
              text: `Step ${n}: I look at \`src/file-${n}.ts\` and see **what** has to change.\n\n- one\n- two`,
            },
            { type: 'tool_use', id, name: 'Bash', input: { command: `sed -n 1,40p src/file-${n}.ts` } },
          ]
        : n % 3 === 1
          ? [{ type: 'tool_result', tool_use_id: id, content: `line of the file ${n}\n`.repeat(12) }]
          : [{ type: 'text', text: `That was step ${n}. The next one follows from it, and so on.` }]
    const role = n % 3 === 1 ? ('user' as const) : ('assistant' as const)
    yield { type: `${role}_message`, uuid, parentToolUseId: null, message: { role, content } } as RunnerEvent
  }
}

answer({
  url: () => url,
  /** A session with so many events. @returns its id */
  async session(count: number): Promise<string> {
    const { id } = await worker.registry.create({ cwd: tmpdir(), title: `${count} events` })
    for (const event of said(count)) engine.last.host.emit(event)
    return id
  },
})
