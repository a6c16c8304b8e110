import t from 'tap'
import { build, script, sdk, start } from '../../fixtures/claude-engine.js'
import { processesOf } from '../../fixtures/processes.js'

t.beforeEach(() => sdk.present())

const MUTE = 'console.error("tired"); fs.closeSync(1); setInterval(() => {}, 1000)'
const message = 'The agent closed its standard output, did not end within 3 s, and was ended. It said: tired'

t.test('a start of one that closes its standard output and lives on is refused', async (t) => {
  const { runner, host } = await build(t, { config: { env: { CLAUDE_DIES: MUTE } } })
  await t.rejects(runner.start(host), { code: 'SG_ERR_ENGINE_START', message })
  t.strictSame(processesOf('session-1'), [])
})

t.test('one that does so in a turn is ended, and its session with it', async (t) => {
  const whenTold = `process.once("SIGUSR2", () => { ${MUTE} }); setInterval(() => {}, 1000); console.log("ready")`
  const { runner, host } = await start(t, { config: { env: { CLAUDE_PROCESS: whenTold } } })
  const spoke = host.next('engine_event')
  runner.send(script({ type: 'begun' }, { wait: true }, { type: 'result' }))
  await spoke
  const died = host.next('session_error')
  await sdk.queries.at(-1)!.ready
  process.kill(processesOf('session-1')[0]!, 'SIGUSR2')
  t.match(await died, { message, code: 'SG_ERR_ENGINE_FAILED' })
  t.strictSame(processesOf('session-1'), [])
})
