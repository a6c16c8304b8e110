import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../fixtures/build.js'
import { DEMO, runDaemon, startDaemon, TOKEN } from '../fixtures/daemon-process.js'

const deploy = { name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }
const PROMPT = '@@[{"tools":[{"tool":"deploy","input":{"to":"x"}}]},{"text":"It is deployed."}]@@'

t.test('a parked run outlives a daemon that is killed, and its work was dispatched to the hook', async (t) => {
  const config = { parking: { store: { dir: 'state/parked' } }, executions: { tools: [deploy] } }
  const hooks = `import { writeFileSync } from 'node:fs'
    export const onDispatch = (execution) => writeFileSync('dispatched.json', JSON.stringify(execution))`
  const { daemon, cwd, createSession, call } = await startDaemon(t, config, { hooks })
  const { id } = await createSession(PROMPT)
  await until(async () => ((await (await call(`/sessions/${id}`)).json()) as { status: string }).status === 'parked')
  const dispatched = JSON.parse(readFileSync(join(cwd, 'dispatched.json'), 'utf8'))
  t.match(dispatched, { sessionId: id, toolName: 'deploy', input: { to: 'x' }, resultPath: /^\/v1\/executions\// })
  daemon.child.kill('SIGKILL')
  await daemon.exited

  const second = runDaemon(t, [], { cwd })
  const { url } = await second.logged('listening')
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const answer = await fetch(new URL(dispatched.resultPath, String(url)), {
    method: 'POST',
    headers,
    body: JSON.stringify({ status: 'ok', output: { type: 'text', value: 'done' } }),
  })
  t.same(await answer.json(), { applied: true, sessionId: id })
  const log = async () => (await fetch(`${url}/sessions/${id}/events`, { headers })).text()
  await until(async () => (await log()).includes('"type":"turn_completed"'))
  t.match(await log(), /It is deployed\./)
  await until(() => !readdirSync(join(cwd, 'state/parked')).some((name) => name.endsWith('.json')))
})

t.test('a directory of parked sessions that another daemon holds exits with 3, and says who holds it', async (t) => {
  const config = { parking: { store: { dir: 'parked' } } }
  const { daemon, cwd } = await startDaemon(t, config)
  const other = { ...config, listen: { port: 0 }, allowUnauthenticated: true, profiles: [DEMO] }
  writeFileSync(join(cwd, 'other.json'), JSON.stringify(other))
  const second = runDaemon(t, ['--config', 'other.json'], { cwd })
  t.match(await second.exited, { code: 3 })
  t.match(second.stderr, `${daemon.child.pid}`)
})
