import { existsSync, mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { cliEngine } from '../../src/engines/cli/index.js'
import { createWorkerServer } from '../../src/server.js'
import { processesOf } from '../fixtures/processes.js'
import { AGENTS, CLAUDE_SDK } from './installed.js'
import { script, startVendors } from './vendors.js'

const { claude } = AGENTS
const idleReleaseMs = 1_500

interface Told {
  ts: number
  type: string
  [field: string]: unknown
}

t.test('the real claude is released for being idle', { skip: claude.missing ?? false }, async (t) => {
  const vendors = await startVendors(t)
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'claude-background-')))
  const cwd = join(home, 'work')
  for (const folder of [cwd, join(home, 'claude')]) mkdirSync(folder)
  const env = { PATH: process.env.PATH!, HOME: home, ...claude.env(home, vendors.url) }
  const worker = createWorkerServer(
    { allowUnauthenticated: true, profiles: [{ name: 'claude', engine: 'cli', agent: 'claude' }], idleReleaseMs },
    { createCliRunner: cliEngine({ claudeSdk: CLAUDE_SDK, env, maxConcurrentStarts: 1 }), env: {} },
  )
  t.teardown(() => worker.close())
  const { url } = await worker.listen(0)
  const get = async (path: string) => (await fetch(`${url}/v1/sessions/${path}`)).json()
  const create = async (prompt: string): Promise<string> => {
    const body = JSON.stringify({ cwd, allowedTools: ['Bash'], prompt })
    const headers = { 'content-type': 'application/json' }
    const created = await fetch(`${url}/v1/sessions`, { method: 'POST', headers, body })
    return ((await created.json()) as { id: string }).id
  }
  const ends = async (id: string): Promise<Told[]> =>
    ((await get(`${id}/events`)) as { events: Told[] }).events.filter(({ type }) => type === 'turn_completed')

  t.test('between two turns', async (t) => {
    const id = await create(script({ text: 'done' }))
    await until(async () => (await ends(id)).length === 1)
    await until(() => processesOf(id).length === 0)
    t.match(await get(id), { status: 'idle' })
    t.equal((await ends(id)).length, 1)
  })

  t.test('only once what it does in the background is over, and it has said what came of that', async (t) => {
    const { tool, input } = claude.shell('sleep 8; echo over > over.txt')
    const id = await create(script({ tool, input: { ...input, run_in_background: true } }, { text: 'it runs' }))
    await until(async () => (await ends(id)).length === 2)
    t.ok(existsSync(join(cwd, 'over.txt')), 'the command came to its end')
    const [mine, own] = await ends(id)
    t.ok(own!.ts - mine!.ts > 2 * idleReleaseMs)
    t.match([mine, own], [{ result: 'it runs' }, { result: 'The script has come to its end.', isError: false }])
    await until(() => processesOf(id).length === 0)
    t.match(await get(id), { status: 'idle' })
  })
})

/** Waits by looking now and then. */
async function until(condition: () => unknown): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}
